"""The actions of a write, and the files that are read for it."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64
from tests.support.delta_log import PROTOCOL_OF_VECTORS, field, metadata, struct

from distributary.delta.live_file import LiveFile
from distributary.delta.plan_write import (
    REWRITE_FACTOR,
    RemovalLayout,
    TouchedFile,
    check_actions,
    plan_removal,
    write_actions,
)
from distributary.delta.prune import files_with
from distributary.delta.snapshot import DeltaSnapshot, first_snapshot
from distributary.delta.table_schema import TableSchema
from distributary.delta.vectors import VectorDescriptor

OLD = {"storageType": "i", "pathOrInlineDv": "old", "sizeInBytes": 1, "cardinality": 1}
NEW = VectorDescriptor("u", "new", 40, 2, 1)


def entry(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "size": 100, "partitionValues": {}, "modificationTime": 5, "dataChange": False, **more}


def snapshot_of(*adds: dict[str, Any]) -> DeltaSnapshot:
    actions = [{"protocol": PROTOCOL_OF_VECTORS}, metadata([field("id", "long")])]
    return first_snapshot(0, [*actions, *({"add": add} for add in adds)])


def touched(add: dict[str, Any], rows: list[int], dead: set[int] | None = None, count: int = 10) -> TouchedFile:
    return TouchedFile(LiveFile(add), BitMap64(dead or ()), np.array(rows, np.int64), count)


def test_a_marked_file_goes_with_its_old_vector_and_comes_with_the_new_one() -> None:
    stats = '{"numRecords":10,"minValues":{"a":12345678901234567890.123456789012345678}}'
    add = entry("a", deletionVector=OLD, stats=stats, tags={"t": "1"}, baseRowId=7, clusteringProvider="liquid")
    plan = plan_removal([touched(add, [4], {2})], RemovalLayout.VECTORS)
    ((_, dead),) = plan.marked
    assert sorted(dead) == [2, 4]
    remove, added = write_actions(snapshot_of(add), plan, [NEW], [], 99)
    assert remove == {
        "remove": {
            **{name: add[name] for name in ("path", "size", "partitionValues", "tags", "baseRowId")},
            "deletionVector": OLD,
            "deletionTimestamp": 99,
            "dataChange": True,
            "extendedFileMetadata": True,
        }
    }
    text = added["add"]["stats"]
    assert added["add"] == {**add, "stats": text, "deletionVector": NEW.as_json(), "dataChange": True}
    assert "12345678901234567890.123456789012345678" in text
    assert json.loads(text)["tightBounds"] is False
    assert json.loads(text)["numRecords"] == 10


def test_statistics_that_are_wide_already_stay_as_they_are() -> None:
    add = entry("a", deletionVector=OLD, stats='{"tightBounds": false,  "numRecords": 10}')
    plan = plan_removal([touched(add, [4], {2})], RemovalLayout.VECTORS)
    assert write_actions(snapshot_of(add), plan, [NEW], [], 0)[1]["add"]["stats"] == add["stats"]


def test_a_file_without_statistics_gets_the_count_that_a_vector_needs() -> None:
    add = entry("a")
    plan = plan_removal([touched(add, [4, 5])], RemovalLayout.VECTORS)
    stats = write_actions(snapshot_of(add), plan, [NEW], [], 0)[1]["add"]["stats"]
    assert json.loads(stats) == {"numRecords": 10, "tightBounds": False}


@pytest.mark.parametrize("layout", [RemovalLayout.VECTORS, RemovalLayout.REWRITE])
def test_a_file_without_other_rows_goes_as_a_whole(layout: RemovalLayout) -> None:
    add = entry("a", deletionVector=OLD)
    plan = plan_removal([touched(add, [1, 2], {0}, count=3)], layout)
    assert (len(plan.removed), plan.marked, plan.rewritten) == (1, (), ())
    (remove,) = write_actions(snapshot_of(add), plan, [], [], 0)
    assert remove["remove"]["deletionVector"] == OLD


def test_a_rewritten_file_goes_and_its_other_rows_come() -> None:
    add, new = entry("a"), LiveFile(entry("b"))
    plan = plan_removal([touched(add, [1])], RemovalLayout.REWRITE)
    assert [sorted(dead) for _, dead in plan.rewritten] == [[1]]
    actions = write_actions(snapshot_of(add), plan, [], [new], 0)
    assert [[*action] for action in actions] == [["remove"], ["add"]]


def test_files_of_which_no_row_goes_stay() -> None:
    plan = plan_removal([touched(entry("a"), [])], RemovalLayout.VECTORS)
    assert write_actions(snapshot_of(entry("a")), plan, [], [], 0) == []


def test_a_vector_of_another_size_is_refused() -> None:
    plan = plan_removal([touched(entry("a"), [4])], RemovalLayout.VECTORS)
    with pytest.raises(ValueError, match="has 2 rows, not 1"):
        write_actions(snapshot_of(entry("a")), plan, [NEW], [], 0)


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        ([{"add": entry("a", deletionVector=OLD)}], "a would be live twice"),
        ([{"add": entry("a")}], "a would be live twice"),
        ([{"remove": entry("a", deletionVector=OLD)}], "a would be removed, and is not live in this form"),
        ([{"remove": entry("b")}], "b would be removed, and is not live"),
        ([{"remove": entry("a")}, {"remove": entry("a")}], "not live in this form"),
        ([{"add": entry("c")}, {"add": entry("c")}], "c would be added twice"),
    ],
)
def test_actions_that_would_double_or_lose_rows_are_refused(actions: list[dict[str, Any]], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        check_actions(snapshot_of(entry("a")), actions)


def paths(found: tuple[tuple[TouchedFile, BitMap64], ...]) -> list[str]:
    return [one.file.path for one, _ in found]


def test_auto_rewrites_files_as_long_as_that_writes_little_beside_the_change() -> None:
    change = 1_000_000
    limit = REWRITE_FACTOR * change

    def plan(
        sizes: dict[str, int],
        change_bytes: int = change,
        *,
        layout: RemovalLayout = RemovalLayout.AUTO,
        vectors: bool = False,
    ) -> tuple[list[str], list[str]]:
        # One row of a thousand goes: nearly all bytes stay.
        files = [touched(entry(name, size=size), [1], count=1000) for name, size in sizes.items()]
        found = plan_removal(files, layout, change_bytes, allows_vectors=vectors)
        return sorted(paths(found.rewritten)), sorted(paths(found.marked))

    assert plan({"a": limit // 2, "b": limit // 2}) == (["a", "b"], [])
    assert plan({"large": limit * 2, "small": limit // 4, "next": limit // 2}) == (["next", "small"], ["large"])
    assert plan({"a": 16_000, "b": 17_000}, 10, vectors=True) == (["a"], ["b"])
    assert plan({"a": 200_000}, layout=RemovalLayout.REWRITE) == (["a"], [])
    assert plan({"a": 2}, layout=RemovalLayout.VECTORS) == ([], ["a"])


@pytest.mark.parametrize(("rows", "is_rewritten"), [(299, False), (300, True)])
def test_in_a_table_with_vectors_auto_rewrites_what_a_compaction_would_rewrite(rows: int, is_rewritten: bool) -> None:
    file = touched(entry("a", size=1_000_000), list(range(100, rows)), set(range(100)), count=1000)
    plan = plan_removal([file], RemovalLayout.AUTO, 1_000_000)
    assert (len(plan.rewritten), len(plan.marked)) == ((1, 0) if is_rewritten else (0, 1))
    before = plan_removal([file], RemovalLayout.AUTO, 1_000_000, allows_vectors=False)
    assert len(before.rewritten) == 1


def test_a_small_table_without_vectors_is_rewritten() -> None:
    files = [touched(entry(name, size=60_000), [1]) for name in "ab"]
    without, larger, has = (
        plan_removal(files, RemovalLayout.AUTO, 10, allows_vectors=False),
        plan_removal([*files, touched(entry("c", size=60_000), [1])], RemovalLayout.AUTO, 10, allows_vectors=False),
        plan_removal(files, RemovalLayout.AUTO, 10),
    )
    assert [len(plan.marked) for plan in (without, larger, has)] == [0, 1, 2]


def test_auto_counts_the_rows_that_stay_in_a_file() -> None:
    size = 10 * REWRITE_FACTOR * 1_000_000
    rest_is_small = touched(entry("a", size=size), list(range(10, 91)), set(range(10)), count=100)
    much_stays = touched(entry("b", size=size), list(range(20)), set(), count=100)
    plan = plan_removal([much_stays, rest_is_small], RemovalLayout.AUTO, 1_000_000)
    assert (paths(plan.rewritten), paths(plan.marked)) == (["a"], ["b"])


def bounds(path: str, low: Any, high: Any, name: str = "k") -> LiveFile:
    stats = {"minValues": {name: low} if low is not None else {}, "maxValues": {name: high} if high is not None else {}}
    return LiveFile(entry(path, stats=json.dumps(stats)))


@pytest.mark.parametrize(
    ("kind", "keys", "files", "expected"),
    [
        ("long", [5, 50], [(1, 4), (5, 5), (6, 49), (50, None), (None, 4), (None, None)], [1, 3, 5]),
        ("string", ["b", "é"], [("a", "az"), ("ba", "d"), ("z", "\U0010ffff"), ("b", "b")], [2, 3]),
        ("date", [date(2020, 5, 1)], [("2020-05-02", "2021-01-01"), ("2019-01-01", "2020-05-01")], [1]),
        ("date", [date(2020, 5, 1)], [("+12020-05-02", "+12021-01-01")], [0]),  # no bounds that can be compared
        ("date", [3_000_000], [("2019-01-01", "2020-05-01")], [0]),  # a day of the year 10183, which Python lacks
        ("date", [-800_000], [("2019-01-01", "2020-05-01")], [0]),  # one before the year 1
        ("double", [5.0], [(1.0, 2.0)], [0]),
        ("long", [None], [(1, 2)], [0]),
        ("long", [5], [("a", "b")], [0]),
    ],
)
def test_files_that_can_not_have_a_key_are_passed_over(
    kind: str, keys: list[Any], files: list[tuple[Any, Any]], expected: list[int]
) -> None:
    columns = TableSchema.of(struct(field("k", kind))).columns
    table = pa.table({"k": pa.array(keys, columns[0].logical.type)})
    found = files_with([bounds(f"{i}", *ends) for i, ends in enumerate(files)], table, columns)
    assert [int(file.path) for file in found] == expected


def test_files_of_other_partitions_are_passed_over() -> None:
    columns = TableSchema.of(struct(field("k", "long"), field("p", "string", number=2)), ["p"]).columns
    files = [LiveFile(entry(f"{value}", partitionValues={"col-2": value})) for value in ("a", "b", None)]
    keys = pa.table({"k": [1, 2], "p": ["b", "c"]})
    assert [file.path for file in files_with(files, keys, columns)] == ["b"]
