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
from distributary.consume.record_tables import Piece, Records
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
class Fetched:
    """The records (record_tables.RAW) of an offset range; not `is_complete`: only the first records, up to the bytes
    that may be fetched, of each partition from its start on."""

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

    def fetch(self, offset_range: OffsetRange, most_bytes: int = sys.maxsize) -> Fetched:
        """The range's first records, up to `most_bytes` of keys, values and headers. Skips offsets without a record
        (aborted transactions, compaction).

        Raises TransientError.
        """
        piece = Piece(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                records = Records.of(messages)
                fitting = records.fitting(most_bytes - piece.bytes)
                piece.add(records.part(0, fitting))
                if fitting < len(messages):
                    return Fetched(piece.table(), is_complete=False)
        return Fetched(piece.table())

    def fetch_pieces(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """All records of the range, in pieces of at most about so many records and bytes. Raises TransientError."""
        piece = Piece(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                records, start = Records.of(messages), 0
                del messages  # their values are not kept beside the table
                while start < len(records.values):
                    room = min(most_records - piece.count, records.fitting(most_bytes - piece.bytes, start))
                    if not room and not piece.count:
                        room = 1
                    piece.add(records.part(start, start + room))
                    start += room
                    if start < len(records.values):
                        yield piece.table()
                        piece = Piece(offset_range.topic)
            if piece.count:
                yield piece.table()

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
            if wanted := [one for one in messages if _is_wanted(one, offset_range, open_ends)]:
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
