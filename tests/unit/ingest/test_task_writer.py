"""What a task writes into data files, and what it returns to the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.accumulators import Accumulator
from tests.support.decoding import plain_change, raw_table, struct_rows
from tests.support.delta_log import HandMadeTable, field
from tests.support.recorded import Record

from distributary.apply.task_rows import only_inserts
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.delta.log_reader import LogReader
from distributary.delta.storage import TableFiles
from distributary.ingest.decode_task import DecodeTask, UnionOfTexts, decoded_of, files_of
from distributary.ingest.task_results import read_results
from distributary.ingest.task_writer import TaskFile, TaskWriter
from distributary.types.record_schema import RecordSchema

SCHEMA = RecordSchema({"id": "bigint", "v": "string"}, {"id": "bigint"})
ROW = pa.struct([("id", pa.int64()), ("v", pa.string())])
SERVICE = {
    "__op": "string",
    "__source_ts": "timestamp",
    "__position": "string",
    "__topic": "string",
    "__partition": "integer",
    "__offset": "long",
}


def writer_of(folder: Path, *, nullable: bool = True) -> TaskWriter:
    """Writes any rows into the files of an empty table."""
    fields = [field("id", "long"), field("v", "string", nullable=nullable)]
    HandMadeTable(folder).create(*fields, *(field(name, kind) for name, kind in SERVICE.items()))
    files = TableFiles(str(folder))
    table = LogReader(files).newest(None).snapshot
    return TaskWriter(files, table, ("id",), ROW, "t", marks_deleted=False, file_bytes=2**30, least_bytes=1)


def record(offset: int, op: str, number: int, v: str | None = "a", **more: Any) -> Record:
    after = None if op == "d" else {"id": number, "v": v}
    return plain_change(offset, after, {"id": number}, op=op, **more)


def moved_to(offset: int, number: int) -> Record:
    """The create of a row under another key."""
    return replace(record(offset, "c", number), headers=(("__debezium.oldkey", b'{"id": 9}'),))


def ran(writer: TaskWriter, pieces: Sequence[Sequence[Record]]) -> tuple[Decoded, list[TaskFile]]:
    """What the driver gets of a task that decodes these pieces."""
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    task = DecodeTask(DecodeOptions("sqlserver"), SCHEMA, findings, writer=writer)
    batches = [raw_table(piece).combine_chunks().to_batches()[0] for piece in pieces]
    results = read_results(pa.Table.from_batches(list(task(iter(batches)))))
    nothing = Decoder(task.options).decode(raw_table([]), SCHEMA)
    return decoded_of(results, findings.value, nothing), files_of(results)


def places(file: TaskFile) -> list[tuple[int, int]]:
    return list(zip(file.places.partitions.tolist(), file.places.offsets.tolist(), strict=True))


def data_files(writer: TaskWriter) -> list[str]:
    return sorted(path.name for path in Path(writer.files.root).glob("*.parquet"))


def test_rows_of_a_snapshot_are_in_one_file_by_key_and_their_events_lack_them(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    pieces = [[record(0, "r", 5), record(1, "r", 3)], [record(2, "r", 4)]]
    decoded, [file] = ran(writer, pieces)
    assert data_files(writer) == [file.file.path]
    rows = pq.read_table(tmp_path / file.file.path)
    assert rows["id"].to_pylist() == [3, 4, 5]
    assert rows["__offset"].to_pylist() == [1, 2, 0]
    assert places(file) == [(0, 1), (0, 2), (0, 0)]
    assert file.file.row_count == 3
    assert file.file.stats["maxValues"]["id"] == 5
    assert struct_rows(decoded.events["row"]) == [None] * 3
    assert decoded.events["key"].to_pylist() == [{"id": 5}, {"id": 3}, {"id": 4}]


def test_other_changes_are_returned_with_their_rows(tmp_path: Path) -> None:
    pieces = [[record(0, "r", 1), record(1, "u", 2), record(2, "c", 3), record(3, "d", 4)], [record(4, "c", 5)]]
    decoded, [file] = ran(writer_of(tmp_path), pieces)
    assert places(file) == [(0, 0), (0, 4)]
    assert [row and row["id"] for row in struct_rows(decoded.events["row"])] == [None, 2, 3, None, None]
    assert decoded.events["offset"].to_pylist() == [0, 1, 2, 3, 4]


def test_too_few_bytes_for_a_file_are_returned_as_rows(tmp_path: Path) -> None:
    writer = replace(writer_of(tmp_path), least_bytes=2**20)
    decoded, files = ran(writer, [[record(0, "r", 1)]])
    assert (files, data_files(writer)) == ([], [])
    assert struct_rows(decoded.events["row"]) == [{"id": 1, "v": "a"}]


def test_the_file_of_a_task_that_was_lost_is_no_part_of_the_batch(tmp_path: Path) -> None:
    """Spark runs the task again. VACUUM removes the file, as that of any writer that was killed."""
    writer, records = writer_of(tmp_path), [record(0, "r", 1), record(1, "r", 2)]
    lost = ran(writer, [records])[1]
    decoded, files = ran(writer, [records])
    assert len(data_files(writer)) == 2
    assert [file.file.path for file in files] != [file.file.path for file in lost]
    assert decoded.events.num_rows == len(places(files[0])) == 2


def test_a_task_writes_a_file_whenever_it_has_enough_bytes(tmp_path: Path) -> None:
    writer = replace(writer_of(tmp_path), file_bytes=2_000, least_bytes=2_000)
    decoded, files = ran(writer, [[record(number, "r", number, "x" * 1_500)] for number in range(5)])
    assert [len(places(file)) for file in files] == [2, 2]
    assert [row and row["id"] for row in struct_rows(decoded.events["row"])] == [None] * 4 + [4]


def test_rows_that_can_not_be_written_are_the_drivers(tmp_path: Path) -> None:
    refused = writer_of(tmp_path / "refused", nullable=False)
    decoded, files = ran(refused, [[record(0, "r", 1), record(1, "r", 2, None)]])
    assert (files, data_files(refused)) == ([], [])
    assert [row and row["id"] for row in struct_rows(decoded.events["row"])] == [1, 2]
    (tmp_path / "file").write_text("in place of a directory")
    broken = replace(refused, files=TableFiles(str(tmp_path / "file")))
    assert ran(broken, [[record(0, "r", 1)]])[1] == []


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        ([record(0, "r", 1), record(1, "c", 2)], [True, True]),
        ([record(0, "c", 1), record(1, "u", 1)], [False, False]),
        ([record(0, "r", 1), record(1, "u", 2)], [True, False]),
        ([record(0, "r", 1), Record("t", 0, 1, 0, b'{"id": 2}', None, ())], [True, False]),
        # A key change: its other half may be in another batch.
        ([moved_to(0, 1), record(1, "c", 2)], [False, True]),
    ],
)
def test_rows_to_write_are_those_of_snapshots_and_of_inserts_alone(records: list[Record], chosen: list[bool]) -> None:
    events = Decoder(DecodeOptions("sqlserver")).decode(raw_table(records), SCHEMA).events
    assert only_inserts(events, ["id"]).tolist() == chosen


def test_rows_that_lack_a_value_are_not_written() -> None:
    source = {"connector": "postgresql", "lsn": 1, "txId": 1, "ts_ms": 1}
    values = ("__debezium_unavailable_value", "a")
    records = [record(index, "r", index, v, source=source) for index, v in enumerate(values)]
    events = Decoder(DecodeOptions("postgresql")).decode(raw_table(records), SCHEMA).events
    assert only_inserts(events, ["id"]).tolist() == [False, True]
