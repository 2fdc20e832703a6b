"""Offsets: the stream's targets, what Kafka still has, and the batch that a table reads next."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Offsets = dict[int, int]  # partition -> offset

_FULL = 0.8
"""The part of a batch's largest size from which no later end is looked for: each look is a request to Kafka."""


@dataclass(frozen=True)
class OffsetRange:
    """The offsets [start, end) of some partitions of one topic, as one bounded read takes them."""

    topic: str
    start: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def records(self) -> int:
        """How many offsets the batch spans; gaps of compaction and transactions count, too."""
        return sum(self.end[p] - self.start[p] for p in self.end)

    def __bool__(self) -> bool:
        return self.records > 0


def next_range(topic: str, taken: Mapping[int, int], goal: Mapping[int, int], at_most: int) -> OffsetRange:
    """What to take next on the way from `taken` (next offset per partition) to `goal`, `at_most` offsets of it.

    A partition without an entry in `taken` starts at 0. Where not all fits, each partition gets its proportion.
    """
    start = {p: taken.get(p, 0) for p in goal}
    open_ = {p: max(0, goal[p] - start[p]) for p in goal}
    total = sum(open_.values())
    if total > at_most:
        open_ = {p: min(n, max(1, n * at_most // total)) if n else 0 for p, n in open_.items()}
    wanted = {p: n for p, n in open_.items() if n}
    return OffsetRange(topic, {p: start[p] for p in wanted}, {p: start[p] + n for p, n in wanted.items()})


def next_range_by_time(
    topic: str,
    taken: Mapping[int, int],
    goal: Mapping[int, int],
    at_most: int,
    newest: Callable[[], int | None],
    at_time: Callable[[int], Mapping[int, int]],
) -> OffsetRange:
    """The same as next_range; but where several partitions have more than fits, the batch ends at one moment in all of
    them. So a key's older records are not read after its newer ones, also where the topic got more partitions and the
    key moved to another one.

    `newest`: the latest timestamp of the topic's records in milliseconds, None if they have none. `at_time`: of each
    partition the offset of its first record of that time or later. Within one millisecond, or where a partition's
    timestamps do not rise, partitions may still be read unevenly.
    """
    part = next_range(topic, taken, goal, at_most)
    everything = next_range(topic, taken, goal, sys.maxsize)
    if part == everything or len(everything.end) == 1:
        return part
    last = newest()
    if last is None:
        return part
    fits, beyond = OffsetRange(topic, {}, {}), everything
    low, high = 0, last + 1  # up to `low` it fits, up to `high` it does not
    while high - low > 1 and fits.records < _FULL * at_most:
        middle = (low + high) // 2
        ends = {p: min(max(offset, taken.get(p, 0)), goal[p]) for p, offset in at_time(middle).items() if p in goal}
        found = next_range(topic, taken, ends, sys.maxsize)
        if found.records <= at_most:
            low, fits = middle, found
        else:
            high, beyond = middle, found
    return fits or next_range(topic, taken, beyond.end, at_most)


def parse_offsets(text: str) -> dict[str, Offsets]:
    """Spark's JSON of offsets, {"topic": {"0": 12}}."""
    return {topic: {int(p): int(o) for p, o in ends.items()} for topic, ends in json.loads(text).items()}


def offsets_of_log_entry(text: str) -> dict[str, Offsets]:
    """The offsets a batch reaches, from its file in the checkpoint's `offsets` folder.

    The file holds a version line, a line of metadata, and one line per source; this service has one source.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return parse_offsets(lines[-1]) if len(lines) >= 3 and lines[-1].startswith("{") else {}


def largest(offsets: Iterable[Mapping[int, int]]) -> Offsets:
    """The largest offset of each partition."""
    out: Offsets = {}
    for each in offsets:
        for partition, offset in each.items():
            out[partition] = max(offset, out.get(partition, 0))
    return out
