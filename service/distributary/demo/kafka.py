"""Writes the demo's records into Kafka as Kafka Connect would: same partitioner, in order, nothing twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from distributary.demo.record import Record
from distributary.errors import TransientError

TIMEOUT_SECONDS = 60

EndOffsets = dict[str, dict[int, int]]
"""Per topic and partition the offset that the next record will get."""


class Writer:
    """Creates topics and appends records. Every method raises TransientError `demo-kafka-failed`."""

    def __init__(self, bootstrap: str) -> None:
        # librdkafka's own lines on standard error would mix with the demo's output; failures are raised anyway.
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._admin = AdminClient(client)
        self._producer = Producer(
            {
                **client,
                "enable.idempotence": True,
                # Kafka's Java clients hash keys this way, and so Kafka Connect does.
                "partitioner": "murmur2_random",
                "linger.ms": 20,
            }
        )
        self._ends: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._failed: list[str] = []

    @property
    def ends(self) -> EndOffsets:
        """The ends of the topics after the records that were written here."""
        return {topic: dict(partitions) for topic, partitions in self._ends.items()}

    def create_topics(self, topics: Iterable[str], partitions: int) -> None:
        """Make topics, each with `partitions` partitions."""
        futures = self._admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics])
        for topic, future in futures.items():
            error = future.exception(TIMEOUT_SECONDS)
            if error is not None:
                raise _failure(f"topic {topic} could not be made: {error}") from error

    def write(self, records: Iterable[Record]) -> None:
        """Append records in the given order; returns when Kafka has them all."""
        for record in records:
            where: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
            self._producer.produce(
                record.topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                on_delivery=self._delivered,
                **where,
            )
            self._producer.poll(0)
        unsent = self._producer.flush(TIMEOUT_SECONDS)
        if unsent or self._failed:
            raise _failure("; ".join(self._failed[:3]) or f"{unsent} records were not taken within {TIMEOUT_SECONDS} s")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(str(error))
            return
        ends = self._ends[message.topic()]
        ends[message.partition()] = max(ends.get(message.partition(), 0), message.offset() + 1)


def _failure(message: str) -> TransientError:
    return TransientError("demo-kafka-failed", message, "look into the broker's log, then start the demo again")
