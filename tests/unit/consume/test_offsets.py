"""Offsets, and the offset range of a table's next batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.consume.offsets import (
    OffsetRange,
    largest,
    next_range,
    next_range_by_time,
    offsets_of_log_entry,
)

OFFSETS = st.dictionaries(st.integers(0, 5), st.integers(0, 1_000), max_size=5)


@pytest.mark.thorough
@given(next_offsets=OFFSETS, target=OFFSETS, at_most=st.integers(1, 500))
def test_batches_reach_the_goal_without_gaps_and_without_reading_twice(
    next_offsets: dict[int, int], target: dict[int, int], at_most: int
) -> None:
    at = dict(next_offsets)
    for _ in range(5_000):
        batch = next_range("t", at, target, at_most)
        if not batch:
            break
        assert batch.records <= at_most + len(batch.end)
        for partition, end in batch.end.items():
            assert batch.start[partition] == at.get(partition, 0) < end <= target[partition]
            at[partition] = end
    for partition, end in target.items():
        assert at.get(partition, 0) == max(end, next_offsets.get(partition, 0))


TIMES = st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 60), max_size=40), min_size=1)


class Timed:
    """A topic with a record of each of these times in a partition."""

    def __init__(self, times: Mapping[int, Sequence[int]]) -> None:
        self.times = times
        self.ends = {p: len(of_partition) for p, of_partition in times.items()}

    def newest(self) -> int | None:
        return max((time for of_partition in self.times.values() for time in of_partition), default=None)

    def at_time(self, time: int) -> dict[int, int]:
        return {
            p: next((n for n, other in enumerate(of_partition) if other >= time), len(of_partition))
            for p, of_partition in self.times.items()
        }

    def batches(self, at_most: int) -> Iterator[tuple[OffsetRange, dict[int, int]]]:
        """Each batch, and what is taken after it."""
        next_offsets: dict[int, int] = {}
        while batch := next_range_by_time("t", next_offsets, self.ends, at_most, self.newest, self.at_time):
            next_offsets |= batch.end
            yield batch, dict(next_offsets)
        assert all(next_offsets.get(p, 0) == end for p, end in self.ends.items())


@given(times=TIMES, at_most=st.integers(1, 50))
def test_batches_in_the_order_of_time_reach_the_goal(times: dict[int, list[int]], at_most: int) -> None:
    """Whatever the timestamps are."""
    for batch, _ in Timed(times).batches(at_most):
        assert 0 < batch.records <= at_most + len(batch.end)


@given(times=TIMES, at_most=st.integers(1, 50))
def test_2_5_no_older_record_is_left_behind_in_another_partition(times: dict[int, list[int]], at_most: int) -> None:
    topic = Timed({p: sorted(of_partition) for p, of_partition in times.items()})
    for _, next_offsets in topic.batches(at_most):
        latest = max(topic.times[p][end - 1] for p, end in next_offsets.items() if end)
        assert all(time >= latest for p, all_ in topic.times.items() for time in all_[next_offsets.get(p, 0) :])


def test_batches_in_the_order_of_time_are_almost_as_large_as_they_may_be() -> None:
    topic = Timed({0: range(0, 10_000, 2), 1: range(5_000, 6_000), 2: []})
    sizes = [batch.records for batch, _ in topic.batches(500)]
    assert min(sizes[:-1]) >= 400


def test_records_without_a_timestamp_are_read_in_proportion() -> None:
    batch = next_range_by_time("t", {}, {0: 30, 1: 10}, 20, lambda: None, lambda _: {})
    assert batch == OffsetRange("t", {0: 0, 1: 0}, {0: 15, 1: 5})


def test_kafka_is_asked_for_no_time_where_all_fits_or_one_partition_is_left() -> None:
    def fails(*_: int) -> None:
        raise AssertionError

    for target in ({0: 3, 1: 4}, {0: 30}):
        assert next_range_by_time("t", {}, target, 7, fails, fails)  # type: ignore[arg-type]


def test_a_batch_counts_its_offsets() -> None:
    assert OffsetRange("t", {0: 1, 2: 5}, {0: 3, 2: 6}).records == 3


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}\n-"])
def test_an_entry_of_the_offset_log_that_is_cut_off_plans_nothing(text: str) -> None:
    assert offsets_of_log_entry(text) == {}


def test_an_entry_of_the_offset_log() -> None:
    entry = 'v1\n{"batchWatermarkMs":0}\n{"p.s.t":{"0":12,"1":3}}'
    assert offsets_of_log_entry(entry) == {"p.s.t": {0: 12, 1: 3}}


def test_largest_takes_each_partitions_own_maximum() -> None:
    assert largest([{0: 5, 1: 1}, {0: 2, 2: 7}]) == {0: 5, 1: 1, 2: 7}
