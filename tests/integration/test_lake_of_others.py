"""What the lake's own people do to a table, and what they read of it: rows and columns of theirs, the change feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.support.changes import Row, Topic, key, row, snapshot_and_changes
from tests.support.lake import read_table
from tests.support.spark import Bench

from distributary.errors import TableHalt

MODES: dict[str, dict[str, Any]] = {"upsert": {}, "soft": {"deletes": "soft"}, "history": {"mode": "history"}}
LAYOUTS: dict[str, dict[str, Any]] = {"rewrite": {"layout": "rewrite"}, "vectors": {}}
VECTORS = {"delta.enableDeletionVectors": True}


def put_by_hand(bench: Bench, *rows: Row) -> None:
    """Appends rows without the service's own columns."""
    table = read_table(bench.table)
    assert table is not None
    columns = {field.name: pa.array([one.get(field.name) for one in rows], field.type) for field in table.schema}
    write_deltalake(str(bench.table), pa.table(columns, schema=table.schema), mode="append")


def visible(bench: Bench, mode: str) -> list[tuple[Any, ...]]:
    """What a reader of current rows sees."""
    end = {"soft": "__deleted", "history": "__current"}.get(mode)
    rows = bench.rows("id", "v", *([end] if end else []))
    return [one[:2] for one in rows if end is None or bool(one[2]) is (mode == "history")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_3_1_rows_that_were_written_by_hand_become_the_sources_with_their_next_change(
    make_bench: Callable[..., Bench], mode: str, layout: str
) -> None:
    bench = make_bench(**MODES[mode], **LAYOUTS[layout]).create()
    topic = Topic(bench.topic, "mysql")
    for number in (1, 2):
        topic.change("c", key(number), row(number, "a"), at=number)
    bench.take(topic.records)
    put_by_hand(bench, row(7, "stays"), row(8, "by hand"), row(9, "by hand"), row(9, "and twice"))
    DeltaTable(str(bench.table)).update(predicate="id = 1", updates={"v": "'patched'"})
    more = Topic(bench.topic, "mysql")
    more.change("u", key(1), row(1, "b"), at=11)
    more.change("d", key(8), at=12)
    more.change("c", key(9), row(9, "c"), at=13)
    bench.take(more.records)
    others = [] if mode == "history" else [(7, "stays")]  # no version of the service's
    assert visible(bench, mode) == [(1, "b"), (2, "a"), *others, (9, "c")]
    last = Topic(bench.topic, "mysql")
    last.change("u", key(9), row(9, "d"), at=21)
    last.change("t", None, at=22)
    last.change("c", key(3), row(3, "after"), at=23)
    bench.take(last.records)
    assert visible(bench, mode) == [(3, "after")]


def test_5_1_a_column_that_others_add_while_the_service_runs_stays_theirs(bench: Bench) -> None:
    topic = Topic(bench.create().topic, "oracle")
    for number in (1, 2):
        topic.change("c", key(number), row(number, "a"), at=number)
    worker = bench.take(topic.records)
    bench.session.sql(f"ALTER TABLE delta.`{bench.table}` ADD COLUMN note STRING")
    bench.session.sql(f"UPDATE delta.`{bench.table}` SET note = 'seen'")
    more = Topic(bench.topic, "oracle")
    more.change("u", key(1), row(1, "b"), at=11)
    more.change("c", key(3), row(3, "c"), at=12)
    bench.take(more.records, worker)
    assert bench.rows("id", "v", "note") == [(1, "b", None), (2, "a", "seen"), (3, "c", None)]
    bench.session.sql(f"ALTER TABLE delta.`{bench.table}` ADD COLUMN more STRUCT<n: INT>")
    last = Topic(bench.topic, "oracle")
    last.change("u", key(2), {**row(2, "d"), "late": 5}, at=21)
    bench.take(last.records, worker)
    assert bench.rows("id", "v", "note", "late") == [(1, "b", None, None), (2, "d", None, 5), (3, "c", None, None)]


def feed(session: SparkSession, bench: Bench) -> list[tuple[Any, ...]]:
    """All changes in the change data feed."""
    reader = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    found = reader.load(str(bench.table)).select("_commit_version", "_change_type", "id", "v")
    return sorted((tuple(one) for one in found.collect()), key=repr)


@pytest.mark.parametrize("mode", [*MODES, "append"])
@pytest.mark.parametrize(("layout", "connector"), [("vectors", "postgresql"), ("rewrite", "sqlserver")])
def test_2_4_readers_of_the_change_feed_see_each_change_once(
    session: SparkSession, make_bench: Callable[..., Bench], mode: str, layout: str, connector: str
) -> None:
    properties = {"delta.enableChangeDataFeed": True, **(VECTORS if layout == "vectors" else {})}
    rule = {"mode": "append"} if mode == "append" else MODES[mode]
    bench = make_bench(properties=properties, **rule, **LAYOUTS[layout]).create()
    topic = snapshot_and_changes(bench.topic, connector)
    for start in range(0, len(topic.records), 4):
        bench.take(topic.records[start : start + 4])
    result = feed(session, bench)
    assert [one[1:] for one in result if one[2] == 30] == [("insert", 30, "a")]
    # The connector starts again and sends all of it once more, in one piece, and each row by itself.
    worker = bench.take(topic.records)
    for record in topic.records[:3]:
        worker = bench.take([record], worker)
    assert feed(session, bench) == result
    assert DeltaTable(str(bench.table)).version() > max(one[0] for one in result)


def test_6_2_constraints_of_the_lakes_people_are_kept_and_a_row_that_breaks_one_halts(bench: Bench) -> None:
    topic = Topic(bench.create().topic, "db2")
    for number in (1, 2):
        topic.change("c", key(number), {"id": number, "v": 10 * number}, at=number)
    worker = bench.take(topic.records)
    bench.session.sql(f"ALTER TABLE delta.`{bench.table}` ADD CONSTRAINT positive CHECK (v > 0)")
    more = Topic(bench.topic, "db2")
    more.change("u", key(1), {"id": 1, "v": 11}, at=11)
    more.change("d", key(2), at=12)
    bench.take(more.records, worker)
    assert bench.rows() == [(1, 11)]
    last = Topic(bench.topic, "db2")
    last.change("u", key(1), {"id": 1, "v": -5}, at=21)
    with pytest.raises(TableHalt, match="constraint-broken") as halt:
        bench.take(last.records, worker)
    assert "positive (v > 0)" in halt.value.message
    assert "offset 4" in halt.value.message
    assert bench.rows() == [(1, 11)]
    bench.session.sql(f"ALTER TABLE delta.`{bench.table}` DROP CONSTRAINT positive")
    bench.take([])
    assert bench.rows() == [(1, -5)]
