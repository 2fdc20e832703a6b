"""A real Kafka for the tests, and the functions that tests need."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions, NewTopic
from tests.support import memory_kafka
from tests.support.waiting import wait_until

from distributary.demo.broker import Broker

if TYPE_CHECKING:
    from testcontainers.community.kafka import KafkaContainer

# Testcontainers starts this one's scripts; it knows no way to start Apache's own image.
IMAGE = "confluentinc/cp-kafka:7.6.0"
TIMEOUT = 60
"""Seconds."""

Headers = Sequence[tuple[str, bytes | None]]
# The broker of a test is stopped while clients may still be there; they need not say so.
_QUIET = {"log_level": 0}


class Sendable(Protocol):
    """The fields of a record that `produce` uses. Without a partition the key decides, as with Kafka's own clients;
    without a timestamp (milliseconds) it is now."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int | None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def timestamp(self) -> int | None: ...


class Record(NamedTuple):
    """A record to produce."""

    topic: str
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None


@contextmanager
def running_kafka(directory: Path) -> Iterator[str]:
    """The address of a Kafka: what KAFKA_BOOTSTRAP names, else a container where a container engine answers, else a
    broker from its jars that keeps its files in `directory`."""
    given = os.environ.get("KAFKA_BOOTSTRAP")
    if given:
        yield given
        return
    container = _start_container()
    if container is not None:
        try:
            yield container.get_bootstrap_server()
        finally:
            container.stop()
        return
    with Broker.start(directory) as broker:
        yield broker.bootstrap


def create_topic(bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """As create_topics, for one topic."""
    create_topics(bootstrap, {name: partitions}, config)


def create_topics(bootstrap: str, partitions: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
    """Make topics, each with so many partitions, and wait until all can be written. Records stay however old they are,
    unless `config` sets a retention. Raises KafkaException."""
    if memory_kafka.is_in_memory(bootstrap):
        for name, count in partitions.items():
            memory_kafka.create_topic(bootstrap, name, count, config)
        return
    if not partitions:
        return
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    settings = {"retention.ms": "-1", **(config or {})}
    wanted = [NewTopic(name, count, 1, config=settings) for name, count in partitions.items()]
    for future in admin.create_topics(wanted).values():
        future.result(TIMEOUT)
    places = {(bootstrap, name) for name in partitions}
    if places & _created:
        connect_anew(bootstrap)
    _created.update(places)
    wait_until(lambda: _have_leaders(admin, partitions), TIMEOUT, f"leaders of {', '.join(partitions)}")


def grow_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Give a topic more partitions. Raises KafkaException."""
    if memory_kafka.is_in_memory(bootstrap):
        memory_kafka.grow_topic(bootstrap, name, partitions)
        return
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(TIMEOUT)
    wait_until(lambda: _have_leaders(admin, {name: partitions}), TIMEOUT, f"leaders of {name}")
    connect_anew(bootstrap)  # a producer refuses partitions that it does not know yet


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic. Raises KafkaException."""
    if memory_kafka.is_in_memory(bootstrap):
        memory_kafka.delete_topic(bootstrap, name)
        return
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.delete_topics([name])[name].result(TIMEOUT)
    # It is known for a moment longer, and can't be created again while it is.
    wait_until(lambda: name not in admin.list_topics(timeout=TIMEOUT).topics, TIMEOUT, f"the end of topic {name}")


def delete_records(bootstrap: str, name: str, before: int, partition: int = 0) -> None:
    """Remove the records of a partition before that offset, as retention does, at once. Raises KafkaException."""
    cut = TopicPartition(name, partition, before)
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.delete_records([cut])[cut].result(TIMEOUT)


LARGEST_MESSAGE = 100_000_000
"""Bytes: what a producer sends at most. A topic takes more than a megabyte only with max.message.bytes."""


class Sender:
    """A producer that stays connected: a new one takes half a second to begin."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                # As a connector is set up whose database has large values; the broker and the topic have their own
                # limits.
                "message.max.bytes": LARGEST_MESSAGE,
                **_QUIET,
            }
        )
        self._failed: list[Any] = []

    def send(self, records: Iterable[Sendable]) -> None:
        """Append records in the given order, each once; returns when Kafka has them all. Raises KafkaException."""
        for record in records:
            where: dict[str, Any] = {}
            if record.partition is not None:
                where["partition"] = record.partition
            if record.timestamp is not None:
                where["timestamp"] = record.timestamp
            while True:
                try:
                    self._producer.produce(
                        record.topic,
                        record.value,
                        record.key,
                        headers=list(record.headers),
                        on_delivery=self._delivered,
                        **where,
                    )
                    break
                except BufferError:  # the local queue is full: let it drain
                    self._producer.poll(0.5)
            self._producer.poll(0)
        left = self._producer.flush(TIMEOUT)
        if self._failed:
            failed, self._failed = self._failed, []
            raise KafkaException(failed[0])
        if left:
            raise TimeoutError(f"{left} records were not taken within {TIMEOUT} s")

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed.append(error)


_created: set[tuple[str, str]] = set()
"""The topics that this process has made, by address and name."""

_senders: dict[str, Sender] = {}
"""This process's producer for each address."""


def connect_anew(bootstrap: str) -> None:
    """The next `produce` has a producer of its own. A producer numbers its records by topic and partition. If a topic
    was created again, or lost records, Kafka accepts no more from a producer that continues its numbers."""
    _senders.pop(bootstrap, None)


def produce(bootstrap: str, records: Iterable[Sendable]) -> None:
    """As Sender.send, by a producer that stays connected for the whole process."""
    if memory_kafka.is_in_memory(bootstrap):
        memory_kafka.produce(bootstrap, records)
        return
    sender = _senders.pop(bootstrap, None) or Sender(bootstrap)
    sender.send(records)
    _senders[bootstrap] = sender  # not one that failed: it may still hold records that Kafka did not take


def abort(bootstrap: str, records: Sequence[Sendable]) -> None:
    """Sends records to partition 0 in a transaction that comes to nothing, as a connector does that is killed."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in records:
        producer.produce(record.topic, record.value, record.key, 0)
    producer.flush(30)
    topic = records[0].topic
    end = end_offsets(bootstrap, topic)[0]
    producer.abort_transaction(30)
    # The marker may be written only after that.
    wait_until(lambda: end_offsets(bootstrap, topic)[0] > end, what="the transaction's marker")


def leave_gap(bootstrap: str, topic: str) -> None:
    """The next offsets of partition 0 have no record, as if compaction had taken them away."""
    if memory_kafka.is_in_memory(bootstrap):
        memory_kafka.leave_gap(bootstrap, topic)
    else:
        abort(bootstrap, [Record(topic, 0, b"key", b"value")])


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Per partition the offset that the next record will get. Raises KafkaException."""
    if memory_kafka.is_in_memory(bootstrap):
        return memory_kafka.end_offsets(bootstrap, topic)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end-offsets", **_QUIET})
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions
        ends = {}
        for partition in partitions:
            marks = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
            assert marks is not None, f"Kafka did not tell the end of {topic} within {TIMEOUT} s"
            ends[partition] = marks[1]
        return ends
    finally:
        consumer.close()


def committed_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    """The group's offsets by topic and partition, as kafka-consumer-groups.sh would see them. Raises KafkaException."""
    # Not by the admin client: librdkafka ends the process where a group's coordinator is not found yet.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **_QUIET})
    try:
        topics = consumer.list_topics(timeout=TIMEOUT).topics
        every = [TopicPartition(name, partition) for name, topic in topics.items() for partition in topic.partitions]
        found = consumer.committed(every, timeout=TIMEOUT)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
    finally:
        consumer.close()


def _have_leaders(admin: AdminClient, partitions: Mapping[str, int]) -> bool:
    """Whether all partitions of these topics can be read: a broker learns that it leads a partition after its metadata
    say so."""
    wanted = {
        TopicPartition(name, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for name, count in partitions.items()
        for partition in range(count)
    }
    try:
        for future in admin.list_offsets(wanted, request_timeout=TIMEOUT).values():
            future.result()
    except KafkaException:
        return False
    return True


def _start_container() -> KafkaContainer | None:
    """None where no container engine answers, or where it can't get the image: the jars are used instead."""
    # Imported here: most runs need no container, and each process of the tests would wait for these imports.
    from docker.errors import DockerException  # type: ignore[import-untyped]
    from testcontainers.community.kafka import KafkaContainer
    from testcontainers.core.docker_client import DockerClient

    try:
        DockerClient().client.ping()
        container = KafkaContainer(IMAGE).with_kraft().with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        return container.start(timeout=2 * TIMEOUT)
    except DockerException:
        return None
