"""The expected table after a set of records, for each mode: the reference for the service's tests.

It reads all records together, so that the result can't depend on the boundaries of batches or on the order of
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.model.reference.event import TOMBSTONE, Event, read
from tests.model.reference.order import by_arrival, in_order, levelled, once, stands_by_arrival
from tests.model.reference.rows import PLACEHOLDER, Line, Values, follow
from tests.support.recorded import Record

Json = Any


@dataclass(frozen=True)
class TableRow:
    """A row of the table: the event that wrote it, its columns as the wire has them, and whether it was deleted."""

    event: Event
    values: Mapping[str, Json]
    deleted: bool = False


@dataclass(frozen=True)
class Version:
    """A row's content for some time. `event` began it; `until` ended it, None for a current one."""

    event: Event
    values: Mapping[str, Json]
    until: Event | None


@dataclass(frozen=True)
class Appended:
    """A change as `mode: append` keeps it: a delete with the deleted row that its record names."""

    op: str
    key: str | None
    values: Mapping[str, Json]
    unavailable: tuple[str, ...]


def reference(records: Iterable[Record], connector: str | None = None) -> Reference:
    """The table that the records of its topic make. `connector` is needed only if the records do not name it.

    Raises ValueError for a record that is no change event.
    """
    return Reference(read(record, connector) for record in records)


class Reference:
    """The table that the events of its topic make."""

    def __init__(self, events: Iterable[Event], placeholder: str = PLACEHOLDER) -> None:
        self._arrived = levelled(by_arrival(events))
        self._by_key: dict[str, list[Event]] = {}
        for event in self._arrived:
            if event.key is not None and event.op not in ("t", "m"):
                self._by_key.setdefault(event.key, []).append(event)
        self._placeholder = placeholder
        self.missing = 0
        """How many unavailable values had to become NULL, after one of the calls below."""

    def rows(self, deletes: str = "hard", truncate: str = "apply") -> dict[str, TableRow]:
        """The rows of `mode: upsert` by key (the key's JSON)."""
        lines = self._lines(ignored=truncate == "ignore")
        values = Values(lines, self._placeholder)
        found = {}
        for key, line in lines.items():
            row = line.row
            if row is not None:
                found[key] = TableRow(row.event, values.of(row))
            elif deletes == "soft" and line.rows and not (truncate == "apply" and line.emptied):
                found[key] = TableRow(line.rows[-1].event, values.of(line.rows[-1]), deleted=True)
        self.missing = values.missing
        return found

    def versions(self, truncate: str = "apply") -> dict[str, list[Version]]:
        """The versions of `mode: history` by key, oldest first."""
        lines = self._lines(ignored=truncate == "ignore")
        values = Values(lines, self._placeholder)
        found: dict[str, list[Version]] = {}
        for key, line in lines.items():
            versions: list[Version] = []
            for row in line.rows:
                content = values.of(row)
                last = versions[-1] if versions else None
                if last is not None and last.until is row.event and last.values == content:
                    versions[-1] = Version(last.event, content, row.closed_by)
                else:
                    versions.append(Version(row.event, content, row.closed_by))
            if versions:
                found[key] = versions
        self.missing = values.missing
        return found

    def appended(self) -> list[Appended]:
        """The changes of `mode: append`, in no particular order."""
        values = Values({})
        changes_by_key = ([event for event in events if event.op != TOMBSTONE] for events in self._by_key.values())
        changes = [event for events in changes_by_key for event in once(events)]
        found = []
        for event in [*changes, *once(self._truncates())]:
            row = event.before if event.op == "d" else event.after
            names = tuple(values.unavailable(row))
            content = {name: None if name in names else value for name, value in (row or {}).items()}
            found.append(Appended(event.op, event.key, content, names))
        return found

    def _truncates(self) -> list[Event]:
        return [event for event in self._arrived if event.op == "t"]

    def _lines(self, *, ignored: bool) -> dict[str, Line]:
        truncates = [] if ignored else in_order(once(self._truncates()))
        assert not any(stands_by_arrival(truncate) for truncate in truncates)
        return {key: follow(in_order(once(events)), truncates) for key, events in self._by_key.items()}
