"""Reads the records of an offset range in this process, as Arrow."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from distributary.consume.kafka_errors import refusal
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import MessageColumns, RecordTableBuilder
from distributary.consume.tail import NO_GROUP

_MOST_AT_ONCE = 2_000
_PATIENCE = 60.0
"""Seconds without a record after which Kafka counts as unreachable."""
_IDLE_CONSUMERS = 4
_OPTIONS: Mapping[str, Any] = {
    "group.id": "distributary-fetch",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    # Missing records must be an error, and not be skipped.
    "auto.offset.reset": "error",
    # The bytes that the client reads ahead, in vain behind the end of a range. Once it has these bytes, by default it
    # waits for a whole second before it requests more.
    "queued.max.messages.kbytes": 32 * 1024,
    "fetch.queue.backoff.ms": 1,
    # At the end of a topic the client requests more records than there are, and its next range waits until the broker
    # answers.
    "fetch.wait.max.ms": 5,
}


@dataclass(frozen=True)
class FetchedRecords:
    """The records (record_tables.RAW) of an offset range. If not `is_complete`, only the first ones of each partition:
    more than `most_bytes` are there."""

    records: pa.Table
    is_complete: bool = True


@dataclass(frozen=True)
class FetchPieces:
    """Reads offset ranges in pieces, in whatever process it was sent to; `options` are librdkafka's."""

    options: Mapping[str, str | int | float | bool] = field(repr=False)

    def __call__(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """The range's records (record_tables.RAW), in pieces of about so many records and bytes at most.

        Raises TransientError.
        """
        fetcher = RecordFetcher(self.options)
        try:
            yield from fetcher.fetch_pieces(offset_range, most_records, most_bytes)
        finally:
            fetcher.close()


class RecordFetcher:
    """Long-lived consumers that read offset ranges for all tables. Safe for several threads."""

    def __init__(self, options: Mapping[str, str | int | float | bool]) -> None:
        # The client's own lines on standard error would mix with the log; failures are raised as errors anyway.
        self._options = {**options, **_OPTIONS, "log_level": 0}
        self._idle: list[Consumer] = []

    def fetch(self, offset_range: OffsetRange, most_bytes: int = sys.maxsize) -> FetchedRecords:
        """The range's first records, up to `most_bytes` of keys, values and headers. Skips offsets without a record
        (aborted transactions, compaction).

        Raises TransientError.
        """
        builder = RecordTableBuilder(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                columns = MessageColumns.of(messages)
                count = columns.count_within(most_bytes - builder.bytes)
                builder.add(columns.slice(0, count))
                if count < len(messages):
                    return FetchedRecords(builder.build(), is_complete=False)
        return FetchedRecords(builder.build())

    def fetch_pieces(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """All records of the range, in pieces of at most about so many records and bytes. Raises TransientError."""
        builder = RecordTableBuilder(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                columns, start = MessageColumns.of(messages), 0
                del messages  # their values are not kept beside the table
                while start < len(columns.values):
                    count = min(most_records - builder.count, columns.count_within(most_bytes - builder.bytes, start))
                    if not count and not builder.count:
                        count = 1  # larger than most_bytes by itself
                    builder.add(columns.slice(start, start + count))
                    start += count
                    if start < len(columns.values):
                        yield builder.build()
                        builder = RecordTableBuilder(offset_range.topic)
            if builder.count:
                yield builder.build()

    def close(self) -> None:
        """Closes the consumers that no thread uses."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        try:
            consumer = self._idle.pop()
        except IndexError:
            consumer = _new_consumer(self._options)
        try:
            yield consumer
        except BaseException:
            consumer.close()  # after any error, the next consumer begins anew
            raise
        if len(self._idle) < _IDLE_CONSUMERS:
            self._idle.append(consumer)
        else:
            consumer.close()


def _new_consumer(options: Mapping[str, Any]) -> Consumer:
    try:
        return Consumer(dict(options))
    except KafkaException as error:
        raise refusal("take the config's `kafka`", error.args[0]) from error


def _consume(consumer: Consumer, offset_range: OffsetRange) -> Generator[list[Message], None, None]:
    """The messages of a range as they arrive, each partition's in the order of their offsets."""
    open_ends = {p: end for p, end in offset_range.end.items() if end > offset_range.start[p]}
    consumer.assign([TopicPartition(offset_range.topic, p, offset_range.start[p]) for p in open_ends])
    until = time.monotonic() + _PATIENCE
    try:
        while open_ends:
            # The client waits for the first message; those that came with it are there already.
            message = consumer.poll(0.5)
            messages = [] if message is None else [message, *consumer.consume(_MOST_AT_ONCE, 0)]
            if messages:
                until = time.monotonic() + _PATIENCE
            elif time.monotonic() > until:
                raise refusal(f"give records of {offset_range.topic}", KafkaError(KafkaError._TIMED_OUT))
            if wanted := [message for message in messages if _is_wanted(message, offset_range, open_ends)]:
                yield wanted
            del message, messages, wanted
    finally:
        consumer.unassign()


def _is_wanted(message: Message, offset_range: OffsetRange, open_ends: dict[int, int]) -> bool:
    """Whether a message is one of the range's records. Partitions that are read to their end are no longer open."""
    partition, offset, error = message.partition(), message.offset(), message.error()
    if error is not None and error.code() not in (KafkaError._PARTITION_EOF, NO_GROUP):
        raise refusal(f"give records of {offset_range.topic}", error)
    if partition is None or offset is None or partition not in open_ends:
        return False
    end = open_ends[partition]
    is_eof = error is not None and error.code() == KafkaError._PARTITION_EOF
    # The end of the topic has the offset that the next record gets.
    if (error is None and offset + 1 >= end) or (is_eof and offset >= end):
        del open_ends[partition]
    return error is None and offset < end
