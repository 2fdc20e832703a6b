"""Batches above the limit of small ones, with each key once (not folded) or twice."""

from __future__ import annotations

import itertools

from tests.support.changes import Topic
from tests.support.spark import Bench

COLUMNS = {"id": "int", "v": "string"}


def test_each_key_has_one_row_whether_a_large_batch_has_it_once_or_twice(bench: Bench) -> None:
    bench.rule = {"columns": COLUMNS}
    topic = Topic(bench.create().topic)
    count = 5_100

    def batch_of(keys: range, value: str, twice: int = 0) -> None:
        topic.records.clear()
        for op, of, found in (("c", keys, value), ("u", keys[:twice], f"{value} again")):
            for key in of:
                row = {"id": key, "v": found}
                rows[key] = found
                topic.change(op, {"id": key}, row, at=next(places))

    rows: dict[int, str] = {}
    places = itertools.count(1)
    batch_of(range(count), "filled", twice=50)
    worker = bench.take(topic.records)
    batch_of(range(count, 2 * count), "once")
    bench.take(topic.records, worker)
    batch_of(range(2 * count, 3 * count), "more", twice=70)
    bench.take(topic.records, worker)
    # Changes that come late, a tombstone of which no delete is told, and deletes.
    topic.records.clear()
    for key in range(count):
        topic.change("u", {"id": key}, {"id": key, "v": "older"}, at=1)
    for key in range(count, count + 30):
        del rows[key]
        topic.change("d", {"id": key}, at=10 * count + key)
        topic.tombstone({"id": key})
    del rows[0]
    topic.tombstone({"id": 0})
    bench.take(topic.records, worker)
    assert bench.rows("id", "v") == sorted(rows.items(), key=repr)
