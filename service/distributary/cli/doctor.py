"""`distributary doctor`: whether the service would start here, and what to mend."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from distributary import logs
from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.words import count
from distributary.config.load import load

if TYPE_CHECKING:
    from distributary.survey.finding import Finding

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "failed": ("failed ", "red")}
_NOT_LOOKED_AT = ("-      ", "dim")
_WIDTH = 10  # of the longest name of a check
_INDENT = len("warning") + 2 + _WIDTH + 2


@click.command(short_help="Check this machine, Kafka and the storage, each with its fix.")
@output.config_option
@output.output_option
def doctor(config_file: Path, output_format: str) -> None:
    """Check what the service needs: Java, jars, memory, time zone, Kafka and its topics, clocks, the schema registry,
    the identity in S3, the storage, the disk, the checkpoint.

    Each check is printed as it is done, with what to do where it fails; one that fails stops only those that need it.
    A small file is made and removed again in the service's own folder and in the checkpoint. Exits with 1 if a check
    failed.
    """
    logs.configure()
    config = load(config_file)

    # Here and not above: what help and a bad config need not wait for.
    from distributary.survey.doctor import examine

    found = []
    with progress() as doing:
        for finding in examine(config, lambda check: doing(f"looking at: {check}")):
            found.append(finding)
            if output_format == "text":
                with doing.aside():
                    _show(finding)
    failed = any(finding.state == "failed" for finding in found)
    if output_format == "json":
        output.show_json({"healthy": not failed, "checks": [finding.as_json() for finding in found]})
    else:
        _show_end(found, shlex.quote(str(config_file)))
    sys.exit(1 if failed else 0)


def _show(finding: Finding) -> None:
    mark, style = _MARKS.get(finding.state, _NOT_LOOKED_AT)
    code = f"[{finding.code}] " if finding.code else ""
    # The names of the checks stand below each other.
    line = Text.assemble((mark, style), "  ", (f"{finding.check:<{_WIDTH}}", "bold"), f"  {code}{finding.message}")
    output.show_text(line, indent=_INDENT)
    if finding.fix:
        output.show_text(f"{'':{_INDENT}}{finding.fix}", style="dim", indent=_INDENT)


def _show_end(found: list[Finding], config_file: str) -> None:
    states = Counter(finding.state for finding in found)
    failed, warnings = states["failed"], states["warning"]
    parts = [f"{states['ok']} ok", count(warnings, "warning"), f"{failed} failed"]
    if skipped := len(found) - states["ok"] - warnings - failed:
        parts.append(f"{skipped} not looked at")
    said = f"{count(len(found), 'check')}: {', '.join(parts)}"
    output.show_text(said, style="bold red" if failed else "bold")
    if failed:
        output.show_next(f"distributary doctor -c {config_file}", "again, once what failed is mended")
    else:
        output.show_next(f"distributary plan -c {config_file}", output.PLAN)
