"""Rows in a real Delta table, written by location; the log is hand-written JSON, so no Java is needed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import Schema
from tests.support.delta_log import HandCommitter, HandMadeTable, field
from tests.support.delta_readers import read_by_deltalake

from distributary.apply.apply_events import Applied
from distributary.apply.memory import TableSpec
from distributary.delta.commit import CommitPayload
from distributary.delta.compaction import next_file_group
from distributary.delta.data_file import FileOptions
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.ingest.applied_writer import AppliedWriter
from distributary.rules.order import compare
from distributary.rules.position_text import read_position

_SERVICE = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "integer",
    "__offset": "long",
}
_OF_MODE: dict[str, dict[str, Any]] = {
    "history": {"__start_at": "string", "__end_at": "string", "__current": "boolean", "__moved_from": "string"},
    "append": {"__unavailable": {"type": "array", "elementType": "string", "containsNull": True}},
}
Row = dict[str, Any]


class DeltaStore:
    """The table of one layout in an empty directory; `kind` is how its files are changed, `has_feed`: readers follow
    its changes."""

    def __init__(self, path: Path, spec: TableSpec, kind: RemovalLayout, *, has_feed: bool = False) -> None:
        self._path, self._spec = path / "table", spec
        columns = json.loads(Schema.from_arrow(pa.schema(list(spec.row))).to_json())["fields"]
        kinds: dict[str, Any] = {column["name"]: column["type"] for column in columns}
        kinds |= _SERVICE | _OF_MODE.get(spec.rules.mode, {"__deleted": "boolean"} if spec.rules.marks_deleted else {})
        properties = {"delta.enableChangeDataFeed": "true"} if has_feed else None
        fields = (field(name, kind) for name, kind in kinds.items())
        self._table = HandMadeTable(self._path).create(*fields, properties=properties)
        self._kind, self._cache = kind, IndexCache(path / "cache", 2**20, 2**20)
        self._sequence = 0
        self.open()

    def open(self, spec: TableSpec | None = None) -> None:
        """Opens the table; with a `spec` again, after another writer wrote to it."""
        self._spec = spec or self._spec
        self._writer = TableWriter(
            TableFiles(str(self._path)),
            [part.name for part in self._spec.key],
            HandCommitter(self._table),
            self._cache,
            layout=self._kind,
            options=FileOptions(group_rows=3),
        )
        self._applied = AppliedWriter(self._writer, self._spec)

    @property
    def rows(self) -> Sequence[Row]:
        """See Store; read by an independent reader."""
        rows = read_by_deltalake(self._path)
        return sorted(rows, key=cmp_to_key(self._order)) if self._spec.rules.mode == "history" else rows

    def _order(self, one: Row, other: Row) -> int:
        """Versions of a key follow each other: none begins before the one before it has ended."""
        ends = one["__end_at"], other["__end_at"]
        if None in ends or ends[0] == ends[1]:
            return (ends[0] is None) - (ends[1] is None) or one["__offset"] - other["__offset"]
        first, second = (read_position(self._spec.rules.connector, end) for end in ends)
        assert first is not None
        assert second is not None
        return compare(self._spec.rules.connector, first, second)

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        """See Store."""
        return self._applied.read(keys, columns)

    def snapshot_positions(self, keys: pa.StructArray) -> Collection[str] | None:
        """See Store."""
        return self._applied.snapshot_positions(keys)

    def write(self, applied: Applied) -> None:
        """See Store."""
        self._sequence += 1
        self._applied.write(applied, CommitPayload("progress", "distributary", self._sequence))
        if self._sequence % 3 == 0 and (piece := next_file_group(self._writer.snapshot.files.values(), 2**20)):
            self._writer.compact(piece, CommitPayload("progress", "distributary", self._sequence))
