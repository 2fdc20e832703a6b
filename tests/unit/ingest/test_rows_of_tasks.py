"""The same records give the same table, whether tasks write rows into data files or return all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.accumulators import Accumulator
from tests.support.decoding import raw_table
from tests.support.delta_log import HandCommitter, HandMadeTable, field
from tests.support.delta_readers import read_by_deltalake, read_by_duckdb
from tests.support.random_share import thorough_but
from tests.support.recorded import Record

from distributary.apply.apply_events import apply_events
from distributary.apply.memory import TableSpec, first_memory
from distributary.apply.task_rows import WrittenRows
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.delta.commit import CommitPayload
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.ingest.applied_writer import AppliedWriter
from distributary.ingest.decode_task import DecodeTask, UnionOfTexts, decoded_of, files_of
from distributary.ingest.task_results import read_results
from distributary.ingest.task_writer import TaskWriter
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema

SCHEMA = RecordSchema({"id": "bigint", "v": "string", "x": "double"}, {"id": "bigint"})
ROW = pa.struct([("id", pa.int64()), ("v", pa.string()), ("x", pa.float64())])
COLUMNS: Mapping[str, Any] = {
    "id": "long", "v": "string", "x": "double", "__op": "string", "__source_ts": "timestamp", "__position": "string",
    "__topic": "string", "__partition": "integer", "__offset": "long",
}  # fmt: skip
RECORD = CommitPayload("progress", "distributary", 1)
Change = tuple[str, int, int, str | None]
"""Operation, place in the source's log, key, and value of the column v."""


def reads(keys: Sequence[int], at: int = 1, v: str = "read") -> list[Change]:
    return [("r", at, number, v) for number in keys]


BATCHES: Sequence[Sequence[Change]] = (
    [*reads(range(20)), *reads([7])],
    [
        *reads(range(20, 40)),
        ("u", 10, 21, "b"),
        ("u", 11, 3, "b"),
        ("d", 12, 22, None),
        ("x", 12, 22, None),
        ("d", 13, 4, None),
    ],
    [("c", 20 + number, number, None) for number in range(50, 60)],
    [*reads([3, 5, 21, 30], 40, "again"), ("u", 41, 5, "c"), ("c", 42, 4, "made again")],
    reads(range(100, 110), 50, "second"),
    [*reads(range(110, 115), 60), ("t", 61, 0, None), ("c", 62, 1, "after")],
)


class Table:
    """A table and its memory. With `by_tasks`, tasks write all rows that they may; a task has up to five records."""

    def __init__(
        self, folder: Path, rules: RuleSettings, layout: RemovalLayout, *, has_feed: bool, mapped: bool, by_tasks: bool
    ) -> None:
        properties = {"delta.enableChangeDataFeed": "true"} if has_feed else {}
        kinds = [*COLUMNS.items(), *([("__deleted", "boolean")] if rules.marks_deleted else [])]
        fields = [field(name, kind, number=index if mapped else None) for index, (name, kind) in enumerate(kinds)]
        table = HandMadeTable(folder / "t").create(*fields, properties=properties)
        self._files = TableFiles(str(folder / "t"))
        cache = IndexCache(folder / "cache", 2**20, 2**20)
        self._writer = TableWriter(self._files, ["id"], HandCommitter(table), cache, layout=layout)
        self._spec = TableSpec(rules, "t", ROW, pa.struct([("id", pa.int64())]))
        self._memory = first_memory(self._spec, 1)
        self._by_tasks, self._offset = by_tasks, 0
        self.used = self.written = 0

    def take(self, batch: Sequence[Change]) -> list[str]:
        """Commits a batch. Returns the rows of the table, which two readers see."""
        records = [self._record(*change) for change in batch]
        findings = Accumulator(0, frozenset[str](), UnionOfTexts())
        task = DecodeTask(DecodeOptions("sqlserver"), SCHEMA, findings, writer=self._task_writer())
        pieces = [
            raw_table(records[index : index + 5]).combine_chunks().to_batches() for index in range(0, len(records), 5)
        ]
        results = read_results(pa.Table.from_batches([part for piece in pieces for part in task(iter(piece))]))
        nothing = Decoder(task.options).decode(raw_table([]), SCHEMA)
        decoded, files = decoded_of(results, findings.value, nothing), files_of(results)
        assert not decoded.rejected.num_rows
        columns = list(SCHEMA.row)
        rows = WrittenRows([file.places for file in files], lambda n: self._writer.read_file(files[n].file, columns))
        located = AppliedWriter(self._writer, self._spec)
        applied = apply_events(self._spec, self._memory, decoded.events, located, written=rows)
        located.write(applied, RECORD, [file.file for file in files])
        self.used, self.written = self.used + len(applied.files), self.written + len(files)
        first, second = read_by_deltalake(Path(self._files.root)), read_by_duckdb(Path(self._files.root))
        texts = [sorted(json.dumps(row, default=str, sort_keys=True) for row in found) for found in (first, second)]
        assert len(texts[0]) == len(texts[1])
        return texts[0]

    def _task_writer(self) -> TaskWriter | None:
        table = self._writer.snapshot
        if not self._by_tasks or (table.has_change_feed and table.files):
            return None
        marks = self._spec.rules.marks_deleted
        return TaskWriter(self._files, table, ("id",), ROW, "t", marks_deleted=marks, file_bytes=2**20, least_bytes=1)

    def _record(self, op: str, at: int, number: int, v: str | None) -> Record:
        self._offset += 1
        key = None if op == "t" else json.dumps({"id": number}).encode()
        lsn = f"00000027:{at:08x}:0003"
        source = {"connector": "sqlserver", "ts_ms": at, "commit_lsn": lsn, "change_lsn": None if op == "r" else lsn}
        after = {"id": number, "v": v, "x": number / 7} if op in "rcu" else None
        value = None if op == "x" else json.dumps({"op": op, "after": after, "source": source}).encode()
        return Record("t", 0, self._offset - 1, 1000 * at, key, value, ())


@pytest.mark.parametrize("layout", thorough_but(1, RemovalLayout))
@pytest.mark.parametrize(
    ("deletes", "truncate"), thorough_but(1, [("soft", "apply"), ("hard", "apply"), ("soft", "soft")], unpack=True)
)
@pytest.mark.parametrize(("has_feed", "mapped"), [(False, True), (True, False)])
def test_a_table_is_the_same_whoever_writes_its_rows(
    tmp_path: Path, layout: RemovalLayout, deletes: str, truncate: str, *, has_feed: bool, mapped: bool
) -> None:
    rules = RuleSettings("sqlserver", deletes=deletes, truncate=truncate)
    by_driver, by_tasks = (
        Table(tmp_path / name, rules, layout, has_feed=has_feed, mapped=mapped, by_tasks=name == "tasks")
        for name in ("driver", "tasks")
    )
    for batch in BATCHES:
        assert by_tasks.take(batch) == by_driver.take(batch)
    assert by_driver.written == 0
    assert 0 < by_tasks.used < by_tasks.written
