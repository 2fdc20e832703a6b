"""The connector's heartbeats: they show that the connector runs, even if the source changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from distributary.consume.kafka_client import KafkaClient
from distributary.errors import TransientError

HEARTBEATS = "__debezium-heartbeat."
"""The beginning of the name of Debezium's heartbeat topic; the topic prefix follows."""


class Heartbeats:
    """Finds when Kafka got the last heartbeat of the connector with that topic prefix, and passes it to `show`: in
    milliseconds since 1970, or None if there is no heartbeat or Kafka does not report its time."""

    def __init__(self, topic_prefix: str, kafka: KafkaClient, show: Callable[[int | None], None]) -> None:
        self._topic = HEARTBEATS + topic_prefix
        self._kafka = kafka
        self._show = show

    def poll(self) -> None:
        """Requests only the time of the newest record; reads no record."""
        try:
            topic = self._kafka.topics([self._topic]).get(self._topic)
            self._show(None if topic is None else self._kafka.newest_time_ms(topic))
        except TransientError:
            # Nothing depends on it: the clients that read and write records report Kafka's errors.
            self._show(None)
