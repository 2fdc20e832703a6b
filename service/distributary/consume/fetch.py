"""Reads the records of an offset range in this process, as Arrow."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from distributary.consume.kafka_errors import refusal
from distributary.consume.offsets import OffsetRange
from distributary.consume.sample import Record
from distributary.consume.tail import NO_GROUP, Headers, headers_of

RAW = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)
"""Kafka's records."""

_LAST_MILLISECOND = 253_402_300_799_999
"""Of the year 9999. A producer may name any time, and later ones fit neither into Python's nor into 64 bits."""
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
    """The records (RAW) of an offset range; not `is_complete`: its first ones that have no more bytes than may be
    fetched, each partition's from its start on."""

    records: pa.Table
    is_complete: bool = True


@dataclass(frozen=True)
class FetchPieces:
    """Reads offset ranges in pieces, in whatever process it was sent to; `options` are librdkafka's."""

    options: Mapping[str, str | int | float | bool] = field(repr=False)

    def __call__(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """The range's records (RAW), in pieces of about so many records and bytes at most.

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
        fetched: list[_Message] = []
        size = 0
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as messages:
            for sized in map(_with_size, messages):
                size += sized.size
                if size > most_bytes:
                    break
                fetched.append(sized)
        return Fetched(_table_of(offset_range.topic, fetched), size <= most_bytes)

    def fetch_pieces(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """All records of the range, in pieces of at most about so many records and bytes. Raises TransientError."""
        piece: list[_Message] = []
        size = 0
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as messages:
            for sized in map(_with_size, messages):
                if piece and (len(piece) >= most_records or size + sized.size > most_bytes):
                    table = _table_of(offset_range.topic, piece)
                    piece, size = [], 0  # the messages are not kept beside the table
                    yield table
                    del table
                piece.append(sized)
                size += sized.size
            if piece:
                yield _table_of(offset_range.topic, piece)

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


def _consume(consumer: Consumer, offset_range: OffsetRange) -> Generator[Message, None, None]:
    """The messages of a range, each partition's in the order of their offsets."""
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
            for one in messages:
                if _is_wanted(one, offset_range, open_ends):
                    yield one
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


class _Message(NamedTuple):
    """A message with its headers, which Kafka's client would build anew at each call; `size` in bytes."""

    message: Message
    headers: Headers
    size: int


def _with_size(message: Message) -> _Message:
    headers = headers_of(message)
    size = len(message) + len(message.key() or b"")
    if headers:
        size += sum(len(name) + len(value or b"") for name, value in headers)
    return _Message(message, headers, size)


def _table_of(topic: str, sized_messages: Sequence[_Message]) -> pa.Table:
    """Messages of Kafka's client as RAW."""
    messages = [sized.message for sized in sized_messages]
    return _table(
        topic,
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
        [sized.headers for sized in sized_messages],
    )


def raw_table(topic: str, records: Sequence[Record]) -> pa.Table:
    """Records of a topic as RAW."""
    return _table(
        topic,
        [record.key for record in records],
        [record.value for record in records],
        [record.partition for record in records],
        [record.offset for record in records],
        [record.timestamp or 0 for record in records],
        [record.headers for record in records],
    )


def _table(
    topic: str,
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    partitions: Sequence[int | None],
    offsets: Sequence[int | None],
    milliseconds: Sequence[int],
    headers: Iterable[Headers],
) -> pa.Table:
    lists = [[{"key": name, "value": value} for name, value in pairs] or None for pairs in headers]
    columns = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([topic] * len(keys), pa.string()),
        pa.array(partitions, pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array([1000 * min(time, _LAST_MILLISECOND) for time in milliseconds], RAW.field("timestamp").type),
        pa.array(lists, RAW.field("headers").type),
    ]
    return pa.Table.from_arrays(columns, schema=RAW)
