"""A live view of the tables in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.table import Table
from rich.text import Text

from distributary.cli.output import Harmless
from distributary.cli.tables_view import grid, remarks
from distributary.cli.words import count
from distributary.errors import DistributaryError
from distributary.halt_actions import with_names
from distributary.table_state import TableState
from distributary.wrapping import hanging

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview

_URGENCY = (TableState.HALTED, TableState.PAUSED, TableState.BEHIND, TableState.NEW, TableState.UP_TO_DATE)


def watch(
    read_tables: Callable[[], list[TableOverview]], every: float, config_file: str = "FILE"
) -> list[TableOverview]:
    """Refreshes a live view each `every` seconds until Ctrl-C; returns the tables last read.

    If a refresh fails (Kafka is not reachable), the view shows the error and keeps the last known tables.
    """
    tables: list[TableOverview] = []
    rates: dict[str, float] = {}
    seen_at = 0.0
    with Live(console=Console(highlight=False), auto_refresh=False, screen=True) as live:
        live.update(Text("reading Kafka and the lake …", "dim"), refresh=True)
        try:
            while True:
                trouble = None
                try:
                    current_tables, now = read_tables(), time.monotonic()
                    rates = records_a_second(tables, current_tables, now - seen_at)
                    tables, seen_at = current_tables, now
                except DistributaryError as error:
                    trouble = Text(
                        f"[{error.code}] {error.message}\n    {with_names(error.fix, config_file=config_file)}", "red"
                    )
                live.update(Harmless(View(tables, rates, trouble, config_file)), refresh=True)
                time.sleep(every)
        except KeyboardInterrupt:
            return tables


def records_a_second(
    before: Iterable[TableOverview], after: Iterable[TableOverview], seconds: float
) -> dict[str, float]:
    """How many records a second each table applied between two reads; only for tables in both."""
    known = {table.table: table.records_applied for table in before}
    return {
        table.table: max(0, table.records_applied - known[table.table]) / seconds
        for table in after
        if table.table in known and seconds > 0
    }


def by_urgency(tables: Iterable[TableOverview]) -> list[TableOverview]:
    """Tables that need an operator first, then those furthest behind: a screen may be shorter than the list."""
    return sorted(tables, key=lambda table: (_URGENCY.index(table.state), -(table.lag_records or 0), table.table))


@dataclass(frozen=True)
class View:
    """The tables, in the size of the terminal: first those that need attention, and how many did not fit. `trouble`:
    why the shown state is not current."""

    tables: list[TableOverview]
    rates: Mapping[str, float]
    trouble: Text | None = None
    config_file: str = "FILE"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Table]:
        width, height = options.max_width, options.height or console.height
        at = datetime.now(timezone.utc)
        lines = [Text(f"{_counted(self.tables)} · {at:%H:%M:%S} UTC · Ctrl-C ends", "dim"), *self._trouble()]
        head = [part for line in lines for part in hanging(line, width)]
        yield from head
        height_left = height - len(head) - 1
        # Each table needs a line, and the heading another one; remarks get the remaining lines, at most half of them.
        notes = self._notes(width)
        shown_notes = notes[: max(height_left // 2, height_left - len(self.tables) - 3)]
        yield from shown_notes
        if len(shown_notes) < len(notes):
            yield Text(f"… more below: {_STATUS} shows all", "dim")
        rows_left = height_left - len(shown_notes) - (2 if len(shown_notes) < len(notes) else 1)
        shown = by_urgency(self.tables)
        if len(shown) > rows_left:
            shown = shown[: max(rows_left - 1, 1)]
        if shown:
            yield grid(shown, self.rates, width=width)
        if len(shown) < len(self.tables):
            yield Text(f"… and {len(self.tables) - len(shown):,} more tables", "dim")

    def _trouble(self) -> list[Text]:
        return [Text(line, "red") for line in self.trouble.plain.split("\n")] if self.trouble else []

    def _notes(self, width: int) -> list[Text]:
        lines = [line for remark in remarks(by_urgency(self.tables), self.config_file) for line in remark.lines()]
        return [part for line in lines for part in hanging(line, width)]


_STATUS = "distributary status without --watch"


def _counted(tables: list[TableOverview]) -> str:
    """`3 tables: 1 halted, 2 up to date`."""
    counts = ((state, sum(table.state == state for table in tables)) for state in _URGENCY)
    states = ", ".join(f"{number:,} {state.replace('_', ' ')}" for state, number in counts if number)
    return f"{count(len(tables), 'table')}{': ' if states else ''}{states}"
