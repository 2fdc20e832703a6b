"""`distributary demo`: the whole thing on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from distributary import logs


@click.command(short_help="See it work on this machine, end to end.")
@click.option("--keep", is_flag=True, help="Leave the broker and the service running afterwards, to play with.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where broker, tables and config go. Default: a new temporary directory.",
)
def demo(keep: bool, directory: Path | None) -> None:
    """See it work on this machine: a broker, recorded change events, the service, the tables.

    Needs Python and Java 17 only; the first time it also downloads the jars.
    """
    logs.configure()

    from distributary.demo.play import play

    sys.exit(play(keep=keep, directory=directory))
