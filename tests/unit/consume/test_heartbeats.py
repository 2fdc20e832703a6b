"""When the connector gave its last sign of life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from tests.support.kafka import Record
from tests.support.memory_kafka import MemoryClient, create_topic, drop_address, new_address, produce

from distributary.consume.heartbeats import HEARTBEATS, Heartbeats
from distributary.consume.kafka_client import Topic
from distributary.errors import TransientError


@pytest.fixture
def memory_kafka() -> Iterator[str]:
    address = new_address()
    yield address
    drop_address(address)


AT = 1_700_000_000_123


def test_the_newest_heartbeat_of_the_connector_is_shown(memory_kafka: str) -> None:
    shown: list[int | None] = []
    beats = Heartbeats("server1", MemoryClient(memory_kafka), shown.append)
    beats.poll()
    create_topic(memory_kafka, HEARTBEATS + "server1")
    create_topic(memory_kafka, HEARTBEATS + "other")
    beats.poll()
    produce(memory_kafka, [Record(HEARTBEATS + "server1", 0, b"{}", b"{}", [], AT + n) for n in (0, 1)])
    produce(memory_kafka, [Record(HEARTBEATS + "other", 0, b"{}", b"{}", [], AT + 9)])
    beats.poll()
    assert shown == [None, None, AT + 1]


def test_a_kafka_that_does_not_tell_leaves_nothing_that_is_out_of_date(memory_kafka: str) -> None:
    class Silent(MemoryClient):
        def topics(self, names: Iterable[str]) -> dict[str, Topic]:
            del names
            raise TransientError("kafka-unreachable", "no broker answers", "look at the brokers")

    shown: list[int | None] = [AT]
    Heartbeats("server1", Silent(memory_kafka), shown.append).poll()
    assert shown == [AT, None]
