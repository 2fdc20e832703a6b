"""`distributary status`: shows the state of the tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distributary import logs
from distributary.cli import output
from distributary.cli.tables_view import grid, remarks
from distributary.cli.watching import watch
from distributary.config.load import load
from distributary.errors import UsageError

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview


@click.command(short_help="Show the state and lag of each table.")
@output.config_option
@output.output_option
@click.option("--watch", "watches", is_flag=True, help="A live view in the terminal, until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two updates of --watch.",
)
def status(config_file: Path, output_format: str, every: float, *, watches: bool) -> None:
    """Show for each table its state, lag, position, last commit, quarantined records and ghosts.

    Reads the lake and Kafka, not the service, which may be stopped. Exits with 1 if a table is halted.
    """
    logs.configure()
    if watches:
        _check_terminal(output_format)
    config = load(config_file)

    # Imported late: `--help` and a bad config must not wait for these modules.
    from distributary.consume.broker import Broker
    from distributary.control.overview import HALTED, overview

    broker = Broker(config.kafka_properties())
    tables = watch(lambda: overview(config, broker), every) if watches else overview(config, broker)
    if output_format == "json":
        output.show_json({"tables": [table.as_json() for table in tables]})
    else:
        _show(tables)
    sys.exit(1 if any(table.state == HALTED for table in tables) else 0)


def _check_terminal(output_format: str) -> None:
    if output_format == "json" or not sys.stdout.isatty():
        raise UsageError(
            "watch-needs-terminal",
            "--watch is a view for a terminal; it prints no JSON and into no file",
            "leave --watch out and ask as often as you like, or scrape /metrics",
        )


def _show(tables: list[TableOverview]) -> None:
    if not tables:
        output.show_text("no topic of the config's tables exists", style="yellow")
        return
    output.show_grid(grid(tables))
    for line in remarks(tables):
        output.show_text(line)
