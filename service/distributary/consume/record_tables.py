"""Kafka's records as Arrow tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from distributary.consume.sample import SampledRecord
from distributary.consume.tail import Headers, headers_of

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
"""The columns of Kafka's records."""

_FIRST_MILLISECOND = -62_135_596_800_000
"""Of the year 1."""
_LAST_MILLISECOND = 253_402_300_799_999
"""Of the year 9999. A producer may name any time, and later ones fit neither into Python's nor into 64 bits."""
_MOST_BYTES_OF_ARRAY = 2**31 - 1


@dataclass(frozen=True)
class MessageColumns:
    """Messages of Kafka's client by column. `ends`: of each, the bytes of keys, values and headers up to its end."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None]
    offsets: Sequence[int | None]
    milliseconds: Sequence[int]
    headers: Sequence[Headers]
    ends: Sequence[int]

    @staticmethod
    def of(messages: Sequence[Message]) -> MessageColumns:
        """The messages as columns."""
        keys = [message.key() for message in messages]
        headers = [headers_of(message) for message in messages]
        sizes = [len(message) + len(key or b"") for message, key in zip(messages, keys, strict=True)]
        for number, pairs in enumerate(headers):
            if pairs:
                sizes[number] += sum(len(name) + len(value or b"") for name, value in pairs)
        return MessageColumns(
            keys,
            [message.value() for message in messages],
            [message.partition() for message in messages],
            [message.offset() for message in messages],
            [message.timestamp()[1] for message in messages],
            headers,
            list(accumulate(sizes)),
        )

    def count_within(self, most_bytes: int, start: int = 0) -> int:
        """The number of messages from `start` on that have at most so many bytes together."""
        before = self.ends[start - 1] if start else 0
        return bisect_right(self.ends, before + most_bytes) - start if most_bytes >= 0 else 0

    def slice(self, start: int, end: int) -> MessageColumns:
        """The messages from `start` to before `end`."""
        before = self.ends[start - 1] if start else 0
        return MessageColumns(
            self.keys[start:end],
            self.values[start:end],
            self.partitions[start:end],
            self.offsets[start:end],
            self.milliseconds[start:end],
            self.headers[start:end],
            [total - before for total in self.ends[start:end]],
        )


class RecordTableBuilder:
    """Collects messages of a topic for one table of records: `count` of them so far, of `bytes` bytes."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._parts: list[MessageColumns] = []
        self.count = 0
        self.bytes = 0

    def add(self, messages: MessageColumns) -> None:
        """Adds messages after those that were added before."""
        self._parts.append(messages)
        self.count += len(messages.values)
        self.bytes += messages.ends[-1] if messages.ends else 0

    def build(self) -> pa.Table:
        """The records (RAW). Call it once, as the last method: the messages are released."""
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


def raw_table(topic: str, records: Sequence[SampledRecord]) -> pa.Table:
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
    times = np.fromiter(milliseconds, np.int64, len(milliseconds)).clip(_FIRST_MILLISECOND, _LAST_MILLISECOND) * 1000
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
