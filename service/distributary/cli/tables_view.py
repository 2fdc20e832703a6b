"""Shows tables in a terminal: a grid, and below it remarks on tables that need attention."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from distributary.cli.output import WARNING, add_row
from distributary.cli.words import count, duration, size
from distributary.controls import without_controls
from distributary.halt_actions import NEEDED_ACTIONS, resume_option, unpause_command, with_names

if TYPE_CHECKING:
    from distributary.control.overview import TableOverview

_GAP = 2  # spaces between columns
_NAME = 0.4  # the largest share of a line for a table's name


@dataclass(frozen=True)
class Remark:
    """A problem that an operator has to handle: its text, and how to end it, perhaps by a command."""

    text: str
    style: str
    fix: str = ""
    command: str = ""

    def lines(self) -> list[Text]:
        """As lines of a terminal."""
        shown_lines = [Text(self.text, self.style)]
        shown_lines += [Text(f"    {words}", "dim") for words in (self.fix, self.command) if words]
        return shown_lines


def grid(
    tables: Sequence[TableOverview],
    rates: Mapping[str, float] | None = None,
    *,
    width: int | None = None,
    now: float | None = None,
) -> Table:
    """One line a table. `rates`: records a second by table, where they are known; None leaves their column out.

    With a `width` only the most useful columns that fit into it; names are folded.
    """
    at = time.time() if now is None else now
    cells: dict[str, list[str]] = {}
    for name, value in _values(rates, at).items():
        cells[name] = [without_controls(value(table)) for table in tables]
    if width is not None:
        cells = _fitting(cells, width)
    of_name = None if width is None else int(width * _NAME)
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for name in cells:
        side: JustifyMethod = "right" if name in _RIGHT else "left"
        is_name = name == "table"
        shown.add_column(
            name, justify=side, no_wrap=not is_name, overflow="fold", max_width=of_name if is_name else None
        )
    for row in zip(*cells.values(), strict=True):
        add_row(shown, *row)
    return shown


_RIGHT = ("lag", "behind by", "records/s", "last commit", "in quarantine", "orphaned", "memory")
_BY_NEED = ("table", "state", "lag", "records/s", "behind by", "last commit", "in quarantine", "orphaned", "layout")
"""The columns in the order in which they get room; those that are not named come last."""


def _values(rates: Mapping[str, float] | None, now: float) -> dict[str, Callable[[TableOverview], str]]:
    """The function for the cells of each column, by its heading."""
    of_rates: dict[str, Callable[[TableOverview], str]] = {
        "records/s": lambda table: f"{rates[table.table]:,.0f}" if rates and table.table in rates else ""
    }
    return {
        "table": lambda table: table.table,
        "state": lambda table: table.state.replace("_", " "),
        "lag": lambda table: "unknown" if table.lag_records is None else count(table.lag_records),
        "behind by": lambda table: duration(table.lag_seconds) if table.lag_seconds else "",
        **({} if rates is None else of_rates),
        "last commit": lambda table: _ago(table.last_commit_at, now),
        "in quarantine": lambda table: count(table.in_quarantine),
        "orphaned": lambda table: "" if table.orphaned_rows is None else count(table.orphaned_rows),
        "layout": lambda table: table.layout,
        "memory": _memory,
        "position": lambda table: table.position or "",
    }


def _fitting(cells: dict[str, list[str]], width: int) -> dict[str, list[str]]:
    """The columns that fit, in their order; the table's name is folded before one of the first few is left out."""
    needed = {name: max(map(cell_len, (name, *column))) for name, column in cells.items()}
    needed["table"] = min(needed["table"], int(width * _NAME))
    order = sorted(cells, key=lambda name: _BY_NEED.index(name) if name in _BY_NEED else len(_BY_NEED))
    # If all tables are well, a column of zeros is less useful than the next column.
    order.sort(key=lambda name: name in ("in quarantine", "orphaned") and not set(cells[name]) - {"", "0"})
    chosen, width_left = set(), width
    for name in order:
        if needed[name] <= width_left:
            chosen.add(name)
            width_left -= needed[name] + _GAP
    return {name: column for name, column in cells.items() if name in chosen or name in ("table", "state")}


def _memory(table: TableOverview) -> str:
    if table.memory_bytes is None:
        return ""
    keys = f"{count(table.remembered_keys, 'key')}, " if table.remembered_keys else ""
    return f"{keys}{size(table.memory_bytes)}"


def _ago(seconds: float | None, now: float) -> str:
    return "" if seconds is None else f"{duration(max(0.0, now - seconds))} ago"


def remarks(tables: Sequence[TableOverview], config_file: str = "FILE") -> list[Remark]:
    """The tables that need an operator, each with the command that helps."""
    remark_list = []
    for table in tables:
        resume = f"distributary resume -c {shlex.quote(config_file)} {shlex.quote(table.table)}"
        if table.ambiguous_deletes:
            fix = "docs/rules.md, 2.7: the connector must send the headers __debezium.oldkey and __debezium.newkey"
            remark_list.append(Remark(f"{table.table}: {_ambiguous_deletes(table.ambiguous_deletes)}", WARNING, fix))
        if table.error is not None:
            text = f"{table.table}: [{table.error['code']}] {table.error['message']}"
            needed = resume_option(NEEDED_ACTIONS.get(table.error["code"]))
            command = f"{resume}{needed}" if table.state == "halted" else ""
            fix = with_names(table.error["fix"], table=table.table, config_file=config_file)
            remark_list.append(Remark(text, "red", fix, command))
        elif table.lag_records is None:
            text = f"{table.table}: its offsets are beyond the topic's end, or those of an earlier topic of that name"
            fix = "the topic was deleted and created again, or has lost its end: `plan` shows how to continue"
            remark_list.append(Remark(text, WARNING, fix))
        if table.paused is not None:
            command = unpause_command(table.paused, table.table, config_file) or ""
            remark_list.append(Remark(f"{table.table}: paused by {table.paused}", WARNING, "", command))
        if table.orphaned_rows:
            rows = count(table.orphaned_rows, "orphaned row")
            text = f"{table.table}: {rows} that the last complete snapshot does not have"
            remark_list.append(Remark(text, WARNING, "", f"{resume} --reconcile"))
    return remark_list


def _ambiguous_deletes(number: int) -> str:
    return f"{count(number, 'delete')} could apply to either of two rows of the same key"
