"""`distributary doctor`: whether the service would start here, and what to mend."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load

if TYPE_CHECKING:
    from distributary.preflight.check_result import Finding

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "failed": ("failed ", "red")}
_NOT_LOOKED_AT = ("-      ", "dim")


@click.command(short_help="Check this machine, Kafka and the storage, each with its fix.")
@output.config_option
@output.output_option
def doctor(config_file: Path, output_format: str) -> None:
    """Check what the service needs: Java, jars, memory, time zone, Kafka and its topics, clocks, the schema registry,
    the storage, the disk, the checkpoint.

    Each check is printed as it is done, with what to do where it fails; one that fails stops only those that need it.
    A small file is made and removed again in the service's own folder and in the checkpoint. Exits with 1 if a check
    failed.
    """
    logs.configure()
    config = load(config_file)

    # Here and not above: what help and a bad config need not wait for.
    from distributary.preflight.doctor import examine

    found = []
    for finding in examine(config):
        found.append(finding)
        if output_format == "text":
            _show(finding)
    failed = any(finding.state == "failed" for finding in found)
    if output_format == "json":
        output.show_json({"healthy": not failed, "checks": [finding.as_json() for finding in found]})
    sys.exit(1 if failed else 0)


def _show(finding: Finding) -> None:
    mark, style = _MARKS.get(finding.state, _NOT_LOOKED_AT)
    code = f"[{finding.code}] " if finding.code else ""
    output.show_text(f"{mark}  {finding.check}: {code}{finding.message}", style=style)
    if finding.fix:
        output.show_text(f"           {finding.fix}", style="dim")
