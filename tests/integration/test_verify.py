"""`verify`: a table that is right is found equal, and each kind of damage is found and named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.support.changes import Row, Topic
from tests.support.spark import Bench

from distributary.consume.broker import Broker
from distributary.operate.tables import listed, named
from distributary.verify.check import Asked, report
from distributary.verify.key_range import KeyRange
from distributary.verify.report import Difference, State, TableReport

NOT_SENT = "__debezium_unavailable_value"


@pytest.fixture
def bench(session: SparkSession, kafka: str, tmp_path: Path) -> Bench:
    """A topic of its own for each test."""
    return Bench(session, kafka, tmp_path, f"verify{random.randrange(10**9)}.dbo.t")


def row(number: int, value: Any, **more: Any) -> Row:
    return {"id": number, "v": value, **more}


def key(number: int) -> Row:
    return {"id": number}


def verified(bench: Bench, keys: str | None = None, limit: int = 20) -> TableReport:
    config = bench.config()
    broker = Broker(config.kafka_properties())
    one = named("dbo.t", listed(config, broker))
    asked = Asked(limit, None if keys is None else KeyRange.parse(keys))
    found = report(config, one, bench.session, broker, asked, lambda _: None)
    assert found.error is None, found.error
    return found


def faults(found: TableReport) -> dict[str, int]:
    return {name: count for name, count in found.counts.faults.items() if count}


def untold(found: TableReport) -> dict[str, int]:
    return {name: count for name, count in found.counts.not_checked.items() if count}


def eventful(topic: Topic) -> list[list[Any]]:
    """PostgreSQL's records of a table, in slices: all that the rules know of, and records that are sent again."""
    for number in range(1, 13):
        topic.change("r", key(number), row(number, "read", big=f"big {number}"), at=10)
    first = list(topic.records)
    del topic.records[:]
    topic.change("u", key(1), row(1, "new", big=NOT_SENT), at=20)
    topic.change("u", key(1), row(1, "newer", big=NOT_SENT), at=21)
    topic.change("u", key(2), row(2, "new", big="bigger"), at=22)
    topic.change("d", key(3), at=23)
    topic.tombstone(key(3))
    topic.change("d", key(4), at=24, headers={"newkey": key(24)})
    topic.tombstone(key(4))
    topic.change("c", key(24), row(24, "moved", big=NOT_SENT), at=24, headers={"oldkey": key(4)}, partition=1)
    topic.tombstone(key(5))
    topic.change("u", key(30), row(30, "never seen", big=NOT_SENT), at=25)
    second = list(topic.records)
    del topic.records[:]
    topic.change("c", key(40), row(40, "before the truncate", big="b"), at=30)
    topic.change("t", None, at=31, partition=1)
    topic.change("c", key(41), row(41, "after it", big="b"), at=32)
    for at in range(40, 60):
        topic.change("u", key(41), row(41, f"changed {at}", big=NOT_SENT if at % 3 else f"b{at}"), at=at)
    topic.change("c", key(1), row(1, "back", big="b"), at=60)
    topic.change("c", key(42), row(42, "gone", big="b"), at=61)
    topic.change("d", key(42), at=62)
    third = list(topic.records)
    return [first, second, third, third[5:]]


@pytest.mark.parametrize("rule", [{}, {"deletes": "soft", "truncate": "soft"}, {"mode": "history"}, {"mode": "append"}])
def test_2_8_a_table_is_what_its_topic_says_however_it_was_cut(bench: Bench, rule: dict[str, Any]) -> None:
    bench.rule = rule
    slices = eventful(Topic(bench.create(partitions=2).topic, "postgresql"))
    worker = None
    for records in slices[:2]:
        worker = bench.take(records, worker)
    found = verified(bench)
    assert (found.state, found.differences, faults(found)) == (State.EQUAL, (), {})
    assert found.counts.expected == found.counts.lake > 5
    for records in slices[2:]:
        worker = bench.take(records, worker)
    found = verified(bench)
    assert (found.state, found.differences, untold(found)) == (State.EQUAL, (), {})
    assert found.counts.equal > 0
    assert found.notes == ()
