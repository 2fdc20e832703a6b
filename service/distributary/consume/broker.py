"""What the service asks Kafka itself: topic ids, first and last offsets, a topic's first records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from distributary.consume.offsets import Offsets
from distributary.consume.options import librdkafka_options
from distributary.consume.tail import Headers, Tail, headers_of
from distributary.errors import TransientError

_TIMEOUT = 30.0  # seconds an admin call may take before the work is tried again


@dataclass(frozen=True)
class Topic:
    """A topic as it is now. `topic_id` changes when it is deleted and created again."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """A record at the head of a topic, looked at to learn the topic's format."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Broker:
    """A connection to Kafka for small questions; every method raises TransientError when Kafka does not answer."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        # The client's own lines on standard error would mix with the log: what matters comes back as an error anyway.
        self._options: dict[str, str | int | float | bool] = {**librdkafka_options(properties), "log_level": 0}
        self._admin = AdminClient(dict(self._options))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of the topics that exist."""
        wanted = list(names)
        if not wanted:
            return {}
        found = {}
        futures = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_TIMEOUT)
        for name, future in futures.items():
            try:
                described = future.result()
            except KafkaException as error:
                if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                    continue
                raise _transient("describe topics", error) from error
            ids = tuple(sorted(p.id for p in described.partitions))
            found[name] = Topic(name, str(described.topic_id), ids)
        return found

    def names(self) -> list[str]:
        """All topics of the cluster."""
        return sorted(self.partitions())

    def partitions(self) -> dict[str, tuple[int, ...]]:
        """All topics of the cluster with their partitions."""
        try:
            listed = self._admin.list_topics(timeout=_TIMEOUT).topics
        except KafkaException as error:
            raise _transient("list topics", error) from error
        return {name: tuple(sorted(topic.partitions)) for name, topic in listed.items()}

    def tail(self, topic: str, offset: int) -> Tail:
        """Reads the topic's only partition, from that offset on."""
        return Tail(self._options, topic, offset)

    def earliest(self, topic: Topic) -> Offsets:
        """The first offset that each partition still has."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def latest(self, topic: Topic) -> Offsets:
        """The offset after the last committed record of each partition."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _offsets(self, topic: Topic, spec: OffsetSpec) -> Offsets:
        wanted = {TopicPartition(topic.name, p): spec for p in topic.partitions}
        try:
            futures = self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT
            )
            return {tp.partition: future.result().offset for tp, future in futures.items()}
        except KafkaException as error:
            raise _transient(f"list the offsets of {topic.name}", error) from error

    def records(self, topic: Topic, start: Mapping[int, int], at_most: int, timeout: float = 10.0) -> list[Record]:
        """Up to `at_most` records of each partition from its offset in `start` on, fewer where there are no more."""
        latest = self.latest(topic)
        behind = {p: latest[p] - offset for p, offset in start.items() if latest.get(p, 0) > offset}
        expected = sum(min(at_most, n) for n in behind.values())
        if not expected:
            return []
        consumer = Consumer(
            {
                **self._options,
                "group.id": "distributary-first-look",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        records: list[Record] = []
        taken: dict[int, int] = {}
        try:
            consumer.assign([TopicPartition(topic.name, p, start[p]) for p in behind])
            until = time.monotonic() + timeout
            while len(records) < expected and time.monotonic() < until:
                message = consumer.poll(0.5)
                if message is None:
                    # Transaction markers and compaction leave offsets without a record: this may be all there is.
                    if records:
                        break
                    continue
                if message.error():
                    raise TransientError("kafka-read", f"{topic.name} can't be read: {message.error()}")
                partition, offset = message.partition(), message.offset()
                if partition is not None and offset is not None and taken.get(partition, 0) < at_most:
                    taken[partition] = taken.get(partition, 0) + 1
                    headers = headers_of(message)
                    records.append(Record(partition, offset, message.key(), message.value(), headers))
        finally:
            consumer.close()
        return records


def _transient(what: str, error: KafkaException) -> TransientError:
    reason = error.args[0]
    return TransientError("kafka-unreachable", f"Kafka did not {what}: {reason.str()}", "check kafka.bootstrap.servers")
