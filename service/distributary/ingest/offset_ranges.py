"""The partitions and offsets of records, and the offset ranges that have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from distributary.consume.offsets import OffsetRange

_SMALL_GAP = 100
"""Offsets between two records that are fetched with them."""


def ranges_with(topic: str, offsets: pa.Table) -> list[OffsetRange]:
    """The ranges of offsets that have all these offsets (partition, offset), with small gaps between them."""
    offset_ranges: list[OffsetRange] = []
    for partition, offset in sorted(offsets_of(offsets)):
        last = offset_ranges[-1].end.get(partition) if offset_ranges else None
        if last is not None and offset - last < _SMALL_GAP:
            offset_ranges[-1] = replace(offset_ranges[-1], end={partition: offset + 1})
        else:
            offset_ranges.append(OffsetRange(topic, {partition: offset}, {partition: offset + 1}))
    return offset_ranges


def offsets_of(table: pa.Table) -> Iterator[tuple[int, int]]:
    """The partition and offset of each row."""
    return zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
