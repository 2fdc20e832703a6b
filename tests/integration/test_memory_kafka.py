"""The in-memory Kafka and the real one give the same answers in the same test cases."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.kafka import Record, create_topic, delete_topic, end_offsets, grow_topic, produce
from tests.support.memory_kafka import MemoryClient
from tests.support.waiting import wait_until

from distributary.consume import sample
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange
from distributary.consume.source import KafkaRecords, RecordSource
from distributary.errors import TransientError

AT = 1_700_000_000_123
"""Milliseconds since 1970."""


@dataclass(frozen=True)
class Side:
    """One of the two, and what a worker asks it with."""

    address: str
    kafka: KafkaClient
    records: RecordSource

    def topic(self, name: str) -> Topic:
        return self.kafka.topics([name])[name]


@dataclass(frozen=True)
class Sides:
    """The real one and the one in memory."""

    real: Side
    memory: Side

    def __iter__(self) -> Iterator[Side]:
        return iter((self.real, self.memory))

    def create(self, name: str, partitions: int = 1) -> None:
        for side in self:
            create_topic(side.address, name, partitions)

    def produce(self, records: Iterable[Record]) -> None:
        sent = list(records)
        for side in self:
            produce(side.address, sent)


@pytest.fixture
def sides(kafka: str, memory_kafka: str) -> Sides:
    memory = MemoryClient(memory_kafka)
    return Sides(
        Side(kafka, KafkaClient({"bootstrap.servers": kafka}), KafkaRecords({"bootstrap.servers": kafka})),
        Side(memory_kafka, memory, memory),
    )


@pytest.fixture
def name() -> str:
    return f"twin{uuid.uuid4().hex[:12]}.dbo.t"


def numbered(name: str, count: int, partition: int = 0) -> list[Record]:
    """Records whose values are their offsets, in a partition that is empty so far."""
    return [Record(name, partition, b"k", b"%d" % number, (), AT + number) for number in range(count)]


def odd(name: str) -> list[Record]:
    """Records of every form, in two partitions."""
    return [
        Record(name, 0, b"key", b"value", [("name", b"text"), ("name", b"again"), ("empty", b""), ("null", None)], AT),
        Record(name, 0, None, b"no key", (), AT - 5_000),
        Record(name, 1, b"key", None, [("\u00fc", b"\xff\x00")], 1),
        Record(name, 0, b"", b"", (), 5),
        Record(name, 1, None, None, (), 2**40),
    ]


def by_partition(records: list[sample.SampledRecord]) -> list[sample.SampledRecord]:
    """In the order of partitions, each in its own."""
    assert all(
        [r.offset for r in records if r.partition == p] == sorted(r.offset for r in records if r.partition == p)
        for p in {r.partition for r in records}
    )
    return sorted(records, key=lambda record: (record.partition, record.offset))


def test_topics_that_are_there_with_their_partitions(sides: Sides, name: str) -> None:
    missing = f"{name}.missing"
    sides.create(name, 3)
    for side in sides:
        found = side.kafka.topics([missing, name])
        assert {topic.name: topic.partitions for topic in found.values()} == {name: (0, 1, 2)}
        assert list(found) == [name]
        assert side.kafka.topics([]) == {}
        assert side.kafka.partitions()[name] == (0, 1, 2)
        assert missing not in side.kafka.partitions()
        assert (name in side.kafka.names(), missing in side.kafka.names()) == (True, False)
        assert list(side.kafka.settings([name])) == [name]


def test_a_topic_that_is_deleted_and_created_again_has_another_id(sides: Sides, name: str) -> None:
    for side in sides:
        create_topic(side.address, name, 2)
        produce(side.address, numbered(name, 3))
        first, again = side.topic(name), side.topic(name)
        assert first == again
        delete_topic(side.address, name)
        wait_until(lambda side=side: not side.kafka.topics([name]), what="the topic's end")  # type: ignore[misc]
        for ask in (side.kafka.latest, side.kafka.earliest):
            with pytest.raises(TransientError, match="kafka-refused"):
                ask(first)
        with pytest.raises(TransientError, match="kafka-refused"):
            side.kafka.records(first, {0: 0}, 5)
        create_topic(side.address, name)
        second = side.topic(name)
        assert first.topic_id != second.topic_id
        assert second.partitions == (0,)
        assert (side.kafka.latest(second), end_offsets(side.address, name)) == ({0: 0}, {0: 0})


def test_a_topic_that_grows_keeps_its_id_and_its_records(sides: Sides, name: str) -> None:
    sides.create(name)
    sides.produce(numbered(name, 2))
    for side in sides:
        before = side.topic(name)
        grow_topic(side.address, name, 3)
        wait_until(lambda side=side: len(side.topic(name).partitions) == 3, what="the partitions")  # type: ignore[misc]
        grown = side.topic(name)
        assert grown == Topic(name, before.topic_id, (0, 1, 2))
        assert side.kafka.latest(grown) == {0: 2, 1: 0, 2: 0}
        assert side.kafka.latest(before) == {0: 2}


def test_the_first_record_of_a_time_or_later(sides: Sides, name: str) -> None:
    sides.create(name, 3)
    sides.produce([*numbered(name, 4), *numbered(name, 2, partition=2)])
    for side in sides:
        topic = side.topic(name)
        assert side.kafka.at_time(topic, AT + 1) == {0: 1, 1: 0, 2: 1}
        assert side.kafka.at_time(topic, AT + 2) == {0: 2, 1: 0, 2: 2}
        assert side.kafka.at_time(topic, 0) == {0: 0, 1: 0, 2: 0}
        assert side.kafka.newest_time_ms(topic) == AT + 3


def test_first_and_last_offsets(sides: Sides, name: str) -> None:
    sides.create(name, 3)
    sides.produce([*numbered(name, 4), *numbered(name, 1, partition=2)])
    for side in sides:
        topic = side.topic(name)
        assert side.kafka.earliest(topic) == {0: 0, 1: 0, 2: 0}
        assert side.kafka.latest(topic) == end_offsets(side.address, name) == {0: 4, 1: 0, 2: 1}


def test_records_of_every_form(sides: Sides, name: str) -> None:
    sides.create(name, 2)
    sides.produce(odd(name))
    real, memory = (by_partition(side.kafka.records(side.topic(name), {0: 0, 1: 0}, 10)) for side in sides)
    assert memory == real
    assert len(real) == len(odd(name))


@pytest.mark.parametrize(
    ("start", "at_most", "count"),
    [
        ({0: 0, 1: 0, 2: 0}, 100, 42),
        ({0: 0, 1: 0, 2: 0}, 5, 7),
        ({0: 0}, 5, 5),
        ({0: 38, 1: 1}, 5, 3),
        ({0: 3}, 4, 4),
        ({0: 40}, 5, 0),
        ({2: 0}, 5, 0),
        ({0: 40, 1: 0}, 1, 1),
        ({}, 5, 0),
    ],
    ids=str,
)
def test_records_from_a_start_on(sides: Sides, name: str, start: dict[int, int], at_most: int, count: int) -> None:
    sides.create(name, 3)
    sides.produce([*numbered(name, 40), *numbered(name, 2, partition=1)])
    real, memory = (by_partition(side.kafka.records(side.topic(name), start, at_most)) for side in sides)
    assert memory == real
    assert len(real) == count


def test_the_head_goes_on_where_the_first_records_have_no_value(sides: Sides, name: str) -> None:
    sides.create(name, 2)
    sides.produce([*numbered(name, 30), *([Record(name, 1, b"k", None, (), AT)] * 30), *numbered(name, 1, 1)])
    for start, count in (({0: 0}, 20), ({0: 25}, 5), ({1: 0}, 31), ({0: 0, 1: 0}, 40), ({1: 31}, 0)):
        real, memory = (by_partition(side.kafka.head(side.topic(name), start)) for side in sides)
        assert memory == real
        assert len(real) == count


def test_samples_of_places(sides: Sides, name: str) -> None:
    sides.create(name, 2)
    sides.produce([*numbered(name, 50), Record(name, 1, b"k", None), Record(name, 1, b"k", b"x")])
    places = [(0, 0), (0, 40), (1, 0), (0, 49), (0, 17), (1, 1), (0, 50)]
    real, memory = (side.kafka.sample(name, places) for side in sides)
    assert [len(some) for some in memory] == [20, 10, 2, 1, 20, 1, 0]
    # A real one gives those that came at once, of which there is one at least.
    assert [bool(some) for some in real] == [bool(some) for some in memory]
    assert [some[: len(found)] for some, found in zip(memory, real, strict=True)] == real
    assert [side.kafka.sample(name, []) for side in sides] == [[], []]


def test_a_key_decides_the_partition_and_no_timestamp_or_0_is_now(sides: Sides, name: str) -> None:
    sides.create(name, 5)
    keys = [b"21", b"foobar", b"a-little-bit-long-string", b'{"id":1}', b"", b"21"]
    before = time.time()
    sides.produce(Record(name, key=key, value=b"%d" % index) for index, key in enumerate(keys))
    sides.produce([Record(name, value=b"without a key", timestamp=0)])
    every = dict.fromkeys(range(5), 0)
    real, memory = (side.kafka.records(side.topic(name), every, 10) for side in sides)
    placed = [{r.value: (r.partition, r.key) for r in found if r.key is not None} for found in (real, memory)]
    assert placed[1] == placed[0]
    assert len(placed[0]) == len(keys)
    for found in (real, memory):
        assert len(found) == len(keys) + 1  # the one without key lies in any
        assert all(before - 1 <= (r.timestamp or 0) / 1000 <= time.time() + 1 for r in found)


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.orderBy("partition", "offset").collect()]


def fetched(side: Side, offset_range: OffsetRange) -> pa.Table:
    """Each partition's records are in the order of their offsets."""
    table = side.records.fetch(offset_range, 2**20).records
    for partition in offset_range.end:
        offsets = table.filter(pc.equal(table["partition"], partition))["offset"].to_pylist()
        assert offsets == sorted(offsets)
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")])


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({0: 0, 1: 0, 2: 0}, {0: 40, 1: 5, 2: 0}),
        ({0: 3, 1: 1}, {0: 17, 1: 2}),
        ({0: 39}, {0: 40}),
        ({1: 0}, {1: 5}),
        ({0: 7, 1: 5}, {0: 7, 1: 5}),
    ],
    ids=str,
)
def test_the_records_of_an_offset_range(
    session: SparkSession, sides: Sides, name: str, start: dict[int, int], end: dict[int, int]
) -> None:
    sides.create(name, 3)
    sides.produce([*numbered(name, 40), *numbered(name, 5, partition=1)])
    part = OffsetRange(name, start, end)
    real, memory = (fetched(side, part) for side in sides)
    assert memory.equals(real)
    assert real.num_rows == sum(end.values()) - sum(start.values())
    for partition, begin in start.items():
        one = OffsetRange(name, {partition: begin}, {partition: end[partition]})
        if one.records:
            pieces = [pa.concat_tables(side.records.fetch_pieces(one, 7, 2**20)) for side in sides]
            assert pieces[0].equals(pieces[1])
    by_spark, in_memory = (rows(side.records.frame(session, part)) for side in sides)
    assert in_memory == by_spark
    assert len(by_spark) == real.num_rows


def test_a_range_of_more_bytes_is_not_fetched_and_the_next_one_is(sides: Sides, name: str) -> None:
    sides.create(name)
    sides.produce([*numbered(name, 5), Record(name, 0, b"k", b"x" * 1_000, (), AT)])
    for side in sides:
        found = side.records.fetch(OffsetRange(name, {0: 0}, {0: 6}), 1_000)
        assert not found.is_complete
        assert found.records["value"].to_pylist() == [b"0", b"1", b"2", b"3", b"4"]
        assert fetched(side, OffsetRange(name, {0: 0}, {0: 5}))["value"].to_pylist() == [b"0", b"1", b"2", b"3", b"4"]


def test_all_that_records_of_every_form_have(session: SparkSession, sides: Sides, name: str) -> None:
    sides.create(name, 2)
    sides.produce(odd(name))
    part = OffsetRange(name, {0: 0, 1: 0}, {0: 3, 1: 2})
    tables = [fetched(side, part) for side in sides]
    assert tables[0].equals(tables[1])
    assert tables[0]["headers"].null_count == 3
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
    real, memory = (side.records.frame(session, part).select(*names) for side in sides)
    assert rows(memory) == rows(real)
    assert memory.schema.simpleString() == real.schema.simpleString()
    for frame in (real, memory):
        assert frame.where("headers IS NULL").count() == 3


def _answers(side: Side, name: str) -> bool:
    """Whether a topic that was just made has a leader."""
    try:
        side.kafka.newest_time_ms(side.topic(name))
    except TransientError:
        return False
    return True


def test_the_newest_record_tells_its_time(sides: Sides, name: str) -> None:
    sides.create(name, 2)
    for side in sides:
        wait_until(partial(_answers, side, name), what="a leader of each partition")
    assert [side.kafka.newest_time_ms(side.topic(name)) for side in sides] == [None, None]
    sides.produce(
        [
            Record(name, 0, b"k", b"v", [], AT),
            Record(name, 1, b"k", b"v", [], AT + 5),
            Record(name, 1, b"k", b"v", [], AT + 2),
        ]
    )
    assert [side.kafka.newest_time_ms(side.topic(name)) for side in sides] == [AT + 5, AT + 5]
