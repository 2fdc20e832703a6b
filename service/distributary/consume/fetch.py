"""Reads the records of an offset range in this process, as Arrow."""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
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
_MOST_BYTES_OF_ARRAY = 2**31 - 1
_PATIENCE = 60.0
"""Seconds without a record after which Kafka counts as unreachable."""
_IDLE_CONSUMERS = 4
_OPTIONS: Mapping[str, Any] = {
    "group.id": "distributary-fetch",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    # Records that are gone must be noticed, not passed over.
    "auto.offset.reset": "error",
    # How much is read ahead behind the end of a range, for nothing. Where that is there, the client waits for a whole
    # second by default before it asks for more.
    "queued.max.messages.kbytes": 32 * 1024,
    "fetch.queue.backoff.ms": 1,
    # At the end of a topic the client asks for more than there is, and its next range waits until the broker answers.
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
        # The client's own lines on standard error would mix with the log: what matters comes back as an error anyway.
        self._options = {**options, **_OPTIONS, "log_level": 0}
        self._idle: list[Consumer] = []

    def fetch(self, offset_range: OffsetRange, most_bytes: int = sys.maxsize) -> Fetched:
        """The range's records, as far as their keys, values and headers have no more bytes. Offsets without a record
        (aborted transactions, compaction) are passed over.

        Raises TransientError.
        """
        piece = _Piece(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                records = _Records.of(messages)
                fitting = records.fitting(most_bytes - piece.bytes)
                piece.add(records.part(0, fitting))
                if fitting < len(messages):
                    return Fetched(piece.table(), is_complete=False)
        return Fetched(piece.table())

    def fetch_pieces(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """The same in pieces of about so many records and bytes at most. Raises TransientError."""
        piece = _Piece(offset_range.topic)
        with self._consumer() as consumer, closing(_consume(consumer, offset_range)) as arrivals:
            for messages in arrivals:
                records, start = _Records.of(messages), 0
                del messages  # their values are not kept beside the table
                while start < len(records.values):
                    room = min(most_records - piece.count, records.fitting(most_bytes - piece.bytes, start))
                    if not room and not piece.count:
                        room = 1
                    piece.add(records.part(start, start + room))
                    start += room
                    if start < len(records.values):
                        yield piece.table()
                        piece = _Piece(offset_range.topic)
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
            consumer.close()  # whatever it has met, the next one begins anew
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
            # The first message is waited for, and what came with it is there already.
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


@dataclass(frozen=True)
class _Records:
    """Records by column. `ends`: the bytes of all records up to each, with its own: keys, values and headers."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None]
    offsets: Sequence[int | None]
    milliseconds: Sequence[int]
    headers: Sequence[Headers]
    ends: Sequence[int]

    @staticmethod
    def of(messages: Sequence[Message]) -> _Records:
        keys = [message.key() for message in messages]
        headers = [headers_of(message) for message in messages]
        sizes = [len(message) + len(key or b"") for message, key in zip(messages, keys, strict=True)]
        for number, pairs in enumerate(headers):
            if pairs:
                sizes[number] += sum(len(name) + len(value or b"") for name, value in pairs)
        return _Records(
            keys,
            [message.value() for message in messages],
            [message.partition() for message in messages],
            [message.offset() for message in messages],
            [message.timestamp()[1] for message in messages],
            headers,
            list(accumulate(sizes)),
        )

    def fitting(self, most_bytes: int, start: int = 0) -> int:
        """How many records from `start` on have no more bytes."""
        before = self.ends[start - 1] if start else 0
        return bisect_right(self.ends, before + most_bytes) - start if most_bytes >= 0 else 0

    def part(self, start: int, end: int) -> _Records:
        """The records from `start` to before `end`."""
        before = self.ends[start - 1] if start else 0
        return _Records(
            self.keys[start:end],
            self.values[start:end],
            self.partitions[start:end],
            self.offsets[start:end],
            self.milliseconds[start:end],
            self.headers[start:end],
            [total - before for total in self.ends[start:end]],
        )


class _Piece:
    """Records of a topic that become one table."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._parts: list[_Records] = []
        self.count = 0
        self.bytes = 0

    def add(self, records: _Records) -> None:
        self._parts.append(records)
        self.count += len(records.values)
        self.bytes += records.ends[-1] if records.ends else 0

    def table(self) -> pa.Table:
        """The records (RAW). Ends the piece."""
        parts, self._parts = self._parts, []
        return _table(
            self._topic,
            [key for part in parts for key in part.keys],
            [value for part in parts for value in part.values],
            [partition for part in parts for partition in part.partitions],
            [offset for part in parts for offset in part.offsets],
            [time for part in parts for time in part.milliseconds],
            [pairs for part in parts for pairs in part.headers],
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
    headers: Sequence[Headers],
) -> pa.Table:
    times = np.minimum(np.fromiter(milliseconds, np.int64, len(milliseconds)), _LAST_MILLISECOND) * 1000
    columns = [
        _binary(keys),
        _binary(values),
        pa.repeat(pa.scalar(topic, pa.string()), len(keys)),
        pa.array(partitions, pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array(times).cast(RAW.field("timestamp").type),
        _header_lists(headers),
    ]
    return pa.Table.from_arrays(columns, schema=RAW)


def _binary(values: Sequence[bytes | None]) -> pa.Array:
    """Values that are copied once: Arrow's own builder copies all of them again whenever it grows."""
    content = b"".join(filter(None, values))
    if len(content) >= _MOST_BYTES_OF_ARRAY:
        return pa.array(values, pa.binary())  # in chunks
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([0 if value is None else len(value) for value in values], out=ends[1:])
    are_there = None
    if None in values:
        are_there = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(values), [are_there, pa.py_buffer(ends), pa.py_buffer(content)])


def _header_lists(headers: Sequence[Headers]) -> pa.Array:
    kind = RAW.field("headers").type
    if not any(headers):
        return pa.nulls(len(headers), kind)
    return pa.array([[{"key": name, "value": value} for name, value in pairs] or None for pairs in headers], kind)
