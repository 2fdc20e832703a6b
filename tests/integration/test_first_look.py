"""A look at a topic's records, by a real Kafka."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from tests.support.kafka import create_topic

from distributary.consume.broker import Broker


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
    broker = Broker({"bootstrap.servers": kafka})
    found = broker.topics([topic])[topic]
    assert broker.latest(found)[0] > 3
    # Longer than the test may take: what is not there is not waited for.
    assert [r.value for r in broker.records(found, {0: 0, 1: 0}, 10, timeout=600)] == [b"kept"]
    assert broker.records(found, {0: 1, 1: 0}, 10, timeout=600) == []
