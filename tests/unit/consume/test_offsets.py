"""Offsets, and the offset range of a table's next batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.consume.offsets import OffsetRange, first_half, largest, next_range, offsets_of_log_entry

OFFSETS = st.dictionaries(st.integers(0, 5), st.integers(0, 1_000), max_size=5)


@given(taken=OFFSETS, goal=OFFSETS, at_most=st.integers(1, 500))
def test_batches_reach_the_goal_without_gaps_and_without_reading_twice(
    taken: dict[int, int], goal: dict[int, int], at_most: int
) -> None:
    at = dict(taken)
    for _ in range(5_000):
        part = next_range("t", at, goal, at_most)
        if not part:
            break
        assert part.records <= at_most + len(part.end)
        for partition, end in part.end.items():
            assert part.start[partition] == at.get(partition, 0) < end <= goal[partition]
            at[partition] = end
    for partition, end in goal.items():
        assert at.get(partition, 0) == max(end, taken.get(partition, 0))


@given(ends=st.dictionaries(st.integers(0, 5), st.integers(1, 1_000), min_size=1, max_size=5))
def test_halves_of_a_batch_get_smaller_down_to_one_offset(ends: dict[int, int]) -> None:
    part: OffsetRange | None = OffsetRange("t", dict.fromkeys(ends, 0), ends)
    while part is not None:
        before, part = part, first_half(part)
        if part is None:
            assert before.records == 1
        else:
            assert 0 < part.records < before.records
            assert all(part.start[p] == before.start[p] and end <= before.end[p] for p, end in part.end.items())


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
