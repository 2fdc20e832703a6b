"""Both engines that commit a slice, Spark's MERGE and the `deltalake` library: the same slices make the same table and
the same progress, on one table they take turns, and what the library can't do is left to Spark."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.changes import Topic, key, row
from tests.support.kafka import Record
from tests.support.lake import read_table
from tests.support.spark import Bench, rows_of

from distributary import sql
from distributary.errors import TransientError
from distributary.merge import direct
from distributary.merge.clause import Clause, Rows
from distributary.merge.direct import DirectTable
from distributary.merge.flat import FlatKeys
from distributary.merge.log import log_of_spark
from distributary.merge.progress import Head, Progress, first_progress
from distributary.merge.table import LakeTable
from distributary.operate.worker import TableWorker

SPARK, LIBRARY = "Apache-Spark", "delta-rs"
Slices = list[list[Record]]


def engines(one: Bench) -> list[str]:
    """What wrote each commit since the table was made."""
    commits = sorted((one.table / "_delta_log").glob("*.json"))[1:]
    infos = [json.loads(line) for commit in commits for line in commit.read_text().splitlines() if "commitInfo" in line]
    return [info["commitInfo"]["engineInfo"].partition("/")[0].partition(":")[0] for info in infos]


def everything(one: Bench) -> list[dict[str, Any]]:
    """All rows with all columns, but for the topic's name, by key."""
    table = read_table(one.table)
    assert table is not None
    return sorted(table.drop_columns(["__topic"]).to_pylist(), key=lambda row: str(row["id"]))


def record(worker: TableWorker) -> dict[str, Any]:
    """The progress record, but for what names the topic and the commit."""
    progress = worker.progress
    assert isinstance(progress, Progress)
    return progress.model_dump(exclude={"topic", "topic_id", "commit"})


def slices(connector: str) -> Slices:
    """Slices of ordinary changes: a first fill, then updates, inserts, deletes, tombstones, key changes in two halves,
    deferred keys, records that are sent again, and a slice that changes nothing."""
    topic = Topic("", connector)
    parts: Slices = []

    def cut() -> None:
        parts.append(topic.records[sum(map(len, parts)) :])

    for number in range(1, 10):
        topic.change("c", key(number), row(number, f"first {number}"), at=number)
    topic.change("d", key(9), at=10)
    topic.tombstone(key(9))
    cut()
    topic.change("u", key(1), row(1, None), at=11)
    topic.change("c", key(20), row(20, "new"), at=12)
    topic.change("d", key(2), at=13)
    topic.tombstone(key(2))
    topic.change("u", key(3), row(3, "once"), at=14)
    topic.change("u", key(3), row(3, "twice"), at=15)
    topic.change("u", key(77), row(77, "unknown before"), at=16)
    # id = id + 1 in one transaction: the rows of 5 and 6 move on, their halves in two slices.
    topic.change("d", key(5), at=17, tx=900, headers={"newkey": key(6)})
    topic.change("c", key(6), row(6, "was 5"), at=17, step=2, tx=900, headers={"oldkey": key(5)})
    cut()
    topic.change("d", key(6), at=17, step=3, tx=900, headers={"newkey": key(7)})
    topic.change("c", key(7), row(7, "was 6"), at=17, step=4, tx=900, headers={"oldkey": key(6)})
    topic.tombstone(key(4))  # by itself: deletes
    cut()
    topic.change("u", key(8), row(8, "newer"), at=30)
    cut()
    parts.append(parts[1][:5])  # sent again: nothing comes back
    parts.append([topic.records[-1]])  # sent again: nothing changes
    return parts


def codecs(table: Path) -> set[str]:
    """How the columns of all files of a table are compressed."""
    read = [pq.ParquetFile(file).metadata for file in table.glob("*.parquet")]
    assert read
    return {file.row_group(0).column(at).compression for file in read for at in range(file.num_columns)}


def test_both_engines_compress_files_as_spark_does_by_default(make_bench: Callable[..., Bench]) -> None:
    for engine in ("deltalake", "spark"):
        one = make_bench(commit=engine).create()
        worker: TableWorker | None = None
        for part in slices("sqlserver")[:2]:
            worker = one.take([r._replace(topic=one.topic) for r in part], worker)
        assert codecs(one.table) == {"SNAPPY"}


@pytest.mark.parametrize(
    ("codec", "written"), [("zstd", "ZSTD"), ("GZIP", "GZIP"), ("none", "UNCOMPRESSED"), ("lz4_raw", "LZ4")]
)
def test_the_library_compresses_by_the_codec_that_spark_was_given(tmp_path: Path, codec: str, written: str) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    head = Head(write_empty(tmp_path, rows.schema), None)
    table = direct.DirectTable(str(tmp_path), codec)
    assert table.why_not(head) is None
    table.append(rows, head, first_progress("t", "id", "sqlserver", "upsert", ("id",)).next_commit())
    assert codecs(tmp_path) == {written}


def test_a_merge_looks_for_no_dictionary_where_each_row_has_another_value(tmp_path: Path) -> None:
    """That of a first append is worth it: a snapshot's rows may all have one position."""
    rows = pa.table({"id": [1, 2, 3], "v": ["x"] * 3, "__offset": [1, 2, 3], "__position": ["a", "b", "c"]})
    head = Head(write_empty(tmp_path, rows.schema), None)
    table = direct.DirectTable(str(tmp_path), "snappy")
    progress = first_progress("t", "id", "sqlserver", "upsert", ("id",))
    table.append(rows, head, progress.next_commit())
    assert dictionaries(tmp_path) == {"id", "v", "__offset", "__position"}
    keys = FlatKeys(pa.table({"k0": [2], "x0": ["y"]}), [Clause(Rows.BOTH, "true", {"v": "s.x0"})], 1)
    table.merge(keys, ["id"], Head(head.version + 1, None), progress.next_commit())
    assert dictionaries(tmp_path) == {"v"}
    assert rows_of(tmp_path, "id", "v") == [(1, "x"), (2, "y"), (3, "x")]


def dictionaries(table: Path) -> set[str]:
    """The columns of a table's files that have one."""
    files = [pq.read_metadata(path).row_group(0) for path in DeltaTable(table).file_uris()]
    columns = [file.column(at) for file in files for at in range(file.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_a_codec_that_the_library_does_not_have_leaves_the_table_to_spark(tmp_path: Path) -> None:
    head = Head(write_empty(tmp_path, pa.schema({"id": pa.int64()})), None)
    assert direct.DirectTable(str(tmp_path), "lzo").why_not(head) == "deltalake does not compress by lzo"


def write_empty(table: Path, schema: pa.Schema) -> int:
    """Makes a table without rows; gives its version."""
    return DeltaTable.create(str(table), schema).version()


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql"])
def test_both_engines_make_the_same_tables_and_the_same_progress(
    make_bench: Callable[..., Bench], session: SparkSession, connector: str
) -> None:
    by_library, by_spark = (make_bench(commit=name).create() for name in ("deltalake", "spark"))
    workers: dict[str, TableWorker | None] = {SPARK: None, LIBRARY: None}
    for part in slices(connector):
        for name, one in ((LIBRARY, by_library), (SPARK, by_spark)):
            workers[name] = one.take([r._replace(topic=one.topic) for r in part], workers[name])
        library, spark = workers[LIBRARY], workers[SPARK]
        assert library is not None
        assert spark is not None
        assert everything(by_library) == everything(by_spark)
        assert record(library) == record(spark)
    # A row of PostgreSQL may have left values at its old key: Spark looks for them, so key changes are its own.
    moves = [1, 2] if connector == "postgresql" else []
    assert engines(by_library) == [SPARK if number in moves else LIBRARY for number in range(6)]
    assert set(engines(by_spark)) == {SPARK}
    assert [(r["id"], r["v"]) for r in everything(by_spark)] == [
        *((1, None), (20, "new"), (3, "twice"), (6, "was 5"), (7, "was 6"), (77, "unknown before"), (8, "newer")),
    ]
    assert all(info.get("userMetadata") for info in by_spark_sees(session, by_library))


def by_spark_sees(session: SparkSession, one: Bench) -> list[dict[str, Any]]:
    """The table's history as Spark tells it, without the version that made it."""
    history = session.sql(f"DESCRIBE HISTORY delta.`{one.table}`")
    return [found.asDict() for found in history.where("version > 0").collect()]


ODD = "a b;'`\"ü"
TYPES = {
    ODD: "string", "d": "decimal(38,10)", "n": "timestamp_ntz", "z": "timestamp", "day": "date", "bin": "binary",
    "x": "double", "f": "float", "small": "smallint", "yes": "boolean",
}  # fmt: skip
SMALLEST = {
    ODD: "", "d": "-9999999999999999999999999999.9999999999", "n": "0001-01-01T00:00:00.000001",
    "z": "0001-01-01T00:00:00.000001Z", "day": "0001-01-01", "bin": "", "x": -0.0, "f": -3.4028234663852886e38,
    "small": -32768, "yes": False,
}  # fmt: skip
LARGEST = {
    ODD: "\U0001f600" * 40_000, "d": "9999999999999999999999999999.9999999999", "n": "9999-12-31T23:59:59.999999",
    "z": "9999-12-31T23:59:59.999999Z", "day": "9999-12-31", "bin": "AP//AA==", "x": 1.7976931348623157e308,
    "f": 1e-45, "small": 32767, "yes": True,
}  # fmt: skip
NOTHING = dict.fromkeys(TYPES)


def test_engines_take_turns_on_one_table_and_no_value_changes(
    make_bench: Callable[..., Bench], session: SparkSession
) -> None:
    one = make_bench(columns=TYPES, commit="deltalake").create()
    as_text = {"connector_properties": {"decimal.handling.mode": "string"}}
    one = replace(one, options={"source": {"topic_prefix": one.prefix, **as_text}})
    spark = replace(one, folder=one.folder / "spark", rule={**one.rule, "commit": "spark"})
    (spark.folder / "lake" / "dbo").mkdir(parents=True)
    one.table.parent.mkdir(parents=True)
    (spark.table).symlink_to(one.table)
    topic = Topic(one.topic)
    values = [SMALLEST, LARGEST, NOTHING]
    takers = [(one, one.worker()), (spark, spark.worker())]
    for at in range(1, 7):  # every row is made by one engine and written over by the other
        number = at % 3
        topic.change("c" if at < 4 else "u", key(number), {"id": number, **values[(at + (at - 1) // 3) % 3]}, at=at)
        taker, worker = takers[(at - 1) % 2]
        taker.take(topic.records[-1:], worker)
    assert engines(one) == [LIBRARY, SPARK] * 3
    found = read_table(one.table)
    assert found is not None
    by_spark = session.read.format("delta").load(str(one.table))
    seen = pa.table(by_spark.select(*(F.col(sql.name(name)) for name in found.column_names)).toArrow())
    assert sorted(seen.to_pylist(), key=by_id) == sorted(found.to_pylist(), key=by_id)
    # What readers skip by must be true of the values: each row is found by each of its values.
    for name, kind in TYPES.items():
        for expected in (SMALLEST, LARGEST):
            same = by_spark.where(f"{sql.name(name)} = CAST({literal(expected[name], kind)} AS {kind})")
            assert same.count() == 1, (name, kind)


def by_id(found: dict[str, Any]) -> int:
    return int(found["id"])


def literal(value: Any, kind: str) -> str:
    """A value of the wire as Spark SQL."""
    text = sql.text(str(value))
    return f"unbase64({text})" if kind == "binary" else text


def test_another_writer_in_between_loses_nothing_and_nothing_comes_twice(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_bench(commit="deltalake").create()
    topic = Topic(one.topic)
    topic.change("c", key(1), row(1, "one"), at=1)
    worker = one.take(topic.records)
    other = one.worker()
    topic.change("u", key(1), row(1, "two"), at=2)
    carrying = direct._carrying

    def late(progress: Progress) -> dict[str, Any]:
        monkeypatch.setattr(direct, "_carrying", carrying)
        one.take([], other)  # another driver takes the same slice while this one is about to commit
        return carrying(progress)

    monkeypatch.setattr(direct, "_carrying", late)
    with pytest.raises(TransientError, match="commit-lost"):
        one.take(topic.records[1:], worker)
    topic.change("c", key(2), row(2, "three"), at=3)
    one.take(topic.records[2:], worker)
    assert one.rows() == [(1, "two"), (2, "three")]
    assert set(engines(one)) == {LIBRARY}
    assert len(engines(one)) == 3


def test_what_the_library_can_not_do_is_sparks(
    make_bench: Callable[..., Bench], session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_bench(commit="auto").create()
    topic = Topic(one.topic)
    worker = None

    def take(value: str) -> None:
        nonlocal worker
        at = len(topic.records) + 1
        topic.change("u", key(1), row(1, value), at=at)
        worker = one.take(topic.records[-1:], worker)
        found = session.read.format("delta").load(str(one.table))  # the usual reader refuses the last feature
        assert [tuple(row) for row in found.select("id", "v").collect()] == [(1, value)]

    take("here")
    # Its own commit comes with a checkpoint; the next one is due two versions later.
    session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    take("no checkpoint yet")
    take("a checkpoint")
    assert json.loads((one.table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 4
    # Really failing: DataFusion does not know such a name.
    monkeypatch.setattr(direct, "_quoted", lambda name: f'"{name}?"')
    take("after a failure")
    monkeypatch.undo()
    take("and from then on")
    assert engines(one) == [LIBRARY, SPARK, LIBRARY, LIBRARY, SPARK, SPARK]
    worker = None  # a new start tries the library again
    take("a new start")
    session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    take("a feature that it refuses")
    assert engines(one)[6:] == [LIBRARY, SPARK, SPARK]


def test_the_librarys_checkpoint_says_what_the_log_says(
    make_bench: Callable[..., Bench], session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"delta.checkpointInterval": 4, "delta.columnMapping.mode": "name"}
    one = make_bench(commit="auto", properties=properties).create()
    topic = Topic(one.topic)
    worker = None
    for at in range(1, 7):
        number = at % 3
        topic.change("u" if at > 3 else "c", key(number), row(number, f"value {at}"), at=at)
        worker = one.take(topic.records[-1:], worker)
        if at == 1:
            worker._lake._checkpoint()
            monkeypatch.setattr(LakeTable, "_checkpoint", _not_by_spark)
    log = one.table / "_delta_log"
    assert not (log / "._last_checkpoint.crc").exists(), "Spark would take what the library wrote for broken"
    version = json.loads((log / "_last_checkpoint").read_text())["version"]
    assert 0 < version < DeltaTable(str(one.table)).version()
    shutil.copytree(one.table, tmp_path / "all", ignore=shutil.ignore_patterns("*checkpoint*", "*.crc"))
    shutil.copytree(one.table, tmp_path / "from there", ignore=shutil.ignore_patterns("*.crc"))
    for number in range(version + 1):
        (tmp_path / "from there" / "_delta_log" / f"{number:020d}.json").unlink()
    said = by_the_log(session, tmp_path / "all")
    assert all(said.values()), said
    assert by_the_log(session, tmp_path / "from there") == said


def test_a_checkpoint_that_does_not_come_about_leaves_the_commit_and_the_library(
    make_bench: Callable[..., Bench], session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_bench(commit="auto", properties={"delta.checkpointInterval": 1}).create()
    topic = Topic(one.topic)
    by_spark: list[object] = []
    monkeypatch.setattr(LakeTable, "_checkpoint", lambda self: by_spark.append(self))

    def take(worker: TableWorker | None, value: str) -> TableWorker:
        topic.change("u", key(1), row(1, value), at=len(topic.records) + 1)
        worker = one.take(topic.records[-1:], worker)
        assert [row["v"] for row in everything(one)] == [value]
        return worker

    worker = take(None, "first")
    looked = DirectTable.checkpoint

    def another_writer_comes(self: DirectTable, head: Head) -> bool:
        session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
        return looked(self, head)

    monkeypatch.setattr(DirectTable, "checkpoint", another_writer_comes)
    take(worker, "another writer's commit before the checkpoint")
    monkeypatch.setattr(DirectTable, "checkpoint", looked)
    assert by_spark == []
    with monkeypatch.context() as broken:
        broken.setattr(Path, "unlink", _disk_full)
        take(worker, "a full disk")
    assert len(by_spark) == 1
    take(worker, "room again")
    assert len(by_spark) == 1
    kept = "'delta.deletedFileRetentionDuration' = '30 days'"
    session.sql(f"ALTER TABLE delta.`{one.table}` SET TBLPROPERTIES ({kept})")
    take(worker, "a retention that the library takes for a week")
    assert len(by_spark) == 2
    assert engines(one)[-1] == LIBRARY


def _disk_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("age", "properties", "by_spark"),
    [
        (29, {}, 0),
        (32, {}, 1),
        (32, {"delta.enableExpiredLogCleanup": False}, 0),
        (10, {"delta.logRetentionDuration": "interval 8 days"}, 1),
        (3, {"delta.logRetentionDuration": "1 week"}, 0),
        (3, {"delta.logRetentionDuration": "interval 1 week 2 days"}, 1),
    ],
)
def test_spark_is_asked_to_clean_an_old_log_once_a_day(
    make_bench: Callable[..., Bench],
    monkeypatch: pytest.MonkeyPatch,
    age: int,
    properties: dict[str, Any],
    by_spark: int,
) -> None:
    one = make_bench(commit="auto", properties={"delta.checkpointInterval": 1, **properties}).create()
    topic = Topic(one.topic)
    asked: list[object] = []
    monkeypatch.setattr(LakeTable, "_checkpoint", lambda self: asked.append(self))
    worker = None
    for at in range(1, 4):
        topic.change("u", key(1), row(1, f"at {at}"), at=at)
        worker = one.take(topic.records[-1:], worker)
        first = one.table / "_delta_log" / f"{0:020d}.json"
        old = time.time() - age * 24 * 3600
        os.utime(first, (old, old))
    assert len(asked) == by_spark


def _not_by_spark(_self: object) -> None:
    raise AssertionError("the library writes it")


def by_the_log(session: SparkSession, table: Path) -> dict[str, Any]:
    """What Spark makes of a table's log."""
    _, snapshot = log_of_spark(session, str(table))
    return {
        "files": sorted(snapshot.allFiles().toJSON().collectAsList()),
        "removed": sorted(snapshot.tombstones().toJSON().collectAsList()),
        "transactions": snapshot.setTransactions().mkString(),
        "metadata": snapshot.metadata().json(),
        "protocol": snapshot.protocol().json(),
    }
