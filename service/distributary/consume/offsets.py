"""Offsets: the stream's targets, what Kafka still has, and the batch that a table reads next."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Offsets = dict[int, int]  # partition -> offset

_FULL = 0.8
"""A batch of this fraction of its largest size is large enough: each later end to be tried is a request to Kafka."""


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

    def before(self, offsets: Mapping[int, int]) -> OffsetRange:
        """The beginning of the range, which ends before these offsets in their partitions."""
        ends = {p: end for p, end in {**self.end, **offsets}.items() if end > self.start[p]}
        return OffsetRange(self.topic, {p: self.start[p] for p in ends}, ends)

    def has(self, partition: int, offset: int) -> bool:
        """Whether the range has this offset."""
        return self.start.get(partition, 0) <= offset < self.end.get(partition, 0)

    def __bool__(self) -> bool:
        return self.records > 0


def next_range(topic: str, next_offsets: Mapping[int, int], target: Mapping[int, int], at_most: int) -> OffsetRange:
    """The next batch between `next_offsets` and `target`, both per partition: `at_most` offsets.

    A partition without an entry in `next_offsets` starts at 0. Where not all fits, each partition gets its proportion.
    """
    start = {p: next_offsets.get(p, 0) for p in target}
    open_ = {p: max(0, target[p] - start[p]) for p in target}
    total = sum(open_.values())
    if total > at_most:
        open_ = {p: min(n, max(1, n * at_most // total)) if n else 0 for p, n in open_.items()}
    wanted = {p: n for p, n in open_.items() if n}
    return OffsetRange(topic, {p: start[p] for p in wanted}, {p: start[p] + n for p, n in wanted.items()})


def next_range_by_time(
    topic: str,
    next_offsets: Mapping[int, int],
    target: Mapping[int, int],
    at_most: int,
    newest: Callable[[], int | None],
    at_time: Callable[[int], Mapping[int, int]],
) -> OffsetRange:
    """As next_range; but if several partitions have more records than fit, the batch ends at the same time in all of
    them. So a key's older records are not read after its newer ones, even if the topic got more partitions and the key
    moved to another one.

    `newest`: the latest timestamp of the topic's records in milliseconds, None if they have none. `at_time` returns for
    each partition the offset of its first record of that time or later. Within one millisecond, or if a partition's
    timestamps do not rise, partitions may still be read unevenly.
    """
    batch = next_range(topic, next_offsets, target, at_most)
    everything = next_range(topic, next_offsets, target, sys.maxsize)
    if batch == everything or len(everything.end) == 1:
        return batch
    last = newest()
    if last is None:
        return batch
    fits, beyond = OffsetRange(topic, {}, {}), everything
    low, high = 0, last + 1  # up to `low` it fits, up to `high` it does not
    while high - low > 1 and fits.records < _FULL * at_most:
        middle = (low + high) // 2
        ends = {
            p: min(max(offset, next_offsets.get(p, 0)), target[p])
            for p, offset in at_time(middle).items()
            if p in target
        }
        candidate = next_range(topic, next_offsets, ends, sys.maxsize)
        if candidate.records <= at_most:
            low, fits = middle, candidate
        else:
            high, beyond = middle, candidate
    return fits or next_range(topic, next_offsets, beyond.end, at_most)


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
    for partition_offsets in offsets:
        for partition, offset in partition_offsets.items():
            out[partition] = max(offset, out.get(partition, 0))
    return out
