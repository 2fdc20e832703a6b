"""Reads some records of a topic by their offsets, without storing its own position."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from distributary.consume.kafka_errors import refusal
from distributary.consume.tail import NO_GROUP, Headers, headers_of

Options = Mapping[str, str | int | float | bool]
_MOST_FETCHED = 64 * 1024  # bytes per request; a larger record comes whole all the same
_TIMEOUT = 10.0  # seconds for the values at all offsets


@dataclass(frozen=True)
class SampledRecord:
    """A sampled record of a topic, which shows the topic's format. `timestamp`: Kafka's, in milliseconds since 1970."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


def records_from(
    options: Options, topic: str, start: Mapping[int, int], at_most: int, expected: int, timeout: float
) -> list[SampledRecord]:
    """Up to `at_most` records of each partition from its offset in `start` on, `expected` in all; fewer where there are
    no more, or where they do not come within `timeout` seconds. `options` are librdkafka's. Raises TransientError where
    none comes in time."""
    consumer = Consumer(_sampling_options(options))
    records: list[SampledRecord] = []
    counts: dict[int, int] = {}
    ended: set[int | None] = set()
    try:
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in start.items()])
        until = time.monotonic() + timeout
        # Transaction markers and compaction leave offsets without a record: there may be fewer than expected.
        while len(records) < expected and not ended.issuperset(start):
            message = consumer.poll(0.5)
            if records and (message is None or time.monotonic() > until):
                break
            if message is None:
                if time.monotonic() > until:
                    raise refusal(f"give records of {topic}", KafkaError(KafkaError._TIMED_OUT))
                continue
            if _is_end(message):
                ended.add(message.partition())
                continue
            if (refused := message.error()) is not None:
                if refused.code() == NO_GROUP:
                    continue
                raise refusal(f"give records of {topic}", refused)
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None and counts.get(partition, 0) < at_most:
                counts[partition] = counts.get(partition, 0) + 1
                if counts[partition] == at_most:
                    # Its further records would be read until the time is over, where another partition has too few.
                    ended.add(partition)
                    consumer.pause([TopicPartition(topic, partition)])
                kind, at = message.timestamp()
                timestamp = None if kind == TIMESTAMP_NOT_AVAILABLE else at
                records.append(
                    SampledRecord(partition, offset, message.key(), message.value(), headers_of(message), timestamp)
                )
    finally:
        consumer.close()
    return records


def values_at(
    options: Options, topic: str, offsets: Iterable[tuple[int, int]], at_most: int
) -> list[list[bytes | None]]:
    """The values of up to `at_most` records from each of these partitions and offsets on, if there are any and they
    arrive in time. `options` are librdkafka's. Raises TransientError."""
    consumer = Consumer(
        {
            **_sampling_options(options),
            # As little as possible: only the first records from each offset on are used.
            "queued.min.messages": 1,
            "fetch.message.max.bytes": _MOST_FETCHED,
            # The default is a whole second, once more was fetched than requested.
            "fetch.queue.backoff.ms": 1,
        }
    )
    sampled: list[list[bytes | None]] = []
    until = time.monotonic() + _TIMEOUT
    try:
        for partition, offset in offsets:
            consumer.assign([TopicPartition(topic, partition, offset)])
            values: list[bytes | None] = []
            # Those that came with the first one are there already.
            while len(values) < at_most and (seconds_left := until - time.monotonic()) > 0:
                message = consumer.poll(0.0 if values else seconds_left)
                if message is None or _is_end(message):
                    break
                if (refused := message.error()) is None:
                    values.append(message.value())
                elif refused.code() != NO_GROUP:
                    raise refusal(f"give records of {topic}", refused)
            sampled.append(values)
    finally:
        consumer.close()
    return sampled


def _sampling_options(options: Options) -> dict[str, Any]:
    return {
        **options,
        "group.id": "distributary-first-look",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
