"""Connectors whose changes are ordered by fields of the source block: built-in ones, and one with `source.order`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.changes import Topic, key, row
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
