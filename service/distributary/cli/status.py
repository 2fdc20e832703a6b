"""`distributary status`: how the tables are."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from distributary.cli import output
from distributary.config.load import load
from distributary.operate import logs

if TYPE_CHECKING:
    from distributary.operate.overview import TableOverview


@click.command(short_help="Show how each table is and how far behind.")
@output.config_option
@output.output_option
def status(config_file: Path, output_format: str) -> None:
    """Show per table its state, lag, position, last commit, quarantined records and ghosts.

    Looks at the lake and at Kafka, not at the service, which need not run. Ends with 1 where a table is halted.
    """
    logs.configure()
    config = load(config_file)

    # Here and not above: what help and a bad config need not wait for.
    from distributary.operate.overview import HALTED, overview

    tables = overview(config)
    if output_format == "json":
        output.show_json({"tables": [table.as_json() for table in tables]})
    else:
        _show(tables)
    sys.exit(1 if any(table.state == HALTED for table in tables) else 0)


def _show(tables: list[TableOverview]) -> None:
    if not tables:
        output.show_text("no topic of the config's tables exists", style="yellow")
        return
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("table", "state"):
        grid.add_column(name, no_wrap=True)
    for name in ("lag", "seconds", "quarantined", "ghosts"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("last commit", no_wrap=True)
    grid.add_column("position", no_wrap=True)
    for table in tables:
        grid.add_row(
            table.table,
            table.state,
            str(table.lag_records),
            "" if table.lag_seconds is None else f"{table.lag_seconds:.0f}",
            str(table.quarantined),
            "" if table.ghosts is None else str(table.ghosts),
            "" if table.last_commit_at is None else _time(table.last_commit_at),
            table.position or "",
        )
    # As wide as it is: a line that is cut or wrapped is of no use to a script.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 1000)
    console.print(grid)
    for table in tables:
        if table.undecided:
            output.show_text(f"{table.table}: {_undecided(table.undecided)}", style="yellow")
            output.show_text(
                "    docs/rules.md, 2.7: have the connector send __debezium.oldkey and newkey", style="dim"
            )
        if table.error is not None:
            output.show_text(f"{table.table}: [{table.error['code']}] {table.error['message']}", style="red")
            output.show_text(f"    {table.error['fix']}", style="dim")
        if table.ghosts:
            rows = f"{table.ghosts} row{'' if table.ghosts == 1 else 's'}"
            output.show_text(f"{table.table}: {rows} that the last complete snapshot does not have", style="yellow")
            output.show_text(f"    distributary resume -c FILE {table.table} --reconcile", style="dim")


def _undecided(count: int) -> str:
    deletes = "1 delete" if count == 1 else f"{count} deletes"
    return f"{deletes} of a key that its transaction had created over a row: nothing told which of both it took"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
