"""The writer on tables of Spark's Delta, mixed with Spark's own commands; Spark reads the result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.support.delta_readers import read_by_deltalake, read_by_duckdb

from distributary.delta.checkpoint import LogCheckpointer
from distributary.delta.commit import CommitPayload, ConcurrentChange
from distributary.delta.index_cache import IndexCache
from distributary.delta.live_file import LiveFile
from distributary.delta.log_reader import LogReader
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.errors import TableHalt
from distributary.launch.classes import java_class

PLENTY = 2**28


class SparkLake:
    """A table that Spark made, a writer of it, and a dict with the rows that it must have."""

    def __init__(
        self,
        session: SparkSession,
        path: Path,
        columns: str = "id BIGINT, v STRING",
        extra: str = "",
        **properties: str,
    ) -> None:
        self.session, self.path = session, path / "table"
        self.cache = path / "cache"
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        settings = f"TBLPROPERTIES ({listed})" if listed else ""
        session.sql(f"CREATE TABLE delta.`{self.path}` ({columns}) USING delta {extra} {settings}")
        self.files = TableFiles(str(self.path))
        self.committer = DeltaCommitter(session, str(self.path), self.files)
        self.expected: dict[int, str | None] = {}
        self.sequence = 0
        self.writer = self.new_writer()

    def new_writer(self, layout: RemovalLayout = RemovalLayout.VECTORS) -> TableWriter:
        return TableWriter(self.files, ["id"], self.committer, IndexCache(self.cache, PLENTY, PLENTY), layout=layout)

    def record(self) -> CommitPayload:
        self.sequence += 1
        return CommitPayload(json.dumps({"distributary": {"sequence": self.sequence}}), "distributary", self.sequence)

    def write(self, rows: Mapping[int, str | None], deleted: Sequence[int] = ()) -> int:
        upserts = pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(list(rows.values()), pa.string())})
        done = self.writer.write(upserts, pa.table({"id": pa.array(deleted, pa.int64())}), self.record())
        for key in deleted:
            self.expected.pop(key, None)
        self.expected.update(rows)
        return done.version

    def sql(self, text: str) -> list[Any]:
        return self.session.sql(text.replace("TABLE_", f"delta.`{self.path}`")).collect()

    def check(self, *, by_spark: bool = True) -> None:
        """deltalake, DuckDB and Spark, which takes longest, read what must be there."""
        expected = sorted(self.expected.items())
        for read in (read_by_deltalake, read_by_duckdb):
            assert sorted((row["id"], row["v"]) for row in read(self.path)) == expected
        if by_spark:
            assert sorted((row["id"], row["v"]) for row in self.sql("SELECT id, v FROM TABLE_")) == expected


def test_writes_continue_between_spark_s_own_commands(session: SparkSession, tmp_path: Path) -> None:
    """A DELETE, UPDATE, OPTIMIZE, MERGE, RESTORE and a checkpoint of somebody else's, each between two writes."""
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "5"})
    lake.write(dict.fromkeys(range(1_000), "a"))
    lake.write(dict.fromkeys(range(0, 1_000, 10), "b"), list(range(5, 1_000, 10)))
    lake.check()

    lake.sql("DELETE FROM TABLE_ WHERE id % 10 = 1")
    lake.expected = {key: value for key, value in lake.expected.items() if key % 10 != 1}
    with pytest.raises(ConcurrentChange):
        lake.write({2: "lost"})
    lake.writer.sync()
    lake.expected.pop(2)
    lake.write({1: "back", 2: "c"}, [3, 11])
    lake.check(by_spark=False)

    lake.sql("UPDATE TABLE_ SET v = 'u' WHERE id % 7 = 0")
    lake.expected = {key: "u" if key % 7 == 0 else value for key, value in lake.expected.items()}
    lake.writer.sync()
    lake.write({7: "d", 2_000: None}, [14, 28])
    lake.check(by_spark=False)

    restored = dict(lake.expected)
    before = lake.writer.snapshot.version
    lake.sql("OPTIMIZE TABLE_")
    lake.writer.sync()
    lake.write({8: "e"}, [7, 1])
    lake.check(by_spark=False)

    lake.sql(
        "MERGE INTO TABLE_ t USING (SELECT explode(array(8L, 3000L)) AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')"
    )
    lake.expected |= {8: "m", 3_000: "n"}
    lake.writer.sync()
    lake.write({3_000: "f", 8: None})
    lake.check()

    lake.sql(f"RESTORE TABLE TABLE_ TO VERSION AS OF {before}")
    lake.expected = restored
    lake.writer.sync()
    lake.write({7: "g", 1: "h"}, [2_000])
    lake.check(by_spark=False)

    lake.sql("UPDATE TABLE_ SET v = 'last' WHERE id = 7")
    lake.expected[7] = "last"
    lake.writer = lake.new_writer()
    known = LogReader(lake.files).newest().snapshot
    assert known.files.keys() == {file["path"] for file in live_files(lake)}
    lake.write({7: "i"})
    lake.check()


def live_files(lake: SparkLake) -> list[dict[str, Any]]:
    """As Spark's own snapshot has them."""
    jvm = lake.session._jvm
    assert jvm is not None
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(lake.session._jsparkSession, str(lake.path))
    return [json.loads(text) for text in log.unsafeVolatileSnapshot().allFiles().toJSON().collectAsList()]


def test_each_commit_carries_its_record(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path)
    lake.write({1: "a"})
    version = lake.writer.write(None, None, CommitPayload("only progress", "distributary", 7)).version
    history = lake.sql("DESCRIBE HISTORY TABLE_")
    texts = {row["version"]: row["userMetadata"] for row in history}
    assert texts[1] == '{"distributary": {"sequence": 1}}'
    assert (version, texts[2]) == (2, "only progress")
    (count,) = (action["txn"] for action in LogReader(lake.files).read_commit(2) or () if "txn" in action)
    assert (count["appId"], count["version"]) == ("distributary", 7)


def test_an_append_that_spark_would_rebase_on_is_a_concurrent_change(session: SparkSession, tmp_path: Path) -> None:
    """Also where it comes in the middle of the commit, and also for a commit of nothing but the record."""
    lake = SparkLake(session, tmp_path)
    lake.write({1: "a"})
    for rows in ({1: "lost"}, dict[int, str]()):
        with in_between(lake, "INSERT INTO TABLE_ VALUES (2, 'x')"), pytest.raises(ConcurrentChange):
            lake.write(rows)
        lake.writer.sync()
    found = sorted((row["id"], row["v"]) for row in lake.sql("SELECT * FROM TABLE_"))
    assert found == [(1, "a"), (2, "x"), (2, "x")]


@contextmanager
def in_between(lake: SparkLake, text: str) -> Iterator[None]:
    """Runs a statement between the start of the writer's transaction and its commit."""
    java_actions = lake.committer._java_actions

    def interrupted(actions: Sequence[Mapping[str, Any]], record: CommitPayload) -> Any:
        lake.sql(text)
        return java_actions(actions, record)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lake.committer, "_java_actions", interrupted)
        yield


def test_a_commit_whose_reply_was_lost_is_found_in_the_log(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true"})
    lake.write({1: "a"})
    put = lake.committer._put

    def lose_reply(*given: Any) -> int:
        put(*given)
        raise OSError(104, "Connection reset by peer")

    monkeypatch.setattr(lake.committer, "_put", lose_reply)
    assert lake.write({1: "b"}) == 2
    monkeypatch.undo()
    assert lake.write({1: "c"}) == 3
    lake.check()


def test_another_s_commit_in_place_of_a_lost_one_is_reported(session: SparkSession, tmp_path: Path) -> None:
    """The commit failed, and the version that it would have made is somebody else's."""
    lake = SparkLake(session, tmp_path)
    lake.write({1: "a"})
    lake.sql("INSERT INTO TABLE_ VALUES (2, 'x')")
    with pytest.raises(ConcurrentChange):
        lake.committer._is_there(2, "no such transaction", OSError())
    assert lake.committer._is_there(3, "no such transaction", OSError()) is False


def test_vectors_are_turned_on_when_they_are_needed(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "false"})
    lake.writer = lake.new_writer(RemovalLayout.REWRITE)
    lake.write({1: "a", 2: "a", 3: "a"})
    lake.write({1: "b"})
    assert not lake.writer.snapshot.allows_vectors
    lake.writer = lake.new_writer(RemovalLayout.VECTORS)
    lake.write({2: "b"})
    assert lake.writer.snapshot.allows_vectors
    assert list(lake.path.glob("*.bin"))
    lake.check()


def test_a_mapped_partitioned_table_is_written(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(
        session,
        tmp_path,
        "id BIGINT, `a b` STRUCT<x: INT, y: ARRAY<STRING>>, day DATE, t TIMESTAMP, v STRING",
        "PARTITIONED BY (day, t)",
        **{"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )
    lake.sql(
        "INSERT INTO TABLE_ SELECT id, named_struct('x', CAST(id AS INT), 'y', array('p', NULL)),"
        " DATE'2020-01-01', TIMESTAMP'2020-01-01 10:00:00', 'old' FROM range(20)"
    )
    lake.sql("ALTER TABLE TABLE_ RENAME COLUMN v TO `v.1`")
    lake.sql("ALTER TABLE TABLE_ ADD COLUMN z DECIMAL(10, 2)")
    lake.writer.sync()
    schema = lake.writer.snapshot.schema.arrow
    old = lake.writer.read_rows(pa.table({"id": [3]}), schema.names)
    (row,) = old.rows.to_pylist()
    assert (row["a b"], row["v.1"], row["z"]) == ({"x": 3, "y": ["p", None]}, "old", None)
    changed = [
        {**row, "v.1": "new", "z": 5},
        {**row, "id": 99, "a b": None, "day": None, "v.1": ""},
        {**row, "id": 4, "t": row["t"].replace(hour=11, microsecond=7)},
    ]
    lake.writer.write(pa.Table.from_pylist(changed, schema), pa.table({"id": [5]}), lake.record())
    found = {one["id"]: one.asDict(recursive=True) for one in lake.sql("SELECT * FROM TABLE_")}
    assert sorted(found) == sorted({*range(20), 99} - {5})
    assert found[3]["v.1"] == "new"
    assert str(found[3]["z"]) == "5.00"
    assert found[99] == {"id": 99, "a b": None, "day": None, "t": row["t"].replace(tzinfo=None), "v.1": "", "z": None}
    assert found[4]["t"] == row["t"].replace(hour=11, microsecond=7, tzinfo=None)
    only = lake.sql("SELECT id FROM TABLE_ WHERE t = TIMESTAMP'2020-01-01 11:00:00.000007'")
    assert [one["id"] for one in only] == [4]
    lake.sql("OPTIMIZE TABLE_")
    assert len(lake.sql("SELECT * FROM TABLE_")) == 20


def test_clustered_and_widened_tables_are_written(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(
        session,
        tmp_path,
        "id INT, v STRING",
        "CLUSTER BY (id)",
        **{"delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true"},
    )
    lake.sql("INSERT INTO TABLE_ SELECT CAST(id AS INT), 'a' FROM range(100)")
    lake.sql("ALTER TABLE TABLE_ ALTER COLUMN id TYPE BIGINT")
    lake.writer.sync()
    lake.expected = dict.fromkeys(range(100), "a")
    lake.write({5: "b", 2**40: "c"}, [6])
    found = sorted((row["id"], row["v"]) for row in lake.sql("SELECT * FROM TABLE_"))
    assert found == sorted(lake.expected.items())
    lake.sql("OPTIMIZE TABLE_ FULL")
    found = sorted((row["id"], row["v"]) for row in lake.sql("SELECT * FROM TABLE_ WHERE id > 4"))
    assert found == sorted((key, value) for key, value in lake.expected.items() if key > 4)
    lake.writer.sync()
    lake.write({5: "d"})
    assert lake.sql("SELECT v FROM TABLE_ WHERE id = 5")[0]["v"] == "d"


@pytest.mark.parametrize(
    ("columns", "properties", "named"),
    [
        ("id BIGINT, v STRING", {"delta.enableRowTracking": "true"}, "rowTracking"),
        ("id BIGINT, v STRING, g BIGINT GENERATED ALWAYS AS (id + 1)", {}, "the column g is generated"),
        ("id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING", {}, "the column id is an identity column"),
        ("id BIGINT, v VARCHAR(5)", {}, "the column v has a limited length"),
    ],
)
def test_tables_of_spark_that_can_not_be_honoured_are_refused(
    session: SparkSession, tmp_path: Path, columns: str, properties: Mapping[str, str], named: str
) -> None:
    lake = SparkLake(session, tmp_path, columns, **properties)
    with pytest.raises(TableHalt, match=named):
        assert lake.writer.snapshot.schema


def test_what_spark_keeps_of_a_constraint_is_kept(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path, "id BIGINT NOT NULL, v STRING")
    with pytest.raises(TableHalt, match="column id must not be NULL"):
        lake.writer.write(pa.table({"id": pa.array([None], pa.int64()), "v": ["a"]}), None, lake.record())
    lake.write({1: "a"})
    lake.sql("ALTER TABLE TABLE_ ADD CONSTRAINT positive CHECK (id > 0 AND v < 'x')")
    lake.writer.sync()
    lake.write({2: "b"})
    for broken in ("y", None):  # Spark itself refuses NULL, too
        with pytest.raises(TableHalt, match=r"constraint positive .* does not hold for 1 of the batch's rows"):
            lake.write({3: "c", 4: broken})
        value = "NULL" if broken is None else f"'{broken}'"
        with pytest.raises(Exception, match="positive"):
            lake.sql(f"INSERT INTO TABLE_ VALUES (4, {value})")
    lake.write({3: "c"})


def test_one_job_looks_at_all_constraints_and_names_the_first_broken(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path)
    rows = pa.table({
        "id": [1, 2, 3, 4], "v": ["a", "b", None, "c"], "a b": [1, -1, -1, 1],
        "__partition": pa.array([1, 1, 0, 0], pa.int32()), "__offset": [7, 8, 12, 10],
    })  # fmt: skip
    holding = {"at_home": "id > 0", "big": "id < 100", "named": "coalesce(v, 'x') <> ''"}
    session.sparkContext.setJobGroup("constraints", "")
    lake.committer.check(rows, holding)
    assert len(session.sparkContext.statusTracker().getJobIdsForGroup("constraints")) == 1
    with pytest.raises(TableHalt) as halt:
        lake.committer.check(rows, {**holding, "negative": "`a b` > 0 OR id > 9", "some": "v >= 'b'"})
    assert "constraint negative (`a b` > 0 OR id > 9) does not hold for 2 of" in halt.value.message
    assert halt.value.message.endswith("the first one at partition 0 and offset 12")
    with pytest.raises(TableHalt) as halt:
        lake.committer.check(rows.select(["id", "v"]), {**holding, "some": "v >= 'b'"})
    assert halt.value.message.endswith("constraint some (v >= 'b') does not hold for 2 of the batch's rows")
    with pytest.raises(TableHalt, match=r"constraint guard .* does not hold for 1 of"):
        lake.committer.check(rows, {"guard": "id <> 2", "divides": "10 / (id - 2) < 100"})


def test_the_change_data_feed_tells_old_and_new_rows(session: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    lake = SparkLake(session, tmp_path, "id BIGINT, v STRING, p INT", "PARTITIONED BY (p)", **properties)

    def write(layout: RemovalLayout, rows: list[tuple[int, str, int]], deleted: Sequence[int]) -> int:
        lake.writer = lake.new_writer(layout)
        columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "v", "p"))}
        upserts = pa.Table.from_pydict(columns, lake.writer.snapshot.schema.arrow)
        return lake.writer.write(upserts, pa.table({"id": pa.array(deleted, pa.int64())}), lake.record()).version

    first = write(RemovalLayout.VECTORS, [(number, "a", number % 2) for number in range(10)], [])
    write(RemovalLayout.VECTORS, [(1, "b", 0), (77, "b", 1)], [2, 99])
    last = write(RemovalLayout.REWRITE, [(3, "c", 1)], [1])
    options = {"readChangeFeed": "true", "startingVersion": str(first + 1), "endingVersion": str(last)}
    found = session.read.format("delta").options(**options).load(str(lake.path)).collect()
    answer = sorted((row["_commit_version"], row["_change_type"], row["id"], row["v"], row["p"]) for row in found)
    versions = sorted({row[0] for row in answer})
    assert [(versions.index(row[0]), *row[1:]) for row in answer] == [
        (0, "delete", 2, "a", 0),
        (0, "insert", 77, "b", 1),
        (0, "update_postimage", 1, "b", 0),
        (0, "update_preimage", 1, "a", 1),
        (1, "delete", 1, "b", 0),
        (1, "update_postimage", 3, "c", 1),
        (1, "update_preimage", 3, "a", 1),
    ]


@pytest.mark.parametrize(
    ("columns", "extra", "library"),
    [("id BIGINT, v STRING", "", True), ("id BIGINT, v STRING", "CLUSTER BY (id)", False)],
)
def test_checkpoints_are_written_between_commits(
    session: SparkSession, tmp_path: Path, columns: str, extra: str, library: bool
) -> None:
    """By the library, or by Spark where the table has what the library was not tried with."""
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"}
    lake = SparkLake(session, tmp_path, columns, extra, **properties)
    keeper = LogCheckpointer(session, str(lake.path), lake.files)
    lake.write(dict.fromkeys(range(50), "a"))
    assert not keeper.is_due(lake.writer.snapshot)
    for value in "bcde":
        lake.write({1: value}, [ord(value) - 50])
    log = lake.path / "_delta_log"
    assert not list(log.glob("*.checkpoint*"))
    before = lake.writer.snapshot
    assert keeper.is_due(before)
    keeper.checkpoint(before)
    assert not keeper.is_due(before)
    (written,) = log.glob("*.checkpoint*.parquet")
    by_library = b"parquet-mr" not in written.read_bytes()
    assert by_library == library
    for version in range(before.version):
        (log / f"{version:020d}.json").unlink()
        (log / f".{version:020d}.json.crc").unlink(missing_ok=True)
    jvm = session._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    after = LogReader(lake.files).newest().snapshot
    assert after.files == {path: LiveFile({**file.action, "dataChange": after.files[path].action["dataChange"]})
                           for path, file in before.files.items()}  # fmt: skip
    lake.writer = lake.new_writer()
    lake.write({2: "f"})
    found = sorted((row["id"], row["v"]) for row in lake.sql("SELECT * FROM TABLE_"))
    assert found == sorted(lake.expected.items())


def test_a_table_that_came_in_anothers_place_at_the_same_version_is_noticed(
    session: SparkSession, tmp_path: Path
) -> None:
    """As when a backup is put back by hand: Delta's own snapshot of that version is of the former table."""
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true"})
    assert lake.write({1: "former"}) == 1
    other = tmp_path / "other"
    write_deltalake(other, pa.table({"id": pa.array([7], pa.int64()), "v": ["kept"]}))
    write_deltalake(other, pa.table({"id": pa.array([8], pa.int64()), "v": ["kept too"]}), mode="append")
    shutil.rmtree(lake.path)
    other.rename(lake.path)
    lake.writer = lake.new_writer(RemovalLayout.REWRITE)
    lake.expected = {7: "kept", 8: "kept too"}
    assert lake.write({1: "new"}, [8]) == 2
    lake.check()


def test_commits_of_one_writer_do_not_make_delta_list_the_log(session: SparkSession, tmp_path: Path) -> None:
    """A file with the name of a later commit, which only a listing finds, is met by none of them."""
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true"})
    lake.write({1: "a"})
    (lake.path / "_delta_log" / f"{9:020d}.json").write_text("{}", encoding="utf-8")
    for version, value in enumerate("bcd", 2):
        assert lake.write({1: value}) == version


def test_the_checksum_of_a_commit_does_not_list_the_table_s_files(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path)
    lake.write({1: "a"})
    version = lake.write({2: "b"})
    checksum = json.loads((lake.path / f"_delta_log/{version:020d}.crc").read_text(encoding="utf-8"))
    assert checksum["numFiles"] == 2
    assert "allFiles" not in checksum


def test_local_commits_start_no_processes(session: SparkSession, tmp_path: Path) -> None:
    """Hadoop's default would start twenty for each: `readlink` and `chmod`."""
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true"})
    lake.write({1: "a"})
    log = tmp_path / "started"
    with starts_logged(session, log):
        lake.write({1: "b"})
        java_class(session, "java.lang.ProcessBuilder")(["true"]).start().waitFor()
    assert log.read_text(encoding="utf-8").splitlines() == ["true"]


@contextmanager
def starts_logged(session: SparkSession, log: Path) -> Iterator[None]:
    """Logs the processes that Java starts meanwhile, by its own flight recorder."""
    jvm = session._jvm
    assert jvm is not None
    recording = jvm.jdk.jfr.Recording()
    recording.enable("jdk.ProcessStart")
    recording.start()
    try:
        yield
    finally:
        recording.stop()
        dump = jvm.java.io.File(str(log.with_suffix(".jfr"))).toPath()
        recording.dump(dump)
        events = jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(dump)
        log.write_text("".join(f"{event.getString('command')}\n" for event in events), encoding="utf-8")


def test_vacuum_keeps_what_is_live(session: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(session, tmp_path, **{"delta.enableDeletionVectors": "true"})
    lake.write(dict.fromkeys(range(50), "a"))
    for value in "bcd":
        lake.write({1: value}, [ord(value) % 50])
    assert len(list(lake.path.glob("*.bin"))) == 3
    own = session.newSession()
    own.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    own.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    own.sql(f"VACUUM delta.`{lake.path}` RETAIN 0 HOURS")
    assert len(list(lake.path.glob("*.bin"))) == 1
    lake.writer = lake.new_writer()
    lake.write({2: "e"})
    lake.check()
