"""A Kafka in this process's memory, for tests that are not about topics or offsets.

Its addresses begin with `memory:`; the functions of tests/support/kafka.py take them like those of a real broker. It
answers the service as a real broker does: tests/integration/test_memory_kafka.py runs both through the same cases.
"""

from __future__ import annotations

import random
import sys
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import KafkaError
from pyspark.sql import DataFrame, SparkSession

from distributary.consume.fetch import FetchedRecords
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.kafka_errors import refusal
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord

if TYPE_CHECKING:
    from tests.support.kafka import Sendable

SCHEME = "memory:"

_SAMPLED = 20
"""Records from each offset on, as KafkaClient.sample."""


_Partition = list["SampledRecord | None"]
"""Records by their offsets, None where compaction has taken one away."""


@dataclass
class _Topic:
    topic_id: str
    partitions: list[_Partition] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)


_topics: dict[str, dict[str, _Topic]] = {}
"""By address and name."""

_numbers = count(1)


def new_address() -> str:
    """The address of an empty one."""
    address = f"{SCHEME}{next(_numbers)}"
    _topics[address] = {}
    return address


def drop_address(address: str) -> None:
    """Forgets all its topics."""
    del _topics[address]


def is_in_memory(address: str) -> bool:
    """Whether an address is one of these."""
    return address.startswith(SCHEME)


def create_topic(address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Makes a topic; no record is ever removed, whatever its settings are. Raises ValueError where there is one of that
    name."""
    if name in _topics[address]:
        raise ValueError(f"there is a topic {name}")
    _topics[address][name] = _Topic(uuid.uuid4().hex, [[] for _ in range(partitions)], settings or {})


def delete_topic(address: str, name: str) -> None:
    """Deletes a topic with its records. Raises KeyError."""
    del _topics[address][name]


def grow_topic(address: str, name: str, partitions: int) -> None:
    """Gives a topic more partitions."""
    topic = _topics[address][name]
    topic.partitions += [[] for _ in range(partitions - len(topic.partitions))]


def produce(address: str, records: Iterable[Sendable]) -> None:
    """Appends records. Those with a key and without a partition go where Kafka's own clients put them, those with
    neither to any."""
    for record in records:
        partitions = _topics[address][record.topic].partitions
        partition = record.partition
        if partition is None:
            number = random.getrandbits(31) if record.key is None else murmur2(record.key)
            partition = number % len(partitions)
        timestamp = record.timestamp or int(time.time() * 1000)  # 0 is now for librdkafka, too
        log = partitions[partition]
        log.append(SampledRecord(partition, len(log), record.key, record.value, tuple(record.headers), timestamp))


def leave_gap(address: str, name: str, partition: int = 0) -> None:
    """The next offset has no record, as if compaction had taken it away."""
    _topics[address][name].partitions[partition].append(None)


def end_offsets(address: str, name: str) -> dict[int, int]:
    """Per partition the offset that the next record will get."""
    return {number: len(log) for number, log in enumerate(_topics[address][name].partitions)}


class MemoryClient(KafkaClient):
    """The service's client of such a Kafka: it answers a table's worker from memory."""

    def __init__(self, address: str) -> None:
        self._address = address

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        found = {name: self._there[name] for name in names if name in self._there}
        return {name: Topic(name, topic.topic_id, tuple(range(len(topic.partitions)))) for name, topic in found.items()}

    def partitions(self, seconds: float = 0.0) -> dict[str, tuple[int, ...]]:
        del seconds
        return {name: tuple(range(len(topic.partitions))) for name, topic in self._there.items()}

    def earliest(self, topic: Topic) -> Offsets:
        return dict.fromkeys(self.latest(topic), 0)

    def latest(self, topic: Topic) -> Offsets:
        if topic.name not in self._there:
            unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            raise refusal(f"list the offsets of {topic.name}", unknown)
        ends = end_offsets(self._address, topic.name)
        return {partition: ends[partition] for partition in topic.partitions}

    def at_time(self, topic: Topic, milliseconds: int) -> Offsets:
        partitions = self._there[topic.name].partitions
        found = {
            p: (
                n
                for n, record in enumerate(partitions[p])
                if record is not None and (record.timestamp or 0) >= milliseconds
            )
            for p in topic.partitions
        }
        return {p: next(offsets, len(partitions[p])) for p, offsets in found.items()}

    def newest_time_ms(self, topic: Topic) -> int | None:
        partitions = self._there[topic.name].partitions
        times = [record.timestamp for log in partitions for record in log if record is not None]
        return max(filter(None, times), default=None)

    def records(
        self, topic: Topic, start: Mapping[int, int], at_most: int, timeout: float = 0.0
    ) -> list[SampledRecord]:
        del timeout
        latest = self.latest(topic)
        partitions = self._there[topic.name].partitions
        found = [r for p, offset in start.items() if p in latest for r in partitions[p][offset : offset + at_most]]
        return [record for record in found if record is not None]

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        log = self._there[topic].partitions[0]
        log.append(SampledRecord(0, len(log), key, value, (), int(time.time() * 1000)))

    def sample(self, topic: str, offsets: Iterable[tuple[int, int]]) -> list[list[bytes | None]]:
        partitions = self._there[topic].partitions
        found = [partitions[p][offset : offset + _SAMPLED] for p, offset in offsets]
        return [[record.value for record in some if record is not None] for some in found]

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: dict(self._there[name].settings) for name in names if name in self._there}

    @property
    def _there(self) -> dict[str, _Topic]:
        return _topics[self._address]

    def fetch(self, offset_range: OffsetRange, most_bytes: int = sys.maxsize) -> FetchedRecords:
        """As RecordFetcher.fetch."""
        records = _records(self._there[offset_range.topic].partitions, offset_range)
        parts = [(r.key, r.value, *(data for name, value in r.headers for data in (name, value))) for r in records]
        ends = list(accumulate(sum(len(data) for data in record if data) for record in parts))
        fits = bisect_right(ends, most_bytes)
        return FetchedRecords(raw_table(offset_range.topic, records[:fits]), fits == len(records))

    @property
    def fetch_pieces(self) -> Callable[[OffsetRange, int, int], Iterator[pa.Table]]:
        """As KafkaRecords.fetch_pieces: Spark's tasks are sent all records."""
        return _Pieces({name: topic.partitions for name, topic in self._there.items()})

    def frame(self, session: SparkSession, offset_range: OffsetRange) -> DataFrame:
        """As KafkaRecords.frame."""
        return session.createDataFrame(
            raw_table(offset_range.topic, _records(self._there[offset_range.topic].partitions, offset_range))
        )


def _records(partitions: Sequence[_Partition], offset_range: OffsetRange) -> list[SampledRecord]:
    found = [record for p, end in offset_range.end.items() for record in partitions[p][offset_range.start[p] : end]]
    return [record for record in found if record is not None]


@dataclass(frozen=True)
class _Pieces:
    """As FetchPieces."""

    topics: Mapping[str, list[_Partition]]

    def __call__(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        del most_bytes
        found = _records(self.topics[offset_range.topic], offset_range)
        for begin in range(0, len(found), most_records):
            yield raw_table(offset_range.topic, found[begin : begin + most_records])


def murmur2(data: bytes) -> int:
    """The positive 32-bit hash by which Kafka's clients choose the partition of a key."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for index in range(0, whole, 4):
        word = int.from_bytes(data[index : index + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        value = value * factor & mask ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return (value ^ value >> 15) & 0x7FFFFFFF
