"""A Delta table of records that are written by hand, decoded and applied with the service's code. It needs no Java."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.model.delta_store import DeltaStore
from tests.support.decoding import raw_table
from tests.support.delta_readers import read_by_deltalake
from tests.support.kafka import Record as Sent
from tests.support.recorded import Record

from distributary.apply.apply_events import apply_events
from distributary.apply.memory import TableSpec, first_memory
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.delta.plan_write import RemovalLayout
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema, arrow_of

_TIME = 1_700_000_000_000


class TableOfRecords:
    """A table in an empty directory. `columns`: name to Spark type; `options`: how its records are decoded."""

    def __init__(
        self,
        path: Path,
        rules: RuleSettings,
        options: DecodeOptions,
        columns: Mapping[str, str],
        key: Iterable[str],
        *,
        layout: RemovalLayout = RemovalLayout.VECTORS,
        has_feed: bool = False,
        partitions: int = 1,
    ) -> None:
        self._schema = RecordSchema(columns, {name: columns[name] for name in key})
        row, of_key = (
            pa.struct([(name, arrow_of(kind)) for name, kind in found.items()])
            for found in (self._schema.row, self._schema.key)
        )
        self._spec = TableSpec(rules, "t", row, of_key)
        self._memory = first_memory(self._spec, partitions)
        self._decoder = Decoder(options)
        self._store = DeltaStore(path, self._spec, layout, has_feed=has_feed)
        self._path = path / "table"
        self._offset = 0
        self.rejected: list[str] = []
        """The reasons of rejected records."""

    def take(self, records: Iterable[Sent]) -> None:
        """Applies the records as one batch, behind all before."""
        made = []
        for one in records:
            headers = tuple(one.headers or ())
            made.append(
                Record("t", one.partition or 0, self._offset, _TIME + self._offset, one.key, one.value, headers)
            )
            self._offset += 1
        decoded = self._decoder.decode(raw_table(made), self._schema)
        self.rejected += decoded.rejected["reason"].to_pylist()
        applied = apply_events(self._spec, self._memory, decoded.events, self._store)
        assert not applied.changes.is_refused
        self._store.write(applied)

    def change_by_hand(self, change: Callable[[Path], None]) -> None:
        """Lets another writer change the table, by its path; it may add text columns."""
        change(self._path)
        names = [field.name for field in DeltaTable(self._path).schema().fields]
        of_service = {name for name in names if name.startswith("__")} - self._schema.key.keys()
        columns = {name: self._schema.row.get(name, "string") for name in names if name not in of_service}
        self._schema = RecordSchema(columns, self._schema.key)
        row = pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()])
        self._spec = replace(self._spec, row=row)
        self._store.open(self._spec)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """These columns of the rows, sorted, by an independent reader."""
        return sorted((tuple(one[name] for name in columns) for one in read_by_deltalake(self._path)), key=repr)

    def changes(self) -> list[tuple[int, str]]:
        """The change data feed: the version and the kind of each changed row."""
        found: list[tuple[int, str]] = []
        for log in sorted((self._path / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
            feed = [one["cdc"]["path"] for one in actions if "cdc" in one]
            for path in feed:
                kinds = pq.read_table(self._path / path, partitioning=None)["_change_type"].to_pylist()
                found += [(int(log.stem), kind) for kind in kinds]
            if not feed:  # readers infer the change from the files
                files = [(kind, one[kind]) for one in actions for kind in ("add", "remove") if kind in one]
                found += [(int(log.stem), kind) for kind, file in files if file["dataChange"]]
        return found
