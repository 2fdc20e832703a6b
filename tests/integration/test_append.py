"""`mode: append` on a topic and a real Delta table. Names give the rule's number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.changes import LONG, Topic, key, row
from tests.support.spark import Bench, rows_of

from distributary.errors import TableHalt

UNSENT = "__debezium_unavailable_value"


pytestmark = pytest.mark.bench(rule={"mode": "append"})


def changes(bench: Bench) -> list[tuple[Any, ...]]:
    return bench.rows("__op", "id", "v")


@pytest.mark.parametrize("at_most", [100, 3, pytest.param(1, marks=pytest.mark.slow)])
def test_4_3_every_change_is_a_row_and_records_sent_again_at_any_cut_add_none(bench: Bench, at_most: int) -> None:
    bench.options = {"trigger": {"max_records": at_most}}
    topic = Topic(bench.create().topic)
    topic.change("r", key(1), row(1, "read"), at=1)
    topic.change("u", key(1), row(1, "updated"), at=2)
    topic.change("u", key(1), row(1, "updated"), at=3)
    topic.change("d", key(1), at=4, before=row(1, "updated"))
    topic.tombstone(key(1))
    # 2.2: two changes at one position
    topic.change("d", key(2), at=5)
    topic.change("c", key(2), row(2, "unique"), at=5)
    worker = bench.take(topic.records)
    expected = [
        ("c", 2, "unique"),
        ("d", 1, "updated"),
        ("d", 2, None),
        ("r", 1, "read"),
        ("u", 1, "updated"),
        ("u", 1, "updated"),
    ]
    assert changes(bench) == expected
    for cut in (0, 2, 4, 6) if at_most > 1 else (5,):
        bench.take(topic.records[cut:], worker)
        assert changes(bench) == expected


def test_4_3_records_sent_again_within_one_batch_add_none(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for at in (1, 2, 3):
        topic.change("c" if at == 1 else "u", key(1), row(1, at), at=at)
    bench.take([*topic.records, *topic.records[1:], *topic.records])
    assert changes(bench) == [("c", 1, 1), ("u", 1, 2), ("u", 1, 3)]


def test_2_5_a_late_change_from_another_partition_is_added_once(bench: Bench) -> None:
    bench.create(partitions=2)
    topic = Topic(bench.topic)
    topic.change("c", key(1), row(1, "new"), at=9)
    worker = bench.take(topic.records)
    late = Topic(bench.topic)
    late.change("u", key(1), row(1, "older"), at=5, partition=1)
    bench.take(late.records, worker)
    bench.take([*late.records, *topic.records], worker)
    assert changes(bench) == [("c", 1, "new"), ("u", 1, "older")]


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql"])
def test_4_3_another_snapshot_adds_its_rows_the_same_one_sent_again_does_not(bench: Bench, connector: str) -> None:
    topic = Topic(bench.create().topic, connector=connector)
    topic.change("r", key(1), row(1, "read"), at=5, ts_ms=1_000)
    worker = bench.take(topic.records)
    bench.take(topic.records, worker)
    assert changes(bench) == [("r", 1, "read")]
    again = Topic(bench.topic, connector=connector)
    again.change("r", key(1), row(1, "read"), at=5, ts_ms=2_000)
    bench.take([*topic.records, *again.records], worker)
    assert changes(bench) == [("r", 1, "read"), ("r", 1, "read")]


@pytest.mark.parametrize(("connector", "op"), [("sqlserver", "r"), ("postgresql", "r"), ("postgresql", "c")])
def test_4_3_rows_of_one_position_whose_key_is_not_unique_are_all_kept(bench: Bench, connector: str, op: str) -> None:
    """message.key.columns may name any columns; a snapshot's rows, and those of a COPY, have one position."""
    topic = Topic(bench.create().topic, connector=connector)
    for number in range(4):
        topic.change(op, {"v": "same"}, row(number, "same"), at=5, ts_ms=1_000)
    worker = bench.take(topic.records[:3])
    for again in (topic.records[1:], topic.records, [*topic.records, *topic.records[2:]]):
        bench.take(again, worker)
        assert changes(bench) == [(op, number, "same") for number in range(4)]


def test_4_3_a_truncate_is_a_row_with_only_its_position(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "one"), at=10)
    topic.change("t", None, at=20)
    worker = bench.take(topic.records)
    bench.take(topic.records, worker)
    assert changes(bench) == [("c", 1, "one"), ("t", None, None)]
    op, position = bench.rows("__op", "__position")[1]
    assert (op, position[:45]) == ("t", "000:00000000000000000020.00000000000000000021")


def test_3_6_truncate_ignore_leaves_no_row(bench: Bench) -> None:
    bench.rule = {"mode": "append", "truncate": "ignore"}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "one"), at=10)
    topic.change("t", None, at=20)
    bench.take(topic.records)
    assert changes(bench) == [("c", 1, "one")]


def test_2_4_a_transaction_sent_again_without_its_commit_level_adds_nothing(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "one"), at=10, step=1)
    topic.change("u", key(1), row(1, "two"), at=10, step=2)
    worker = bench.take(topic.records)
    again = Topic(bench.topic, connector="postgresql")
    again.change("c", key(1), row(1, "one"), at=10, step=1, level=False)
    again.change("u", key(1), row(1, "two"), at=10, step=2, level=False)
    again.change("u", key(1), row(1, "three"), at=30)
    bench.take(again.records, worker)
    assert changes(bench) == [("c", 1, "one"), ("u", 1, "three"), ("u", 1, "two")]


def test_3_7_a_value_that_was_not_sent_is_null_and_its_column_is_named(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), {"id": 1, "v": "long", "w": "x"}, at=1)
    topic.change("u", key(1), {"id": 1, "v": UNSENT, "w": "y"}, at=2)
    bench.take(topic.records)
    assert bench.rows("__op", "v", "w", "__unavailable") == [("c", "long", "x", None), ("u", None, "y", ["v"])]


def test_3_7_only_connectors_that_leave_values_out_have_a_placeholder(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, UNSENT), at=1)
    bench.take(topic.records)
    assert bench.rows("v", "__unavailable") == [(UNSENT, None)]


def test_6_3_a_deleted_row_with_a_value_that_its_type_can_not_hold_goes_to_quarantine(bench: Bench) -> None:
    bench.rule = {"mode": "append", "columns": {"v": "bigint"}}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, 5), at=1)
    topic.change("d", key(1), at=2, before=row(1, "five"))
    topic.change("u", key(1), row(1, 6), at=3, before=row(1, "not looked at"))
    bench.take(topic.records)
    assert changes(bench) == [("c", 1, 5), ("u", 1, 6)]
    assert rows_of(bench.quarantine, "reason") == [("bad-value",)]


def test_4_3_a_first_delete_tells_its_columns_by_the_row_before_it(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("d", key(1), at=1, before=row(1, "gone"))
    bench.take(topic.records)
    assert changes(bench) == [("d", 1, "gone")]


def copied(bench: Bench, *, level: bool = True) -> Topic:
    """A COPY into a table without key: all rows have one position, some are equal."""
    topic = Topic(bench.topic, connector="postgresql")
    for value in ("a", "b", "a", "c", "a"):
        topic.change("c", None, {"v": value}, at=10, level=level)
    return topic


@pytest.mark.parametrize("at_most", [100, 2, pytest.param(1, marks=pytest.mark.slow)])
def test_4_3_equal_rows_of_one_position_are_kept_as_often_as_one_run_sent_them(bench: Bench, at_most: int) -> None:
    bench.options = {"trigger": {"max_records": at_most}}
    bench.create()
    before = Topic(bench.topic, connector="postgresql")
    before.change("c", None, {"v": "first"}, at=5)
    run = [*before.records, *copied(bench).records]
    worker = bench.take(run)
    expected = [("c", "a"), ("c", "a"), ("c", "a"), ("c", "b"), ("c", "c"), ("c", "first")]
    assert bench.rows("__op", "v") == expected
    if at_most == 1:
        return
    bench.options = {}
    worker = bench.worker()
    again = copied(bench, level=False)  # after a start the commit level is not known
    later = Topic(bench.topic, connector="postgresql")
    later.change("c", None, {"v": "later"}, at=20)
    for part in (run, again.records[2:]):
        bench.take(part, worker)
        assert bench.rows("__op", "v") == expected
    for part in (later.records, [*again.records, *later.records], [*run, *later.records]):
        bench.take(part, worker)
        assert bench.rows("__op", "v") == [*expected, ("c", "later")]


def test_4_3_a_run_that_a_crash_cut_short_is_completed_by_the_next(bench: Bench) -> None:
    bench.create()
    worker = bench.take(copied(bench).records[:3])
    bench.take(copied(bench, level=False).records, worker)
    assert bench.rows("v") == [("a",), ("a",), ("a",), ("b",), ("c",)]


def test_1_6_in_a_table_without_key_a_delete_is_followed_by_an_empty_record_that_adds_nothing(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", None, {"v": "a"}, at=1)
    topic.change("d", None, at=2, before={"v": "a"})
    topic.add(None, None)
    topic.change("d", None, at=3, before={"v": "a"})
    topic.add(None, None)
    worker = bench.take(topic.records)
    bench.take(topic.records[1:], worker)
    assert bench.rows("__op", "v") == [("c", "a"), ("d", "a"), ("d", "a")]
    assert not bench.quarantine.exists()


@pytest.mark.parametrize("has_schema", [False, True])
def test_3_8_a_table_whose_records_have_no_key_keeps_its_changes_where_keyless_says_so(
    bench: Bench, has_schema: bool
) -> None:
    bench.rule = {"keyless": "append"}
    topic = Topic(bench.create().topic, "postgresql", key=())
    # pgbench truncates its history before it fills it: nothing tells yet whether the table has a key.
    truncate = topic.change("t", None, at=1)
    if has_schema:  # then the table is made by then, and nothing is in it
        topic.with_schema(truncate, {"n": LONG})
    bench.take(topic.records)
    topic.change("c", None, {"n": 1}, at=2)
    topic.change("c", None, {"n": 1}, at=3)
    bench.take(topic.records[1:])
    assert bench.rows("__op", "n") == [("c", 1), ("c", 1), ("t", None)]
    for _ in range(2):  # another driver; and records that are sent again
        bench.take(topic.records[1:])
    assert bench.rows("__op", "n") == [("c", 1), ("c", 1), ("t", None)]
    bench.rule = {}
    with pytest.raises(TableHalt, match="mode-changed"):
        bench.take(topic.records[2:])


def test_3_8_a_table_with_keys_is_kept_by_them_whatever_keyless_says(bench: Bench) -> None:
    bench.rule = {"keyless": "append"}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("u", key(1), row(1, "b"), at=2)
    bench.take(topic.records)
    assert bench.rows() == [(1, "b")]
