"""A snapshot signal in a real Kafka."""

from __future__ import annotations

import uuid

from tests.support.kafka import create_topic

from distributary.consume.kafka_client import KafkaClient


def test_a_signal_is_written_once_into_the_first_partition(kafka: str) -> None:
    topic = f"signal.{uuid.uuid4().hex}"
    create_topic(kafka, topic, 2)
    broker = KafkaClient({"bootstrap.servers": kafka})
    broker.write(topic, b"server1", b'{"type": "execute-snapshot"}')
    found = broker.topics([topic])[topic]
    (record,) = broker.records(found, broker.earliest(found), 10)
    assert (record.partition, record.key, record.value) == (0, b"server1", b'{"type": "execute-snapshot"}')
    assert broker.latest(found) == {0: 1, 1: 0}
