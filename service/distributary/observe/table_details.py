"""Details of single tables: their last commits, their columns and files.

Served for one table at a time, so that /status stays small with thousands of tables. In memory only.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from distributary.delta.table_view import TableView

KEPT = 20
"""Commits, and changes of the columns, that are kept per table: about 10 kB."""


@dataclass(frozen=True)
class Commit:
    """A committed batch: when (seconds since 1970), the version of the table that it made, its records, those applied
    and those put into quarantine, its seconds, those of each phase (see metrics.PHASES), and the rows that it inserted,
    updated and deleted."""

    at: float
    version: int | None
    records: int
    applied: int
    quarantined: int
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredTable:
    """A version of a table as its log has it: columns (name to Delta type), those of its key and those that the service
    adds; by which columns its files are partitioned; how many files, bytes and rows it has, and in how many files
    deletion vectors mark rows; of how many files the key index is in memory or on this machine's disk. `rows` is None
    where the log does not count them."""

    version: int
    columns: Mapping[str, str]
    key: tuple[str, ...]
    added_by_service: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    files: int
    bytes: int
    rows: int | None
    files_with_vectors: int
    indexed_files: int


def stored_table(view: TableView, added_by_service: Collection[str]) -> StoredTable:
    """The description of a version of a table."""
    columns = view.columns
    return StoredTable(
        version=view.snapshot.version,
        columns=columns,
        key=view.key,
        added_by_service=tuple(name for name in columns if name in added_by_service),
        partitioned_by=view.partitioned_by,
        files=len(view.snapshot.files),
        bytes=view.bytes,
        rows=view.rows,
        files_with_vectors=view.files_with_vectors,
        indexed_files=view.indexed_files,
    )


@dataclass(frozen=True)
class SchemaChange:
    """When columns came or got wider types, in seconds since 1970; `made`: the table itself came then."""

    at: float
    made: bool
    added: Mapping[str, str]
    widened: Mapping[str, str]

    @staticmethod
    def between(before: Mapping[str, str], after: Mapping[str, str], at: float) -> SchemaChange:
        """The difference of two lists of columns (name to type); the first is empty if there was no table."""
        added = {name: kind for name, kind in after.items() if name not in before}
        widened = {name: kind for name, kind in after.items() if name in before and before[name] != kind}
        return SchemaChange(at, not before, added, widened)


class _Details:
    def __init__(self) -> None:
        self.commits: deque[Commit] = deque(maxlen=KEPT)
        self.schema_changes: deque[SchemaChange] = deque(maxlen=KEPT)
        self.reasons: Counter[str] = Counter()
        self.stored: Callable[[], StoredTable | None] = lambda: None


class TableDetails:
    """The details of all tables, from the start of the process on. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, _Details] = {}

    def committed(
        self,
        table: str,
        commit: Commit,
        reasons: Mapping[str, int],
        stored: Callable[[], StoredTable | None] | None = None,
    ) -> None:
        """Adds a commit. `reasons` counts its records put into quarantine; `stored` describes the table since then; it
        is called at each request, so it must only read memory."""
        with self._lock:
            details = self._of(table)
            details.commits.append(commit)
            details.reasons.update({reason: count for reason, count in reasons.items() if count})
            if stored is not None:
                details.stored = stored

    def schema_changed(self, table: str, change: SchemaChange) -> None:
        """Adds a change of the columns."""
        with self._lock:
            self._of(table).schema_changes.append(change)

    def forget(self, table: str) -> None:
        """Forgets `table`."""
        with self._lock:
            self._tables.pop(table, None)

    def as_json(self, table: str) -> dict[str, Any]:
        """The details of a table as JSON's types, the newest commits and changes first. `stored` is None before the
        first commit of this process."""
        with self._lock:
            details = self._tables.get(table) or _Details()
            commits, changes = list(details.commits), list(details.schema_changes)
            reasons, stored = dict(details.reasons), details.stored
        stored_values = stored()
        return {
            "commits": [asdict(one) for one in reversed(commits)],
            "schema_changes": [asdict(one) for one in reversed(changes)],
            "quarantined_by_reason": dict(sorted(reasons.items())),
            "stored": None if stored_values is None else {**asdict(stored_values), **_lists(stored_values)},
        }

    def _of(self, table: str) -> _Details:
        return self._tables.setdefault(table, _Details())


def _lists(stored: StoredTable) -> dict[str, list[str]]:
    return {name: list(getattr(stored, name)) for name in ("key", "added_by_service", "partitioned_by")}
