"""`distributary demo`: runs everything on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from distributary import logs


@click.command(short_help="Run everything on this machine, end to end.")
@click.option("--keep", is_flag=True, help="Keep the broker and the service running afterwards.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory of broker, tables and config. Default: a new temporary directory.",
)
def demo(keep: bool, directory: Path | None) -> None:
    """Run a broker, recorded change events and the service on this machine, and show the tables.

    Needs only Python and Java 17; the first run also downloads the jars.
    """
    logs.configure()

    from distributary.demo.play import play

    sys.exit(play(keep=keep, directory=directory))
