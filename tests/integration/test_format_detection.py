"""Format detection on a real Kafka, and a table whose first detection finds no record."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.changes import Topic
from tests.support.kafka import Record, abort, create_topic
from tests.support.spark import Bench

from distributary.consume.kafka_client import KafkaClient


@pytest.mark.timeout(60)
def test_it_ends_where_only_aborted_transactions_are_left(kafka: str) -> None:
    topic = f"look.{uuid.uuid4().hex}"
    create_topic(kafka, topic, 2)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic})
    producer.init_transactions(30)
    for value, ends in (
        (b"kept", producer.commit_transaction),
        (b"aborted", producer.abort_transaction),
        (b"aborted too", producer.abort_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        ends(30)
    broker = KafkaClient({"bootstrap.servers": kafka})
    found = broker.topics([topic])[topic]
    assert broker.latest(found)[0] > 3
    # Longer than the test may take: what is not there is not waited for.
    assert [r.value for r in broker.records(found, {0: 0, 1: 0}, 10, timeout=600)] == [b"kept"]
    assert broker.records(found, {0: 1, 1: 0}, 10, timeout=600) == []


def changes(topic: str, rule: Mapping[str, Any], *numbers: int) -> list[Record]:
    """An insert of each number, with a key where the rule is for records that have one."""
    made = Topic(topic)
    for number in numbers:
        made.change("c", None if rule else {"id": number}, {"id": number, "v": f"row {number}"}, at=number)
    return made.records


RULES: list[Mapping[str, Any]] = [{}, {"key": ["id"]}, {"mode": "append"}]


@pytest.mark.parametrize("rule", RULES, ids=["keyed", "key in the config", "append"])
def test_6_2_a_driver_that_finds_aborted_transactions_alone_goes_on(
    kafka_bench: Bench, rule: Mapping[str, Any]
) -> None:
    bench = kafka_bench.create()
    bench.rule = rule
    bench.take(changes(bench.topic, rule, 1))
    abort(bench.kafka, changes(bench.topic, rule, 2, 3))
    worker = bench.take([])
    assert (worker.next_offsets, worker.lag()) == ({0: 4}, 0)
    bench.take(changes(bench.topic, rule, 4), worker)
    assert bench.rows() == [(1, "row 1"), (4, "row 4")]


@pytest.mark.parametrize("source", [{}, {"connector": "sqlserver"}], ids=["by its records", "by the config"])
@pytest.mark.parametrize("rule", RULES, ids=["keyed", "key in the config", "append"])
def test_6_2_a_table_of_which_there_are_aborted_transactions_alone_waits_for_a_record(
    kafka_bench: Bench, rule: Mapping[str, Any], source: Mapping[str, str]
) -> None:
    bench = kafka_bench.create()
    bench.rule = rule
    bench.options = {"source": {"topic_prefix": bench.prefix, **source}, "trigger": {"max_records": 1}}
    abort(bench.kafka, changes(bench.topic, rule, 1, 2))
    worker = bench.take([])
    assert (worker.lag(), worker.next_offsets, bench.table.exists()) == (0, {}, False)
    worker.request_recheck()
    bench.take([], worker)
    bench.take(changes(bench.topic, rule, 3), worker)
    assert (bench.rows(), worker.next_offsets) == ([(3, "row 3")], {0: 4})
