"""The output of the demo."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from distributary.demo.comparison import Comparison, Key
from distributary.demo.one_change import OneChange
from distributary.demo.record import Record, Row, Wave
from distributary.wrapping import hanging

SAMPLE_ROWS = 3
GAP = 2
DIFFERENCES_SHOWN = 10
_SIDE = len("row in the lake")
_KINDS = {"r": "snapshot row", "c": "insert", "u": "update", "d": "delete", None: "tombstone", "t": "truncate"}


class Screen:
    """Writes to `console` (by default standard output)."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def title(self, directory: Path, *, is_temporary: bool) -> None:
        self._console.rule("[bold]distributary demo")
        self._console.print(
            "Change events of three databases go through Kafka; one service keeps one Delta table per source table."
        )
        end = ", and is deleted at the end: --directory DIR keeps it" if is_temporary else ""
        self._console.print(f"Everything is under {escape(str(directory))}{end}\n", soft_wrap=True)

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Show that something is being done, and that it is done when the block ends without an error."""
        with self._console.status(doing):
            yield
        self.note(done)

    def note(self, text: str) -> None:
        self._console.print(f"[green]•[/] {escape(text)}", soft_wrap=True)

    def command(self, text: str) -> None:
        """A command, on a line of its own that can be copied."""
        self._console.print(f"  {escape(text)}", soft_wrap=True)

    def wave(self, number: int, wave: Wave) -> None:
        """Shows a wave: per topic the number of records of each kind, and where they come from."""
        self._console.print(f"\n[bold]Wave {number}: {escape(wave.title)}")
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for heading in ("topic", "events"):
            table.add_column(heading, no_wrap=heading == "topic")
        for origin, records in wave.records.items():
            for index, (topic, kinds) in enumerate(_kinds_by_topic(records).items()):
                if index == 0:
                    table.add_row(f"[color(31)]{origin.value}")
                counts = ", ".join(_count(kinds[kind], name) for kind, name in _KINDS.items() if kinds[kind])
                table.add_row(f"  {escape(topic)}", counts)
        self._console.print(table)
        for remark in wave.remarks:
            self._console.print(f"[dim]{escape(remark)}")

    @contextmanager
    def progress(self, ends: Mapping[str, int]) -> Iterator[Callable[[Mapping[str, int]], None]]:
        """A bar over all records of `ends` (per topic); the block gets a function to call with the applied records per
        topic."""
        columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console) as progress:
            bar = progress.add_task("in the lake", total=sum(ends.values()))
            yield lambda applied: progress.update(bar, completed=sum(applied.values()))

    def comparisons(self, comparisons: Sequence[Comparison]) -> None:
        """Each table of the lake beside its source, a few rows of each, and whether the whole is equal."""
        self._console.print("\n[bold]The tables in the lake beside their sources")
        notes: list[str] = []
        for comparison in comparisons:
            notes += self._comparison(comparison, len(notes))
        for number, note in enumerate(notes, 1):
            for line in hanging(Text(f"{_mark(number)} {note}", "dim"), self._console.width, number + 1):
                self._console.print(line, soft_wrap=True)

    def verdict(self, comparisons: Sequence[Comparison]) -> None:
        rows = sum(len(comparison.source) for comparison in comparisons)
        wrong = [comparison.truth.table for comparison in comparisons if not comparison.equal]
        if wrong:
            self._console.print(
                f"\n[bold red]{len(wrong)} of {len(comparisons)} tables differ: {escape(', '.join(wrong))}"
            )
        else:
            equal = f"All {len(comparisons)} tables are equal to their sources: {rows} rows, every column compared."
            self._console.print(f"\n[bold green]{equal}", soft_wrap=True)

    def one_change(self, change: OneChange) -> None:
        """Shows one change: the row before it, its event, and the row in the lake."""
        self._console.print(f"\n[bold]One change on its way: {escape(change.table)}")
        lines = (
            ("row before", _one_line(change.before, change.columns)),
            ("event in Kafka", f"topic {change.topic}: {change.event}"),
            ("row in the lake", _one_line(change.row, change.columns)),
        )
        for label, value in lines:
            text = Text.assemble((f"  {label:<{_SIDE}}  ", "dim"), value)
            for line in hanging(text, self._console.width, _SIDE + 4):
                self._console.print(line, soft_wrap=True)

    def try_next(self, lines: Sequence[tuple[str, str]], *, running: bool) -> None:
        """Shows what to do next: pairs of purpose and command. `running`: broker and service were left running."""
        heading = "Broker and service keep running. Try in another terminal:" if running else "Try next:"
        self._console.print(f"\n[bold]{heading}")
        for purpose, command in lines:
            self._console.print(f"  [dim]# {escape(purpose)}")
            self.command(command)

    def until_interrupted(self, url: str, bootstrap: str) -> None:
        """Where broker and service are found, and how they end."""
        self._console.print(f"\nStatus page: {escape(url)}   broker: {escape(bootstrap)}", soft_wrap=True)
        self._console.print("Ctrl-C ends both.")

    def log_tail(self, path: Path, text: str) -> None:
        """Prints the end of the service's log, before the error is shown."""
        self._console.rule(f"the end of {escape(str(path))}", align="left")
        self._console.print(text, markup=False, soft_wrap=True)
        self._console.rule()

    def _comparison(self, comparison: Comparison, notes_before: int) -> list[str]:
        truth = comparison.truth
        notes = [
            f"{truth.table}.{name} is NULL in {_count(count, 'row')} of the source. Instead the connector sent "
            f"the column's default, {truth.null_arrives_as[name]} (Kafka Connect's replace.null.with.default), and "
            "the event does not show the difference: compared with what was sent."
            for name, count in truth.nulls_replaced().items()
        ]
        marks = "".join(f" {_mark(notes_before + number)}" for number in range(1, len(notes) + 1))
        self._console.print(f"\n[bold]{escape(truth.table)}[/] [color(31)]{truth.origin.value}")
        self._console.print(_sample(comparison, self._console.width))
        size = f"{len(comparison.source)} rows at the source, {len(comparison.lake)} in the lake"
        if comparison.equal:
            self._console.print(f"{size}, {len(truth.columns)} columns: [bold green]equal[/]{marks}")
        else:
            self._console.print(f"{size}: [bold red]not equal[/]{marks}")
            for line in _differences(comparison):
                self._console.print(f"  [red]{escape(line)}", soft_wrap=True)
        return notes


def _kinds_by_topic(records: Sequence[Record]) -> dict[str, Counter[str | None]]:
    kinds: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    for record in records:
        kinds[record.topic][None if record.value is None else json.loads(record.value)["payload"]["op"]] += 1
    return {topic: kinds[topic] for topic in sorted(kinds)}


def _sample(comparison: Comparison, width: int) -> Table:
    """A few rows of both sides, one under the other, with as many columns as fit into `width`."""
    keys = sorted(comparison.source.keys() | comparison.lake.keys())
    # The first, the last and those in between at even steps.
    count = min(SAMPLE_ROWS, len(keys))
    chosen = [keys[index * (len(keys) - 1) // max(count - 1, 1)] for index in range(count)]
    sides = (("source", comparison.source), ("lake", comparison.lake))
    rows = [(side, found.get(key)) for key in chosen for side, found in sides]

    columns = {name: [_cell(row, name) for _, row in rows] for name in comparison.truth.columns}
    needed = {name: max(cell.cell_len for cell in [Text(name), *cells]) + GAP for name, cells in columns.items()}
    width_left = width - len("source") - GAP - len(" 99 more")
    shown = [name for name, end in zip(columns, accumulate(needed.values()), strict=True) if end <= width_left]

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for heading in ("", *shown):
        table.add_column(Text(heading), no_wrap=True)
    if more := len(columns) - len(shown):
        table.add_column(Text(f"{more} more", "dim"), no_wrap=True)
    for index, (side, _) in enumerate(rows):
        table.add_row(Text(side, "dim"), *(columns[name][index] for name in shown))
    return table


def _cell(row: Row | None, name: str) -> Text:
    if row is None:
        return Text("no row", "red")
    value = row.get(name)
    return Text("NULL", "dim") if value is None else Text(_plain(value))


def _one_line(row: Row, columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {_cell(row, name).plain}" for name in columns)


def _plain(value: Any) -> str:
    """A value for people, on one line."""
    return json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else str(value)


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _differences(comparison: Comparison) -> Iterator[str]:
    if not comparison.found:
        yield "there is no such table in the lake"
        return
    if comparison.columns:
        yield f"columns that only one of the two has: {', '.join(comparison.columns)}"
    for what, keys in (
        ("missing in the lake", comparison.missing),
        ("in the lake, not at the source", comparison.extra),
        ("more than once in the lake", comparison.repeated),
    ):
        if keys:
            shown = "; ".join(_plain_key(key) for key in keys[:DIFFERENCES_SHOWN])
            yield f"{_count(len(keys), 'row')} {what}: {shown}{' …' if len(keys) > DIFFERENCES_SHOWN else ''}"
    different = comparison.different
    for key in list(different)[:DIFFERENCES_SHOWN]:
        for name in different[key]:
            source, lake = comparison.source[key].get(name), comparison.lake[key].get(name)
            yield f"row {_plain_key(key)}, {name}: source {source!r}, lake {lake!r}"
    if len(different) > DIFFERENCES_SHOWN:
        yield f"… {len(different)} rows differ"


def _plain_key(key: Key) -> str:
    return ", ".join(map(_plain, key))


def _mark(number: int) -> str:
    return "*" * number
