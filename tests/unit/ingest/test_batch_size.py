"""The size of batches is limited by bytes, wherever large records are."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.ingest.batch_size import BatchSizer, payload_size, places
from distributary.progress.batch_stats import BatchStats

_MB = 2**20
MOST = 4 * _MB


class Sized:
    """A topic with records of the sizes that `size` returns for a partition and an offset."""

    def __init__(self, sizes: Mapping[int, list[int]]) -> None:
        self.sizes = sizes
        self.looks = 0

    def sample(self, topic: str, places: Iterable[tuple[int, int]]) -> list[list[bytes | None]]:
        assert topic == "t"
        self.looks += 1
        return [[b"x" * size for size in self.sizes[p][offset : offset + 20]] for p, offset in places]

    def newest_time_ms(self, topic: Topic) -> None:
        """Its records have no timestamps."""

    @property
    def ends(self) -> Offsets:
        return {p: len(sizes) for p, sizes in self.sizes.items()}


def batches(topic: Sized, records: int = 1_000_000) -> list[OffsetRange]:
    """All batches, from the topic's start to its end."""
    portion, found, taken = (
        BatchSizer(cast(KafkaClient, topic), "t", records, MOST),
        list[OffsetRange](),
        dict.fromkeys(topic.ends, 0),
    )
    while part := portion.next(taken, topic.ends):
        found.append(part)
        assert all(part.start[p] == taken[p] for p in part.start)
        taken |= part.end
        portion.learn(cast(BatchStats, Found(part.records, size_of(topic, part))))
    assert taken == topic.ends
    return found


class Found:
    def __init__(self, records: int, payload: int) -> None:
        self.records, self.payload = records, payload


def size_of(topic: Sized, offset_range: OffsetRange) -> int:
    return sum(sum(topic.sizes[p][offset_range.start[p] : offset_range.end[p]]) for p in offset_range.end)


@pytest.mark.parametrize(
    ("sizes", "at_least"),
    [
        pytest.param({0: [100] * 30_000}, 1, id="small"),
        pytest.param({0: [10_000] * 4_000}, 10, id="large"),
        pytest.param({0: [100] * 20_000 + [50_000] * 1_000}, 13, id="small, then large"),
        pytest.param({0: [50_000] * 1_000 + [100] * 20_000}, 13, id="large, then small"),
        pytest.param({0: [10] * 5_000, 1: [20_000] * 500, 2: []}, 3, id="of a few partitions one is large"),
        pytest.param({0: [2 * _MB] * 30}, 15, id="more than a megabyte"),
    ],
)
def test_no_batch_has_many_more_bytes_than_it_may(sizes: Mapping[int, list[int]], at_least: int) -> None:
    topic = Sized(sizes)
    found = batches(topic)
    assert max(size_of(topic, part) for part in found) <= 2 * MOST
    assert at_least <= len(found) <= 2 * at_least
    assert topic.looks <= 3 * len(found)


def test_large_ones_that_no_sample_shows_count_from_the_next_batch_on() -> None:
    topic = Sized({0: ([10] * 700 + [100_000] + [10] * 299) * 200})
    sizes = [size_of(topic, part) for part in batches(topic, 100_000)]
    assert sizes[0] > 2 * MOST
    assert max(sizes[1:]) <= 2 * MOST


def test_small_records_before_a_large_one_are_taken_in_few_batches() -> None:
    found = [part.records for part in batches(Sized({0: [100] * 170 + [5 * MOST] * 3}))]
    assert sum(found) == 173
    assert len(found) <= 25, found


def test_a_record_larger_than_a_batch_is_taken_alone() -> None:
    assert [part.records for part in batches(Sized({0: [2 * MOST] * 6}))] == [1] * 6


def test_few_records_are_taken_without_a_look() -> None:
    topic = Sized({0: [1000] * 4})
    assert [part.records for part in batches(topic)] == [4]
    assert not topic.looks


def test_few_records_that_turn_out_large_are_cut_without_a_look() -> None:
    topic = Sized({0: [3 * _MB] * 4, 1: [3 * _MB] * 3})
    sizer = BatchSizer(cast(KafkaClient, topic), "t", 1_000, 8 * _MB)
    part = sizer.next({0: 0}, topic.ends)
    assert part.records == 7
    cut = sizer.cut_of(part)
    assert cut is not None
    assert dict(cut(part, 4).end) == {0: 2, 1: 1}
    assert dict(cut(part, 0).end) == {0: 1, 1: 1}
    assert not topic.looks


@pytest.mark.thorough
def test_few_records_are_checked_where_earlier_ones_were_too_large_for_the_driver() -> None:
    """Spark's tasks decode such a batch, and do not cut it."""
    topic = Sized({0: [10] * 10 + [20 * _MB] * 30})
    sizer = BatchSizer(cast(KafkaClient, topic), "t", 1_000, 160 * _MB)
    sizer.learn(cast(BatchStats, Found(3, 60 * _MB)))
    for _ in range(10):
        sizer.learn(cast(BatchStats, Found(10, 100)))
    part = sizer.next({0: 10}, topic.ends)
    assert part.records <= 10
    assert topic.looks
    assert sizer.cut_of(part) is None


def test_what_was_looked_at_is_not_cut() -> None:
    topic = Sized({0: [100] * 30_000})
    sizer = BatchSizer(cast(KafkaClient, topic), "t", 1_000_000, MOST)
    part = sizer.next({0: 0}, topic.ends)
    assert sizer.cut_of(part) is None
    assert topic.looks == 1


def test_places_are_spread_from_the_start_to_the_end_of_all_partitions() -> None:
    part = OffsetRange("t", {0: 100, 1: 0, 2: 50}, {0: 140, 1: 400, 2: 50})
    found = places(part, 11)
    assert Counter(partition for partition, _ in found) == {0: 2, 1: 9}
    assert found[0] == (0, 100)
    assert found[-1] == (1, 399)
    assert [offset for p, offset in found if p == 1] == sorted(offset for p, offset in found if p == 1)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, 0),
        (b"", 0),
        (b'{"op":"c","payload":1}', 22),
        (b'{"schema":{"type":"struct"},"payload":{"op":"c"}}', 10),
        (b'{"schema":{"type":"struct"}}', 28),
    ],
)
def test_a_schema_beside_the_payload_does_not_count(value: bytes | None, size: int) -> None:
    assert payload_size(value) == size


def test_what_is_compressed_counts_inflated() -> None:
    """AWS Glue's serializer compresses records; a few hundred bytes may become a megabyte."""
    header = b"\x03\x05" + bytes(16)
    assert payload_size(header + zlib.compress(b" " * 100_000)) == 100_000
    assert payload_size(header + zlib.compress(b" " * 100 * _MB)) == _MB
    assert payload_size(header + zlib.compress(b" " * 100_000)[:50]) < 100_000
    assert payload_size(header + b"no zlib") == len(b"no zlib") + 18


@given(ends=st.dictionaries(st.integers(0, 5), st.integers(1, 1_000), min_size=1, max_size=5))
def test_halves_of_a_batch_get_smaller_down_to_one_offset(ends: dict[int, int]) -> None:
    sizer = BatchSizer(cast(KafkaClient, Sized({})), "t", 1_000_000, MOST)
    part: OffsetRange | None = OffsetRange("t", dict.fromkeys(ends, 0), ends)
    while part is not None:
        before, part = part, sizer.half(part)
        if part is None:
            assert before.records == 1
        else:
            assert 0 < part.records < before.records
            assert all(part.start[p] == before.start[p] and end <= before.end[p] for p, end in part.end.items())
