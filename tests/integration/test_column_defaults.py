"""Older rows get the defaults of columns that the source adds, if the config asks for it; rows with an explicit NULL
keep it."""

from __future__ import annotations

import pytest
from tests.support.changes import INT, TEXT, Row, Topic
from tests.support.comparable import column_values, identical
from tests.support.every_type import EVERY_TYPE
from tests.support.spark import Bench

from distributary import failpoints
from distributary.errors import TableHalt
from distributary.lake.table import LakeTable

OLD: dict[str, Row] = {"id": INT, "v": TEXT}
NEW: dict[str, Row] = {**OLD, "c": {**INT, "optional": False, "default": 5}}


pytestmark = pytest.mark.bench(rule={"column_defaults": "fill"}, partitions=2)


def changes(bench: Bench) -> Topic:
    """Four rows, of which one goes; the column is added; one row is changed, and one has an explicit NULL; a change of
    before the column comes late by another partition; and the column is dropped."""
    topic = Topic(bench.topic)
    for number in (1, 2, 3, 4):
        topic.with_schema(topic.change("c", {"id": number}, {"id": number, "v": "a"}, at=number), OLD)
    topic.with_schema(topic.change("d", {"id": 4}, at=5), OLD)
    topic.with_schema(topic.change("u", {"id": 2}, {"id": 2, "v": "b", "c": 7}, at=11), NEW)
    topic.with_schema(topic.change("c", {"id": 5}, {"id": 5, "v": "b", "c": None}, at=12), NEW)
    topic.with_schema(topic.change("c", {"id": 6}, {"id": 6, "v": "a"}, at=6, partition=1), OLD)
    topic.with_schema(topic.change("c", {"id": 7}, {"id": 7, "v": "c"}, at=20), OLD)
    return topic


WHOLE = [(1, "a", 5), (2, "b", 7), (3, "a", 5), (5, "b", None), (6, "a", 5), (7, "c", None)]


@pytest.mark.parametrize("cuts", [(), (5,), (3, 6), (1, 5, 6, 7, 8)])
def test_5_1_older_rows_get_the_default_of_a_new_column_however_the_records_are_cut(
    bench: Bench, cuts: tuple[int, ...]
) -> None:
    records = changes(bench).records
    for begin, end in zip((0, *cuts), (*cuts, len(records)), strict=True):
        bench.take(records[begin:end])
    assert bench.rows("id", "v", "c") == WHOLE


@pytest.mark.parametrize("cuts", [(), (5,)])
def test_5_1_all_versions_of_a_row_get_it(bench: Bench, cuts: tuple[int, ...]) -> None:
    records = changes(bench).records
    bench.rule = {"column_defaults": "fill", "mode": "history"}
    for begin, end in zip((0, *cuts), (*cuts, len(records)), strict=True):
        bench.take(records[begin:end])
    assert bench.rows("id", "v", "c") == sorted([*WHOLE, (2, "a", 5), (4, "a", 5)], key=repr)


def test_5_1_without_it_older_rows_have_null(bench: Bench) -> None:
    bench.rule = {}
    records = changes(bench).records
    for part in (records[:5], records[5:]):
        bench.take(part)
    assert bench.rows("id", "v", "c") == [(number, v, c if c == 7 else None) for number, v, c in WHOLE]


@pytest.mark.parametrize("optimized", [False, True])
def test_5_1_what_ends_between_adding_and_filling_is_filled_by_the_next(bench: Bench, *, optimized: bool) -> None:
    records = changes(bench).records
    bench.take(records[:3])
    bench.take(records[3:5])
    failpoints.arm("after-schema-change:dbo.t=raise@1")
    try:
        with pytest.raises(TableHalt, match="MadeToFail"):
            bench.take(records[5:])
    finally:
        failpoints.arm(None)
    assert bench.rows("id", "v", "c") == [(1, "a", None), (2, "a", None), (3, "a", None)]
    if optimized:  # another writer's files have the column, with NULL
        bench.session.sql(f"OPTIMIZE delta.`{bench.table}`")
    bench.take([])
    assert bench.rows_by_spark("id", "v", "c") == WHOLE


def test_5_1_what_was_not_filled_is_forgotten_where_the_config_says_null(bench: Bench) -> None:
    records = changes(bench).records
    bench.take(records[:5])
    failpoints.arm("after-schema-change:dbo.t=raise@1")
    try:
        with pytest.raises(TableHalt, match="MadeToFail"):
            bench.take(records[5:7])
    finally:
        failpoints.arm(None)
    bench.rule = {"column_defaults": "null"}
    bench.take([])
    bench.rule = {"column_defaults": "fill"}
    bench.take(records[7:])
    assert bench.rows("id", "v", "c") == [(number, v, c if c == 7 else None) for number, v, c in WHOLE]


def test_5_1_what_ends_before_adding_is_added_and_filled_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise failpoints.MadeToFail("add_columns")

    records = changes(bench).records
    bench.take(records[:5])
    with monkeypatch.context() as patched:
        patched.setattr(LakeTable, "add_columns", fail)
        with pytest.raises(TableHalt, match="MadeToFail"):
            bench.take(records[5:])
    assert "c" not in bench.columns()
    bench.take([])
    assert bench.rows("id", "v", "c") == WHOLE


def test_5_1_defaults_of_every_type_are_as_the_values_are(bench: Bench) -> None:
    topic = Topic(bench.topic)
    topic.with_schema(topic.change("c", {"id": 1}, {"id": 1}, at=1), {"id": INT})
    bench.take(topic.records)
    schema = {one.name: {**one.schema, "optional": False, "default": one.values[-1][0]} for one in EVERY_TYPE}
    sent = {"id": 2, **{one.name: one.values[-1][0] for one in EVERY_TYPE}}
    grown = Topic(bench.topic)
    grown.with_schema(grown.change("c", {"id": 2}, sent, at=2), {"id": INT, **schema})
    bench.take(grown.records)
    table = bench.frame().orderBy("id").toArrow()
    filled = 0
    for one in EVERY_TYPE:
        older, newer = column_values(table.column(one.name))
        if older is not None:
            assert identical(older, newer), one.name
            filled += 1
    assert filled > len(EVERY_TYPE) // 2
