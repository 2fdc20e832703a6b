"""The expected table from the database's own log, without records and without rules of order.

Rows are distinguished by their identity, not by their key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.model.source.database import Change, Committed, Entry, Snapshot
from tests.model.source.layout import Key, Layout, Row


@dataclass
class Version:
    """A row's content while it had a key. `ended`: the number of the log's entry that ended it; None while it is
    current."""

    row: Row
    ended: int | None = None


@dataclass
class _Held:
    """A table's row of a key: the row's identity, its content, and whether it was deleted softly."""

    row_id: int
    row: Row
    deleted: bool = False


@dataclass
class Books:
    """The table that the service must keep, computed from the entries of the log one after the other.

    `deletes` and `truncate` are the table's settings.
    """

    layout: Layout
    deletes: str = "hard"
    truncate: str = "apply"
    held: dict[Key, _Held] = field(default_factory=dict)
    versions: dict[Key, list[Version]] = field(default_factory=dict)
    _entry: int = -1

    def take(self, entry: Entry) -> None:
        """One transaction or snapshot."""
        self._entry += 1
        if isinstance(entry, Snapshot):
            for row_id, row in entry.rows:
                self._open(row_id, row)
        elif isinstance(entry, Committed):
            for change in entry.changes:
                self._change(change)

    def rows(self) -> list[dict[str, Any]]:
        """The rows, with `__deleted` where deletes or truncates are soft."""
        if "soft" not in (self.deletes, self.truncate):
            return [dict(held.row) for held in self.held.values()]
        return [{**held.row, "__deleted": held.deleted} for held in self.held.values()]

    def all_versions(self) -> list[dict[str, Any]]:
        """Every version: the row with its number among its key's, and whether it is the current one."""
        return [
            {**version.row, "__number": number, "__current": version.ended is None}
            for versions in self.versions.values()
            for number, version in enumerate(versions)
        ]

    def ends(self) -> dict[tuple[tuple[str, Any], ...], int | None]:
        """By a version's content and number the entry of the log that ended it."""
        return {
            (*sorted(version.row.items()), ("__number", number)): version.ended
            for versions in self.versions.values()
            for number, version in enumerate(versions)
        }

    def _change(self, change: Change) -> None:
        if change.before is None and change.after is None:
            self._truncate()
            return
        before = None if change.before is None else self.layout.key_of(change.before)
        after = None if change.after is None else self.layout.key_of(change.after)
        if before is not None and before != after:
            self._close(before, change.row_id)
        if change.after is not None:
            self._open(change.row_id, change.after)

    def _open(self, row_id: int, row: Row) -> None:
        """Puts a row under its key."""
        key = self.layout.key_of(row)
        self.held[key] = _Held(row_id, row)
        versions = self.versions.setdefault(key, [])
        if versions and versions[-1].ended is None:
            if versions[-1].row == row:
                return
            versions[-1].ended = self._entry
        versions.append(Version(row))

    def _close(self, key: Key, row_id: int) -> None:
        """Removes the row from its key, unless another row is there already."""
        held = self.held.get(key)
        if held is not None and held.row_id == row_id:
            self._end(key)

    def _truncate(self) -> None:
        if self.truncate == "apply":
            for key in list(self.held):
                self._end(key)
            self.held.clear()
        elif self.truncate == "soft":
            for key in list(self.held):
                self._end(key, stays=True)

    def _end(self, key: Key, *, stays: bool = False) -> None:
        if self.deletes == "hard" and not stays:
            del self.held[key]
        else:
            self.held[key].deleted = True
        versions = self.versions.get(key, [])
        if versions and versions[-1].ended is None:
            versions[-1].ended = self._entry


def truths(layout: Layout, log: Iterable[Entry], deletes: str = "hard", truncate: str = "apply") -> Iterator[Books]:
    """The table after each entry of the log: the same object each time, one entry further."""
    books = Books(layout, deletes, truncate)
    for entry in log:
        books.take(entry)
        yield books
