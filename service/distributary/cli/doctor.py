"""`distributary doctor`: whether the service would start on this machine, and what to fix."""

from __future__ import annotations

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
    from distributary.preflight.check_result import CheckResult

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", output.WARNING), "failed": ("failed ", "red")}
_SKIPPED = ("-      ", "dim")
_WIDTH = 10  # of the longest name of a check
_INDENT = len("warning") + 2 + _WIDTH + 2


@click.command(short_help="Check this machine, Kafka and the storage, each with its fix.")
@output.config_option
@output.output_option
def doctor(config_file: Path, output_format: str) -> None:
    """Check what the service needs: Java, jars, memory, time zone, Kafka and its topics, clocks, the schema registry,
    the identity in S3, the storage, the disk, the checkpoint.

    Each check is printed when it is done, with a fix if it fails. A failed check skips only the checks that need it.
    A small file is created and removed in the service's own directory and in the checkpoint. Exits with 1 if a check
    fails.
    """
    logs.configure()
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.preflight.doctor import examine

    results = []
    with progress() as doing:
        for result in examine(config, lambda check: doing(f"checking: {check}")):
            results.append(result)
            if output_format == "text":
                with doing.aside():
                    _show(result)
    failed = any(result.state == "failed" for result in results)
    if output_format == "json":
        output.show_json({"healthy": not failed, "checks": [result.as_json() for result in results]})
    else:
        _show_end(results, config_file)
    sys.exit(1 if failed else 0)


def _show(result: CheckResult) -> None:
    mark, style = _MARKS.get(result.state, _SKIPPED)
    code = f"[{result.code}] " if result.code else ""
    # The names of the checks stand below each other.
    line = Text.assemble((mark, style), "  ", (f"{result.check:<{_WIDTH}}", "bold"), f"  {code}{result.message}")
    output.show_text(line, indent=_INDENT)
    if result.fix:
        output.show_text(f"{'':{_INDENT}}{output.completed(result.fix)}", style="dim", indent=_INDENT)


def _show_end(results: list[CheckResult], config_file: Path) -> None:
    states = Counter(result.state for result in results)
    failed, warnings = states["failed"], states["warning"]
    parts = [f"{states['ok']} ok", count(warnings, "warning"), f"{failed} failed"]
    if skipped := len(results) - states["ok"] - warnings - failed:
        parts.append(f"{skipped} skipped")
    summary = f"{count(len(results), 'check')}: {', '.join(parts)}"
    output.show_text(summary, style="bold red" if failed else "bold")
    if failed:
        output.show_next(output.command_line("doctor", config_file), "again, after the failed checks are fixed")
    else:
        output.show_next(output.command_line("plan", config_file), output.PLAN)
