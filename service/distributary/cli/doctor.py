"""`distributary doctor`: whether the service would start on this machine, and what to fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.config.load import load

if TYPE_CHECKING:
    from distributary.preflight.check_result import CheckResult

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "failed": ("failed ", "red")}
_SKIPPED = ("-      ", "dim")


@click.command(short_help="Check this machine, Kafka and the storage, each with its fix.")
@output.config_option
@output.output_option
def doctor(config_file: Path, output_format: str) -> None:
    """Check what the service needs: Java, jars, memory, time zone, Kafka and its topics, clocks, the schema registry,
    the storage, the disk, the checkpoint.

    Each check is printed when it is done, with a fix if it fails. A failed check skips only the checks that need it.
    A small file is created and removed in the service's own directory and in the checkpoint. Exits with 1 if a check
    fails.
    """
    logs.configure()
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.preflight.doctor import examine

    found = []
    for result in examine(config):
        found.append(result)
        if output_format == "text":
            _show(result)
    failed = any(result.state == "failed" for result in found)
    if output_format == "json":
        output.show_json({"healthy": not failed, "checks": [result.as_json() for result in found]})
    sys.exit(1 if failed else 0)


def _show(result: CheckResult) -> None:
    mark, style = _MARKS.get(result.state, _SKIPPED)
    code = f"[{result.code}] " if result.code else ""
    output.show_text(f"{mark}  {result.check}: {code}{result.message}", style=style)
    if result.fix:
        output.show_text(f"           {result.fix}", style="dim")
