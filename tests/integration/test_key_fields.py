"""Key fields that the row lacks: they become columns, and the table is matched by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.changes import Row, Topic
from tests.support.spark import Bench

from distributary.decode.options import DEFAULT_PLACEHOLDER
from distributary.errors import TableHalt


def sharded_key(number: int, shard: str = "s1") -> Row:
    return {"id": number, "__shard": shard}


@pytest.mark.parametrize("cuts", [1, 9])
def test_3_4_a_row_is_matched_by_all_fields_of_its_key(bench: Bench, cuts: int) -> None:
    topic = Topic(bench.create().topic, "postgresql")

    def change(op: str, of: Row, doc: str | None, at: int, **more: Any) -> None:
        topic.change(op, of, None if op == "d" else {"id": of["id"], "doc": doc}, at=at, **more)

    change("c", sharded_key(1), "one", 1)
    change("c", sharded_key(1, "s2"), "other", 2)  # the same id of another shard
    change("c", sharded_key(2), "two", 3)
    change("u", sharded_key(1), "one b", 4)
    change("d", sharded_key(2), None, 5)
    topic.tombstone(sharded_key(2))
    # The connector's headers lack the field that a transform added to the keys.
    change("d", sharded_key(1), None, 6, tx=6, headers={"newkey": {"id": 9}})
    change("c", sharded_key(9), DEFAULT_PLACEHOLDER, 6, tx=6, headers={"oldkey": {"id": 1}})
    change("u", sharded_key(1, "s2"), "other b", 7)
    for repeat in range(2):  # and all of it sent again
        size = -(-len(topic.records) // cuts)
        for start in range(0, len(topic.records), size):
            bench.take(topic.records[start : start + size])
        assert bench.rows("id", "__shard", "doc") == [(1, "s2", "other b"), (9, "s1", "one b")], repeat
    assert json.loads((topic.records[0].key or b"").decode()) == sharded_key(1)


def test_3_1_rows_of_several_source_tables_are_merged_and_kept_apart(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(merge_sources=True).create()
    topic = Topic(bench.topic, "mysql")

    def change(op: str, table: str, number: int, value: str | None, at: int) -> None:
        after = None if op == "d" else {"id": number, "v": value}
        topic.change(op, {"id": number}, after, at=at, names={"db": "shop", "table": table})

    change("c", "orders_1", 1, "a", 1)
    change("c", "orders_2", 1, "b", 2)
    change("c", "orders_2", 2, "c", 3)
    change("u", "orders_1", 1, "a2", 4)
    change("d", "orders_2", 1, None, 5)
    topic.tombstone({"id": 1})
    for _ in range(2):
        bench.take(topic.records)
        assert bench.rows("id", "__physical_table", "v") == [(1, "shop.orders_1", "a2"), (2, "shop.orders_2", "c")]
    assert not bench.quarantine.exists()


def test_6_2_a_second_source_table_halts_the_table_until_it_is_merged(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench().create()
    topic = Topic(bench.topic, "mysql")
    for at, table in ((1, "Orders"), (2, "orders")):
        topic.change("c", {"id": at}, {"id": at}, at=at, names={"db": "shop", "table": table})
    bench.take(topic.records[:1])
    for _ in range(2):  # another driver knows it by the table's own record
        with pytest.raises(TableHalt, match="two-tables-one-topic") as halt:
            bench.take(topic.records[1:])
    assert "shop.Orders, shop.orders" in halt.value.message
    assert bench.rows() == [(1,)]


@pytest.mark.parametrize("mode", ["soft", "history", "append"])
@pytest.mark.parametrize("cuts", [1, 8])
def test_3_4_every_mode_has_the_fields_of_the_key(make_bench: Callable[..., Bench], mode: str, cuts: int) -> None:
    rule = {"soft": {"deletes": "soft"}}.get(mode, {"mode": mode})
    bench = make_bench(**rule).create()
    topic = Topic(bench.topic, "oracle")

    def change(op: str, of: Row, doc: str | None, at: int, **more: Any) -> None:
        topic.change(op, of, None if op == "d" else {"id": of["id"], "doc": doc}, at=at, **more)

    change("r", sharded_key(1), "one", 1)
    change("r", sharded_key(1, "s2"), "other", 1)
    change("u", sharded_key(1), "one b", 4)
    change("d", sharded_key(1, "s2"), None, 5)
    topic.tombstone(sharded_key(1, "s2"))
    change("d", sharded_key(1), None, 6, tx=6, headers={"newkey": {"id": 9}})
    change("c", sharded_key(9), DEFAULT_PLACEHOLDER, 6, tx=6, headers={"oldkey": {"id": 1}})
    for repeat in range(2):  # and all of it sent again
        size = -(-len(topic.records) // cuts)
        for start in range(0, len(topic.records), size):
            bench.take(topic.records[start : start + size])
        end = {"soft": "__deleted", "history": "__current", "append": "__op"}[mode]
        rows = bench.rows("id", "__shard", "doc", end)
        expected: list[tuple[Any, ...]]
        if mode == "soft":
            expected = [(1, "s1", "one b", True), (1, "s2", "other", True), (9, "s1", "one b", False)]
        elif mode == "history":
            expected = [
                (1, "s1", "one", False),
                (1, "s1", "one b", False),
                (1, "s2", "other", False),
                (9, "s1", "one b", True),
            ]
        else:
            expected = [
                *[(1, "s1", "one", "r"), (1, "s1", "one b", "u"), (1, "s1", None, "d")],
                *[(1, "s2", "other", "r"), (1, "s2", None, "d"), (9, "s1", None, "c")],
            ]
        assert sorted(rows, key=repr) == sorted(expected, key=repr), repeat
    assert not bench.quarantine.exists()
