"""The records of a topic without those that an operator set aside: they are never decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from distributary.consume.fetch import FetchedRecords
from distributary.consume.offsets import OffsetRange
from distributary.consume.source import RecordSource

PartitionOffsets = frozenset[tuple[int, int]]
"""The partition and offset of records of one topic."""


@dataclass(frozen=True)
class FetchRemaining:
    """`fetch_pieces` without the records at these offsets, by topic. It works in any process."""

    fetch_pieces: Callable[[OffsetRange, int, int], Iterator[pa.Table]]
    excluded: Mapping[str, PartitionOffsets]

    def __call__(self, offset_range: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        """See fetch.FetchPieces."""
        for piece in self.fetch_pieces(offset_range, most_records, most_bytes):
            yield without(piece, self.excluded.get(offset_range.topic, frozenset()))


class RemainingRecords:
    """A RecordSource without the records at the offsets that `excluded` returns at present, by topic. `frame` includes
    these records, because that is how they get into the quarantine table."""

    def __init__(self, source: RecordSource, excluded: Callable[[], Mapping[str, PartitionOffsets]]) -> None:
        self._source = source
        self._excluded = excluded

    def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
        """See RecordSource."""
        fetched = self._source.fetch(offset_range, most_bytes)
        return replace(fetched, records=without(fetched.records, self._excluded().get(offset_range.topic, frozenset())))

    @property
    def fetch_pieces(self) -> Callable[[OffsetRange, int, int], Iterator[pa.Table]]:
        """See RecordSource."""
        excluded = self._excluded()
        return FetchRemaining(self._source.fetch_pieces, excluded) if excluded else self._source.fetch_pieces

    def frame(self, session: SparkSession, offset_range: OffsetRange) -> DataFrame:
        """See RecordSource."""
        return self._source.frame(session, offset_range)


def without(records: pa.Table, excluded: PartitionOffsets) -> pa.Table:
    """The records (record_tables.RAW) but for the excluded ones."""
    if not excluded:
        return records
    offsets = zip(records["partition"].to_pylist(), records["offset"].to_pylist(), strict=True)
    return records.filter(pa.array([offset not in excluded for offset in offsets], pa.bool_()))
