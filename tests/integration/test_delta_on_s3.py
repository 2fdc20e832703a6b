"""The writer's data files, vectors and log on a real S3 API, through the same code as on a disk. Commits by Delta's own
log store on S3 are not part of it: the log is written by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import fs
from tests.support.decoding import plain_change, raw_table
from tests.support.delta_log import PROTOCOL_OF_VECTORS, field, metadata
from tests.support.faulty_store import Deed, Fault, FaultyStore
from tests.support.s3 import BUCKET, CREDENTIALS, REGION, Store, running_s3

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.delta.commit import CommitPayload, ConcurrentChange, concurrent_change
from distributary.delta.index_cache import IndexCache
from distributary.delta.log_reader import LogReader
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.error_mapping import classify
from distributary.errors import TableHalt, TransientError
from distributary.ingest.task_files import WrittenFiles
from distributary.ingest.task_writer import TaskWriter
from distributary.types.record_schema import RecordSchema


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with running_s3(tmp_path) as store:
        yield store


class StoreCommitter:
    """Commits to a table in the bucket; nobody else does."""

    def __init__(self, files: TableFiles) -> None:
        self.files = files
        self.version = -1

    def commit(
        self,
        seen: int,
        actions: Sequence[Mapping[str, Any]],
        record: CommitPayload,  # noqa: ARG002 - see Committer
        *,
        changes_rows: bool = True,  # noqa: ARG002
    ) -> int:
        if seen != self.version:
            raise concurrent_change(self.files.root, seen)
        self.version += 1
        lines = "\n".join(json.dumps(action) for action in actions)
        self.files.write(f"_delta_log/{self.version:020d}.json", lines.encode())
        return self.version

    def check(self, rows: pa.Table, constraints: Mapping[str, str]) -> None:  # noqa: ARG002
        assert not constraints

    def enable_vectors(self) -> None:
        raise AssertionError("the table has them")


def file_system(store: Store | FaultyStore) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        secret_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region=REGION,
        endpoint_override=store.endpoint,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )


def test_a_task_writes_rows_into_a_bucket(store: Store) -> None:
    files = TableFiles(f"{BUCKET}/t", file_system(store))
    schema, row = RecordSchema({"id": "bigint"}, {"id": "bigint"}), pa.struct([("id", pa.int64())])
    kinds = {"id": "long", "__op": "string", "__source_ts": "timestamp", "__position": "string", "__topic": "string"}
    fields = [field(name, kind) for name, kind in {**kinds, "__partition": "integer", "__offset": "long"}.items()]
    log = [{"protocol": PROTOCOL_OF_VECTORS}, metadata(fields)]
    StoreCommitter(files).commit(-1, log, CommitPayload("", "distributary", 1))
    table = LogReader(files).newest(None).snapshot
    made = TaskWriter(files, table, ("id",), row, "t", marks_deleted=False, file_bytes=1, least_bytes=1)
    in_task: TaskWriter = pickle.loads(pickle.dumps(made))  # as Spark sends it to executors
    records = [plain_change(number, {"id": number}, op="r") for number in range(3)]
    file = in_task.write(Decoder(DecodeOptions("sqlserver")).decode(raw_table(records), schema).events)
    assert file is not None
    with files.parquet(file.file.path) as parquet:
        assert parquet.read(["id"]).to_pylist() == [{"id": 0}, {"id": 1}, {"id": 2}]
    written = WrittenFiles([file], made)
    written.delete_unused()
    with pytest.raises(TableHalt, match="is not there"):
        files.parquet(file.file.path)


_OF_READING = ("list-type", r"GET .*\.json", r"GET .*\.bin", r"GET .*\.parquet")
_OF_WRITING = (r"(PUT|POST) .*\.parquet", r"(PUT|POST) .*\.bin")
_PASSES, _REFUSES = "storage-or-network", "storage-not-allowed"


@pytest.mark.parametrize(
    ("deed", "status", "codes"),
    [
        (Deed.REFUSE, 503, {_PASSES}),
        # A text of the refusal that is longer than what was to be read is no refusal for Arrow.
        (Deed.REFUSE, 403, {_PASSES, _REFUSES}),
        (Deed.CUT, 0, {_PASSES}),
    ],
)
def test_6_2_a_store_that_fails_is_waited_for(
    tmp_path: Path, store: Store, deed: Deed, status: int, codes: set[str]
) -> None:
    with FaultyStore(store.endpoint).standing() as faulty:
        files = TableFiles(f"{BUCKET}/t", file_system(faulty))
        committer, record = StoreCommitter(files), CommitPayload("", "distributary", 1)
        creation = metadata([field("id", "long"), field("v", "long")], (), {"delta.enableDeletionVectors": "true"})
        committer.commit(-1, [{"protocol": PROTOCOL_OF_VECTORS}, creation], record)

        def new_writer() -> TableWriter:
            cache = IndexCache(tmp_path / "i", 0, 0)
            return TableWriter(files, ["id"], committer, cache, layout=RemovalLayout.VECTORS)

        def write(count: int, value: int) -> None:
            rows = pa.table({"id": pa.array(range(count), pa.int64()), "v": pa.array([value] * count, pa.int64())})
            new_writer().write(rows, rows.select(["id"]).slice(0, 0), record)

        def read() -> list[int]:
            rows = new_writer().read_rows(pa.table({"id": pa.array([1, 5, 9], pa.int64())}), ["v"]).rows
            return sorted(rows["v"].to_pylist())

        write(10, 1)
        write(3, 2)
        found = set()
        for where in (*_OF_READING, *_OF_WRITING):
            fault = Fault(where, deed, status=status)
            with faulty.failing(fault), pytest.raises(OSError, match="AWS Error") as failed:
                write(4, 3) if where in _OF_WRITING else read()
            error = classify(failed.value)
            assert isinstance(error, TransientError), failed.value
            found.add(error.code)
            assert fault.met
        assert found == codes
        assert read() == [1, 1, 2]


def test_a_table_in_a_bucket_is_written_and_read_by_location(tmp_path: Path, store: Store) -> None:
    filesystem = file_system(store)
    files = TableFiles(f"{BUCKET}/some/where/t", filesystem)
    committer = StoreCommitter(files)
    fields = [field("id", "string"), field("v", "long"), field("p q", "string")]
    creation = metadata(fields, ["p q"], {"delta.enableDeletionVectors": "true"})
    record = CommitPayload("", "distributary", 1)
    committer.commit(-1, [{"protocol": PROTOCOL_OF_VECTORS}, creation], record)
    writer = TableWriter(
        files, ["id"], committer, IndexCache(tmp_path / "i", 2**20, 2**20), layout=RemovalLayout.VECTORS
    )

    def write(rows: dict[str, int], deleted: Sequence[str] = ()) -> None:
        parts = [f"a/{value % 2} %" for value in rows.values()]
        upserts = pa.table({"id": list(rows), "v": list(rows.values()), "p q": parts})
        writer.write(upserts, pa.table({"id": pa.array(deleted, pa.string())}), record)

    write({f"k{number}": number for number in range(100)})
    write({"k1": 1001, "k2": 1001, "new": 5}, ["k3", "nobody"])
    write({"k1": 1002})
    expected = {f"k{number}": number for number in range(4, 100)} | {"k0": 0, "k1": 1002, "k2": 1001, "new": 5}
    found = writer.read_rows(pa.table({"id": [*expected, "k3"]}), ["id", "v"])
    assert dict(zip(*(found.rows.column(name).to_pylist() for name in ("id", "v")), strict=True)) == expected
    table = DeltaTable(f"s3://{BUCKET}/some/where/t", storage_options=store.environment())
    rows = pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()).to_pylist()
    assert {row["id"]: row["v"] for row in rows} == expected
    assert {row["p q"] for row in rows} == {"a/0 %", "a/1 %"}

    again = TableWriter(files, ["id"], committer, IndexCache(tmp_path / "j", 2**20, 2**20))
    assert again.read_rows(pa.table({"id": ["k1", "k3"]}), ["v"]).rows.to_pylist() == [{"v": 1002}]
    committer.version += 1  # as if somebody had committed
    before = {info.path for info in filesystem.get_file_info(fs.FileSelector(files.root, recursive=True))}
    with pytest.raises(ConcurrentChange):
        write({"k1": 0})
    assert {info.path for info in filesystem.get_file_info(fs.FileSelector(files.root, recursive=True))} == before
    with pytest.raises(TableHalt, match="no Delta table"):
        TableWriter(TableFiles(f"{BUCKET}/none", filesystem), ["id"], committer, IndexCache(tmp_path, 0, 0)).sync()
