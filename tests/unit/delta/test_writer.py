"""The writer on a table whose log is written by hand; two independent readers check the result."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.delta_log import HandCommitter, HandMadeTable, field
from tests.support.delta_readers import read_by_deltalake
from tests.support.hand_made_lake import RECORD, SCHEMA, SMALL_GROUPS, HandMadeLake

from distributary.delta.commit import CommitPayload, Committed, ConcurrentChange
from distributary.delta.data_file import NewFile, write_files
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import CHEAP_BYTES_BEFORE_VECTORS, RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.errors import TableHalt


@pytest.mark.parametrize("layout", list(RemovalLayout))
def test_rows_come_change_and_go(tmp_path: Path, layout: RemovalLayout) -> None:
    lake = HandMadeLake(tmp_path, layout)
    assert lake.write(dict.fromkeys(range(20), "a")) == 1
    assert lake.write({3: "b", 99: None}, [4, 5, 1000]) == 2
    expected: dict[int, str | None] = {number: "a" for number in range(20) if number not in (4, 5)}
    assert lake.rows() == expected | {3: "b", 99: None}
    lake.writer = lake.new_writer()
    assert lake.write({}, list(range(20))) == 3
    assert lake.rows() == {99: None}
    assert [record.text for record in lake.committer.records] == ["progress"] * 3


def written(lake: HandMadeLake, rows: Mapping[int, str]) -> list[NewFile]:
    """Files with these rows, which no version of the table has."""
    table = pa.table({"id": list(rows), "v": list(rows.values())}, SCHEMA)
    return write_files(TableFiles(str(lake.path)), lake.writer.snapshot, table, ["id"], SMALL_GROUPS)


@pytest.mark.parametrize("layout", list(RemovalLayout))
def test_rows_that_are_in_files_already_replace_those_of_their_keys(tmp_path: Path, layout: RemovalLayout) -> None:
    lake = HandMadeLake(tmp_path, layout)
    lake.write({1: "a", 2: "a", 3: "a"})
    files = [*written(lake, {2: "b", 9: "b"}), *written(lake, {8: "b", 1: "b"})]
    upserts, deletes = pa.table({"id": [5], "v": ["c"]}, SCHEMA), pa.table({"id": pa.array([3], pa.int64())})
    done = lake.writer.write(upserts, deletes, RECORD, written=files)
    assert (done.inserted, done.updated, done.deleted) == (3, 2, 1)
    assert lake.rows() == {1: "b", 2: "b", 5: "c", 8: "b", 9: "b"}
    # Their indexes are there: no file is read to find their rows.
    assert all(lake.writer._index().is_ready(new.file) for new in files)
    lake.write({8: "d"}, [2])
    assert lake.rows() == {1: "b", 5: "c", 8: "d", 9: "b"}


def test_a_key_may_not_be_in_two_files_that_are_written_already(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    with pytest.raises(ValueError, match="1 keys more than once"):
        lake.writer.write(None, None, RECORD, written=[*written(lake, {2: "b"}), *written(lake, {2: "c"})])
    assert lake.rows() == {}


def test_rows_in_files_may_replace_no_row_of_a_table_with_a_change_feed(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, properties={"delta.enableChangeDataFeed": "true"})
    lake.writer.write(None, None, RECORD, written=written(lake, {2: "b"}))
    with pytest.raises(ValueError, match="change data feed"):
        lake.writer.write(None, None, RECORD, written=written(lake, {2: "c"}))
    assert lake.rows() == {2: "b"}


def test_files_of_a_lost_race_are_removed(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    files = written(lake, {2: "b"})
    lake.table.commit()
    with pytest.raises(ConcurrentChange):
        lake.writer.write(None, None, RECORD, written=files)
    assert list(lake.path.glob("*.parquet")) == []


def test_a_write_without_rows_commits_the_record(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    assert lake.writer.write(None, None, RECORD).version == 1
    assert lake.committer.records == [RECORD]
    assert lake.rows() == {}


def test_vectors_mark_rows_and_a_commit_has_one_file_of_them(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write(dict.fromkeys(range(10), "a"))
    lake.write(dict.fromkeys(range(10, 20), "a"))
    lake.write({0: "b", 10: "b"})
    adds = lake.actions("add")
    vectors = [add["deletionVector"] for add in adds if "deletionVector" in add]
    assert [vector["storageType"] for vector in vectors] == ["u", "u"]
    assert len({vector["pathOrInlineDv"] for vector in vectors}) == 1
    assert len(list(lake.path.glob("*.bin"))) == 1
    assert len(adds) == 3
    lake.write({1: "c"})  # the vector of its file has both rows now
    (vector,) = (add["deletionVector"] for add in lake.actions("add") if "deletionVector" in add)
    assert vector["cardinality"] == 2
    assert lake.rows() == {number: "b" if number in (0, 10) else "c" if number == 1 else "a" for number in range(20)}


def test_rewriting_needs_no_vectors(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.REWRITE, properties={"delta.enableDeletionVectors": "false"})
    lake.write(dict.fromkeys(range(10), "a"))
    lake.write({0: "b"}, [9])
    assert len(lake.actions("remove")) == 1
    (add,) = lake.actions("add")
    assert json.loads(add["stats"])["numRecords"] == 9
    assert lake.rows() == {0: "b"} | dict.fromkeys(range(1, 9), "a")


def test_a_batch_writes_its_files_on_all_cores_and_a_compaction_writes_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.REWRITE)
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    rows: dict[int, str | None] = {number: f"{number:09d}" for number in range(1000)}
    lake.write(rows)
    lake.writer = lake.new_writer(replace(SMALL_GROUPS, thread_bytes=8_000))
    lake.write({5: "b"})
    assert len(lake.actions("add")) == 2
    lake.writer.compact(list(lake.writer.snapshot.files.values()), RECORD)
    assert len(lake.actions("add")) == 1
    assert lake.rows() == rows | {5: "b"}


@pytest.mark.thorough
def test_auto_turns_to_vectors_where_files_are_large(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.AUTO, properties={"delta.enableDeletionVectors": ""})
    large = {number: f"{number * 7919:x}" * 20 for number in range(20_000)}
    lake.write(large)
    assert lake.actions("add")[0]["size"] > 20 * 16 * 1024
    assert lake.write({5: "b"}) == 3  # one commit to allow vectors, one for the rows
    assert len(lake.actions("remove")) == 1
    assert lake.rows() == large | {5: "b"}
    small = lake.write({5: "c"})  # the small file is removed, not marked
    assert small == 4
    assert [add.get("deletionVector") for add in lake.actions("add")] == [None]


def test_auto_does_not_overrule_a_table_that_shall_have_no_vectors(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.AUTO, properties={"delta.enableDeletionVectors": "false"})
    dice = random.Random(1)
    large: dict[int, str | None] = {number: dice.randbytes(1_000).hex() for number in range(400)}
    lake.write(large)
    assert lake.actions("add")[0]["size"] > CHEAP_BYTES_BEFORE_VECTORS
    assert lake.write({5: "b"}) == 2
    assert [add.get("deletionVector") for add in lake.actions("add")] == [None]
    assert lake.rows() == large | {5: "b"}


def test_old_values_are_read_by_key(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({number: f"a{number}" for number in range(10)})
    lake.write({3: "b", 11: None}, [4])
    found = lake.writer.read_rows(pa.table({"id": [11, 4, 3, 8, 77]}), ["v"])
    assert sorted(zip(found.keys.tolist(), found.rows.column("v").to_pylist(), strict=True)) == [
        (0, None),
        (2, "b"),
        (3, "a8"),
    ]
    assert found.rows.schema == pa.schema({"v": pa.string()})
    nothing = lake.writer.read_rows(pa.table({"id": pa.array([], pa.int64())}), ["v", "id"])
    assert (len(nothing.keys), nothing.rows.column_names) == (0, ["v", "id"])


def test_another_writers_commit_is_a_concurrent_change_and_leaves_no_files(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a", 2: "a"})
    files = sorted(lake.path.iterdir())
    lake.table.commit({"txn": {"appId": "other", "version": 1}})
    with pytest.raises(ConcurrentChange):
        lake.write({1: "b"})
    assert sorted(lake.path.iterdir()) == files
    assert lake.writer.sync() == 2
    assert lake.write({1: "b"}) == 3
    assert lake.rows() == {1: "b", 2: "a"}


def test_an_unknown_end_of_a_commit_leaves_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit may still come about: then its files are needed."""
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a", 2: "a"})
    commit = lake.committer.commit

    def lose_reply(seen: int, actions: Sequence[Mapping[str, Any]], record: CommitPayload, **result: bool) -> int:
        commit(seen, actions, record, **result)
        raise OSError(104, "Connection reset by peer")

    monkeypatch.setattr(lake.committer, "commit", lose_reply)
    with pytest.raises(OSError, match="reset"):
        lake.write({1: "b"})
    assert lake.rows() == {1: "b", 2: "a"}
    monkeypatch.setattr(lake.committer, "commit", commit)
    with pytest.raises(ConcurrentChange):
        lake.write({1: "c"})
    lake.writer.sync()
    lake.write({1: "c"})
    assert lake.rows() == {1: "c", 2: "a"}


def test_a_log_that_can_not_be_read_after_the_commit_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a"})

    def fail() -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(lake.writer, "sync", fail)
        assert lake.write({1: "b"}) == 2
    assert lake.write({2: "c"}) == 3
    assert lake.rows() == {1: "b", 2: "c"}


@pytest.mark.parametrize(
    ("upserts", "deletes"), [([1, 1], []), ([1], [1]), ([], [2, 2]), ([None, None], []), ([0, None, 0], [])]
)
def test_a_key_may_not_come_twice(tmp_path: Path, upserts: list[int | None], deletes: list[int]) -> None:
    lake = HandMadeLake(tmp_path)
    rows = pa.table({"id": upserts, "v": ["x"] * len(upserts)}, SCHEMA)
    with pytest.raises(ValueError, match="more than once"):
        lake.writer.write(rows, pa.table({"id": pa.array(deletes, pa.int64())}), RECORD)


def test_null_and_zero_are_two_keys(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    for value in ("a", "b"):
        lake.writer.write(pa.table({"id": [0, None], "v": [value, value]}, SCHEMA), None, RECORD)
        assert lake.rows() == {0: value, None: value}
    lake.writer.write(None, pa.table({"id": pa.array([None], pa.int64())}), RECORD)
    assert lake.rows() == {0: "b"}


def test_a_table_that_only_grows_takes_new_rows(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, properties={"delta.appendOnly": "true"})
    lake.write({1: "a"})
    lake.write({2: "a"}, [7])
    with pytest.raises(TableHalt, match="only new rows"):
        lake.write({1: "b"})
    assert lake.rows() == {1: "a", 2: "a"}


def changes_told(lake: HandMadeLake) -> list[tuple[str, int, str]]:
    """Of the newest commit, by the files of the change data feed."""
    found = []
    for cdc in lake.actions("cdc"):
        assert cdc["dataChange"] is False
        assert cdc["path"].startswith("_change_data/")
        rows = pq.read_table(lake.path / cdc["path"], partitioning=None)
        found += [(row["_change_type"], row["id"], row["v"]) for row in rows.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("layout", list(RemovalLayout))
def test_the_change_data_feed_has_every_change(tmp_path: Path, layout: RemovalLayout) -> None:
    lake = HandMadeLake(tmp_path, layout, properties={"delta.enableChangeDataFeed": "true"})
    lake.write({1: "a", 2: "a", 3: "a", 4: "a"})
    assert changes_told(lake) == []  # readers infer inserts
    lake.write({1: "b", 9: "b"}, [2, 77])
    expected = [("delete", 2, "a"), ("insert", 9, "b"), ("update_postimage", 1, "b"), ("update_preimage", 1, "a")]
    assert changes_told(lake) == expected
    lake.write({}, [9])
    assert changes_told(lake) == [("delete", 9, "b")]
    assert lake.rows() == {1: "b", 3: "a", 4: "a"}


@pytest.mark.parametrize("layout", list(RemovalLayout))
def test_2_4_a_row_that_is_written_as_it_was_is_no_change_of_the_feed(tmp_path: Path, layout: RemovalLayout) -> None:
    lake = HandMadeLake(tmp_path, layout, properties={"delta.enableChangeDataFeed": "true"})
    lake.write({1: "a", 2: None, 3: "c", 4: "d", 5: "e"})
    lake.write({1: "a", 2: None, 9: "new", 3: "other", 5: "e"}, [4, 77])
    assert changes_told(lake) == [
        ("delete", 4, "d"),
        ("insert", 9, "new"),
        ("update_postimage", 3, "other"),
        ("update_preimage", 3, "c"),
    ]
    assert lake.rows() == {1: "a", 2: None, 3: "other", 5: "e", 9: "new"}
    lake.write({1: "a", 9: "new"})
    assert [lake.actions(kind) for kind in ("add", "remove", "cdc")] == [[], [], []]
    # Rows without keys, as versions and changes are written.
    old = lake.writer.read_all(["id", "v"], lambda piece: np.ones(piece.num_rows, bool))
    rows = pa.table({"id": [1, 2, 3, 3], "v": ["a", "b", "other", "other"]}, SCHEMA)
    lake.writer.commit_rows(rows, old.locations, RECORD)
    assert changes_told(lake) == [
        ("delete", 2, None),
        ("delete", 5, "e"),
        ("delete", 9, "new"),
        ("insert", 2, "b"),
        ("insert", 3, "other"),
    ]


def test_rows_of_one_key_that_others_wrote_are_all_replaced_and_counted(tmp_path: Path) -> None:
    for feed in ("true", "false"):
        lake = HandMadeLake(tmp_path / feed, properties={"delta.enableChangeDataFeed": feed})
        twice = pa.table({"id": [1, 1, 2, 2], "v": ["by hand", "b", "x", "y"]}, SCHEMA)
        lake.writer.commit_rows(twice, (), RECORD)
        upserts = pa.table({"id": [1], "v": ["b"]}, SCHEMA)
        done = lake.writer.write(upserts, pa.table({"id": pa.array([2], pa.int64())}), RECORD)
        assert done == Committed(2, 0, 1, 3)
        assert lake.rows() == {1: "b"}


def test_a_lost_race_leaves_no_files_of_the_feed(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, properties={"delta.enableChangeDataFeed": "true"})
    lake.write({1: "a"})
    lake.table.commit({"txn": {"appId": "other", "version": 1}})
    with pytest.raises(ConcurrentChange):
        lake.write({1: "b"})
    assert not list(lake.path.rglob("cdc-*"))


@pytest.mark.parametrize("key", [["nothing"], ["l"]])
def test_keys_that_can_not_be_used_are_reported(tmp_path: Path, key: list[str]) -> None:
    table = HandMadeTable(tmp_path).create(
        field("id", "long"), field("l", {"type": "array", "elementType": "long", "containsNull": True})
    )
    writer = TableWriter(
        TableFiles(str(tmp_path)), key, HandCommitter(table), IndexCache(tmp_path / "cache", 2**20, 2**20)
    )
    with pytest.raises(TableHalt, match="can't be found by the key"):
        writer.read_rows(pa.table({key[0]: [1]}), ["id"])


@pytest.mark.parametrize("layout", [RemovalLayout.VECTORS, RemovalLayout.REWRITE])
@pytest.mark.parametrize("stats", [{"numRecords": 2}, {}])
def test_a_wrong_or_missing_count_in_the_log_takes_no_live_row(
    tmp_path: Path, layout: RemovalLayout, stats: Any
) -> None:
    lake = HandMadeLake(tmp_path, layout)
    lake.write({1: "a", 2: "a", 3: "a"})
    (add,) = lake.actions("add")
    lake.table.commit({"add": {**add, "stats": json.dumps(stats)}})
    lake.writer.sync()
    lake.write({}, [1, 2])
    assert lake.rows() == {3: "a"}


def test_a_refused_table_is_not_written(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, properties={"delta.columnMapping.mode": "id"})
    with pytest.raises(TableHalt, match="column mapping by id"):
        lake.write({1: "a"})
    assert [path.name for path in lake.path.iterdir()] == ["_delta_log"]


def test_rows_that_break_a_constraint_of_the_table_are_not_written(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, properties={"delta.constraints.positive": "id > 0"})
    lake.write({1: "a", 2: "b"})
    with pytest.raises(TableHalt, match="the constraint positive"):
        lake.write({1: "c", -1: "d"})
    assert lake.rows() == {1: "a", 2: "b"}
    lake.write({3: "c"}, [1])
    assert lake.rows() == {2: "b", 3: "c"}


def test_a_lost_vector_halts_and_revives_no_row(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a", 2: "a", 3: "a"})
    lake.write({1: "b"})
    for path in lake.path.glob("*.bin"):
        path.unlink()
    lake.writer = lake.new_writer()
    with pytest.raises(TableHalt, match="not there"):
        lake.write({2: "b"})


def test_a_table_without_key_takes_equal_rows(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    cache = IndexCache(lake.cache, 2**20, 2**20)
    writer = TableWriter(TableFiles(str(lake.path)), [], lake.committer, cache)
    rows = pa.table({"id": [1, 1], "v": ["a", "a"]}, SCHEMA)
    assert writer.commit_rows(rows, (), RECORD) == Committed(1, 2, 0, 0)
    assert writer.commit_rows(rows, (), RECORD).version == 2
    assert read_by_deltalake(lake.path) == [{"id": 1, "v": "a"}] * 4


def test_what_others_may_see_of_a_version_stays_as_it_was(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    assert lake.writer.view() is None
    lake.write({1: "a", 2: "b", 3: "c"})
    lake.write({4: "d"}, deleted=[2])
    view = lake.writer.view()
    assert view is not None
    lake.write({5: "e"})
    assert (view.key, view.partitioned_by, view.columns) == (("id",), (), {"id": "long", "v": "string"})
    assert (len(view.snapshot.files), view.rows, view.files_with_vectors, view.indexed_files) == (2, 3, 1, 2)
    assert 0 < view.bytes < sum(path.stat().st_size for path in lake.path.glob("*.parquet"))


def test_types_within_types_are_shown_as_text(tmp_path: Path) -> None:
    nested = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
    array = {"type": "array", "elementType": nested, "containsNull": True}
    pairs = {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}
    table = HandMadeTable(tmp_path / "other").create(field("id", "long"), field("a", array), field("m", pairs))
    cache = IndexCache(tmp_path / "cache", 9, 9)
    writer = TableWriter(TableFiles(str(tmp_path / "other")), ["id"], HandCommitter(table), cache)
    writer.sync()
    view = writer.view()
    assert view is not None
    assert view.columns == {"id": "long", "a": "array<struct<x: integer>>", "m": "map<string, date>"}
