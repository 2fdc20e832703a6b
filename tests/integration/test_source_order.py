"""Connectors whose changes are ordered by fields of the source block: built-in ones, and one with `source.order`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.changes import Row, Topic, key, row
from tests.support.kafka import Record
from tests.support.spark import Bench

from distributary.errors import TableHalt


@pytest.mark.parametrize(
    ("connector", "source"), [("informix", {}), ("TiCDC", {"order": ["commit_ts"]})], ids=["informix", "TiCDC"]
)
def test_2_1_changes_are_ordered_by_the_fields_and_records_sent_again_change_nothing(
    make_bench: Callable[..., Bench], connector: str, source: dict[str, Any]
) -> None:
    bench = make_bench()
    bench.options = {"source": {"topic_prefix": bench.prefix, **source}}
    topic = Topic(bench.create(partitions=2).topic, connector)
    topic.change("r", key(1), row(1, "read"), at=9)
    topic.change("u", key(1), row(1, "new"), at=100)
    topic.change("u", key(1), row(1, "late"), at=99, partition=1)
    topic.change("c", key(2), row(2, "a"), at=101)
    topic.change("d", key(2), at=102)
    topic.tombstone(key(2))
    topic.change("d", key(3), at=103)  # two halves of one change, at one place
    topic.change("c", key(3), row(3, "b"), at=103)
    for cut in (0, 0, 3, 5, 7):
        bench.take(topic.records[cut:])
        assert bench.rows() == [(1, "new"), (3, "b")], cut
    assert not bench.quarantine.exists()
    bench.options = {"source": {"topic_prefix": bench.prefix, "order": ["commit_ts text"]}}
    with pytest.raises(TableHalt, match="order-changed"):
        bench.take(topic.records[7:])


def test_1_1_a_collection_is_a_table_of_documents(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"source": {"topic_prefix": "x", "connector": "mongodb"}}).create()
    bench.options = {"source": {"topic_prefix": bench.prefix, "connector": "mongodb"}}

    def record(op: str, number: int, document: Row | None, at: int) -> Record:
        source = {"connector": "mongodb", "ts_ms": 1_700_000_000_000, "ord": at, "db": "dbo", "collection": "t"}
        after = None if document is None else json.dumps({"_id": number, **document})
        value = {"before": None, "after": after, "source": {**source, "snapshot": "false"}, "op": op}
        return Record(bench.topic, 0, json.dumps({"id": str(number)}).encode(), json.dumps(value).encode(), [])

    records = [
        record("c", 1, {"v": "a"}, 1),
        record("c", 2, {"v": "b"}, 2),
        record("u", 1, {"v": "c"}, 3),
        record("d", 2, None, 4),
        Record(bench.topic, 0, b'{"id": "2"}', None, []),
    ]
    for _ in range(2):  # and all of it sent again
        bench.take(records)
        assert bench.rows("_id", "document") == [("1", '{"_id": 1, "v": "c"}')]
    assert not bench.quarantine.exists()
