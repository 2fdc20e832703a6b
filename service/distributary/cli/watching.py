"""A live view of the tables in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from distributary.cli.output import Harmless
from distributary.cli.tables_view import grid, remarks
from distributary.errors import DistributaryError

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview

_URGENCY = ("halted", "paused", "behind", "new", "up_to_date")


def watch(look: Callable[[], list[TableOverview]], every: float) -> list[TableOverview]:
    """Looks again every so many seconds and shows what it finds, until Ctrl-C; gives what was seen last.

    A look that fails (Kafka is away) is told in the view, which keeps what was seen before it.
    """
    tables: list[TableOverview] = []
    rates: dict[str, float] = {}
    seen_at = 0.0
    with Live(console=Console(highlight=False), auto_refresh=False, screen=True) as live:
        try:
            while True:
                trouble = None
                try:
                    found, now = look(), time.monotonic()
                    rates = records_a_second(tables, found, now - seen_at)
                    tables, seen_at = found, now
                except DistributaryError as error:
                    trouble = Text(f"[{error.code}] {error.message}\n    {error.fix}", "red")
                live.update(_view(tables, rates, trouble), refresh=True)
                time.sleep(every)
        except KeyboardInterrupt:
            return tables


def records_a_second(
    before: Iterable[TableOverview], after: Iterable[TableOverview], seconds: float
) -> dict[str, float]:
    """How many records a second each table applied between two looks; only for tables that both have seen."""
    known = {table.table: table.records_applied for table in before}
    return {
        table.table: max(0, table.records_applied - known[table.table]) / seconds
        for table in after
        if table.table in known and seconds > 0
    }


def by_urgency(tables: Iterable[TableOverview]) -> list[TableOverview]:
    """What needs somebody first, then what is furthest behind: a screen may be shorter than the list."""
    return sorted(tables, key=lambda table: (_URGENCY.index(table.state), -table.lag_records, table.table))


def _view(tables: list[TableOverview], rates: Mapping[str, float], trouble: Text | None) -> Harmless:
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    head = Text(f"{_counted(tables)} · {at} · Ctrl-C ends", "dim")
    return Harmless(Group(head, *([trouble] if trouble else []), *remarks(tables), grid(by_urgency(tables), rates)))


def _counted(tables: list[TableOverview]) -> str:
    """`3 tables: 1 halted, 2 up_to_date`."""
    counts = ((state, sum(table.state == state for table in tables)) for state in _URGENCY)
    states = ", ".join(f"{count} {state}" for state, count in counts if count)
    return f"{len(tables)} table{'' if len(tables) == 1 else 's'}{': ' if states else ''}{states}"
