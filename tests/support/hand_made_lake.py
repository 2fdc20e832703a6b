"""A table whose log is written by hand, with the service's writer, read back by two independent readers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.delta_log import HandCommitter, HandMadeTable, field
from tests.support.delta_readers import read_by_deltalake, read_by_duckdb

from distributary.delta.commit import CommitPayload
from distributary.delta.data_file import FileOptions
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter

RECORD = CommitPayload("progress", "distributary", 1)
SMALL_GROUPS = FileOptions(group_rows=4)
SCHEMA = pa.schema({"id": pa.int64(), "v": pa.string()})


class HandMadeLake:
    """A table and a writer of it."""

    def __init__(self, path: Path, layout: RemovalLayout = RemovalLayout.VECTORS, **creation: Any) -> None:
        self.path = path / "table"
        self.cache = path / "cache"
        self.table = HandMadeTable(self.path).create(field("id", "long"), field("v", "string"), **creation)
        self.committer = HandCommitter(self.table)
        self.layout = layout
        self.writer = self.new_writer()

    def new_writer(self, options: FileOptions = SMALL_GROUPS) -> TableWriter:
        cache = IndexCache(self.cache, 2**24, 2**24)
        return TableWriter(
            TableFiles(str(self.path)), ["id"], self.committer, cache, layout=self.layout, options=options
        )

    def write(self, rows: Mapping[int, str | None], deleted: Sequence[int] = ()) -> int:
        upserts = pa.table({"id": list(rows), "v": list(rows.values())}, SCHEMA)
        return self.writer.write(upserts, pa.table({"id": pa.array(deleted, pa.int64())}), RECORD).version

    def rows(self) -> dict[int, str | None]:
        first, second = read_by_deltalake(self.path), read_by_duckdb(self.path)
        assert sorted(first, key=repr) == sorted(second, key=repr)
        found = {row["id"]: row["v"] for row in first}
        assert len(found) == len(first)
        return found

    def actions(self, kind: str) -> list[dict[str, Any]]:
        """The actions of the newest commit."""
        lines = (self.path / f"_delta_log/{self.table.version:020d}.json").read_text().splitlines()
        return [json.loads(line)[kind] for line in lines if line.startswith(f'{{"{kind}"')]
