"""How tables are shown in a terminal: a grid, and below it what needs somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from distributary.cli.output import add_row

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview

_COUNTS = ("lag", "seconds", "quarantined", "ghosts")


def grid(tables: Iterable[TableOverview], rates: Mapping[str, float] | None = None) -> Table:
    """One line a table. `rates`: records a second by table, where they are known; None leaves their column out."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("table", "state"):
        shown.add_column(name, no_wrap=True)
    for name in (*_COUNTS, *(("records/s",) if rates is not None else ())):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("last commit", "position"):
        shown.add_column(name, no_wrap=True)
    for table in tables:
        rate = () if rates is None else (f"{rates[table.table]:.0f}" if table.table in rates else "",)
        add_row(
            shown,
            table.table,
            table.state,
            str(table.lag_records),
            "" if table.lag_seconds is None else f"{table.lag_seconds:.0f}",
            str(table.quarantined),
            "" if table.ghosts is None else str(table.ghosts),
            *rate,
            "" if table.last_commit_at is None else _time(table.last_commit_at),
            table.position or "",
        )
    return shown


def remarks(tables: Sequence[TableOverview]) -> list[Text]:
    """What somebody has to look at, each with its way out."""
    lines = []
    for table in tables:
        if table.undecided:
            lines.append(Text(f"{table.table}: {_undecided(table.undecided)}", "yellow"))
            lines.append(Text("    docs/rules.md, 2.7: have the connector send __debezium.oldkey and newkey", "dim"))
        if table.error is not None:
            lines.append(Text(f"{table.table}: [{table.error['code']}] {table.error['message']}", "red"))
            lines.append(Text(f"    {table.error['fix']}", "dim"))
        if table.paused is not None:
            lines.append(Text(f"{table.table}: paused by {table.paused}", "yellow"))
        if table.ghosts:
            rows = f"{table.ghosts} row{'' if table.ghosts == 1 else 's'}"
            lines.append(Text(f"{table.table}: {rows} that the last complete snapshot does not have", "yellow"))
            lines.append(Text(f"    distributary resume -c FILE {table.table} --reconcile", "dim"))
    return lines


def _undecided(count: int) -> str:
    deletes = "1 delete" if count == 1 else f"{count} deletes"
    return f"{deletes} of a key that its transaction had created over a row: nothing told which of both it took"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
