"""A connector's restart: it sends the end of the stream again, the same bytes at new offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.support.recorded import Record


def resent(records: Iterable[Record], share: float) -> list[Record]:
    """The last `share` of each partition, as records that follow its last one. 0.0 gives nothing, 1.0 everything.

    A delete and its tombstone come from one change, so that a connector never sends the tombstone alone.
    """
    partitions: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        partitions.setdefault((record.topic, record.partition), []).append(record)
    return [
        replace(record, offset=whole[-1].offset + 1 + number, timestamp=record.timestamp + _later(whole))
        for whole in partitions.values()
        for number, record in enumerate(whole[_start(whole, share) :])
    ]


def halves(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """The first and the second half of each partition."""
    counts: dict[tuple[str, int], int] = {}
    records = list(records)
    for record in records:
        place = (record.topic, record.partition)
        counts[place] = counts.get(place, 0) + 1
    first: list[Record] = []
    second: list[Record] = []
    taken: dict[tuple[str, int], int] = {}
    for record in records:
        place = (record.topic, record.partition)
        taken[place] = taken.get(place, 0) + 1
        (first if taken[place] <= counts[place] // 2 else second).append(record)
    return first, second


def _start(partition: list[Record], share: float) -> int:
    start = len(partition) - round(len(partition) * share)
    while 0 < start < len(partition) and partition[start].value is None:
        start -= 1
    return start


def _later(partition: list[Record]) -> int:
    return partition[-1].timestamp - partition[0].timestamp + 1000
