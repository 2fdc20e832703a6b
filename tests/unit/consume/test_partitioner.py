"""Where Kafka's default partitioner puts a key, and the growth of a topic that this shows."""

from __future__ import annotations

import random

import pytest

from distributary.consume.partitioner import has_grown, murmur2
from distributary.consume.sample import Record

KEYS = [b'{"id":%d}' % number for number in range(60)]


def sent(partitions: int, keys: list[bytes] = KEYS) -> list[Record]:
    """A record of each key, as the default partitioner spreads them over so many partitions."""
    return [Record(murmur2(key) % partitions, number, key, b"{}") for number, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("key", "hashed"),
    # As org.apache.kafka.common.utils.Utils.murmur2 counts them, in Kafka's own tests.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafka_s_java_client(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0x7FFFFFFF


@pytest.mark.parametrize("partitions", [1, 2, 3, 6])
def test_a_topic_that_never_grew_shows_no_growth(partitions: int) -> None:
    assert not has_grown(sent(partitions), partitions)


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 3), (1, 6), (3, 4)])
def test_2_5_records_of_fewer_partitions_show_that_the_topic_has_grown(before: int, now: int) -> None:
    assert has_grown(sent(before), now)
    assert has_grown([*sent(now), *sent(before)[:20]], now)


def test_another_partitioner_shows_nothing() -> None:
    spread = random.Random(1)
    records = [Record(spread.randrange(3), number, key, b"{}") for number, key in enumerate(KEYS)]
    assert not has_grown(records, 3)


def test_records_without_a_key_show_nothing() -> None:
    assert not has_grown([Record(0, 0, None, b"{}"), Record(1, 0, None, b"{}")], 2)
