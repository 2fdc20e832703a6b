"""A batch whose records turn out to be large is cut to what was fetched, and not fetched again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from distributary.consume.fetch import FetchedRecords
from distributary.consume.offsets import OffsetRange, next_range
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.consume.source import RecordSource
from distributary.ingest import raw_records
from distributary.ingest.raw_records import LocalRecords, RawSource, records_of
from distributary.ingest.task_records import TaskRecords

SESSION = cast(SparkSession, SimpleNamespace(sparkContext=SimpleNamespace(accumulator=lambda *_: None)))


class Source:
    """Records of 100 bytes, of each partition one after the other."""

    def __init__(self, gaps: frozenset[int] = frozenset()) -> None:
        self.fetched: list[int] = []
        self._gaps = gaps

    def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
        self.fetched.append(offset_range.records)
        start, end = offset_range.start, offset_range.end
        places = [(p, at) for at in range(max(end.values())) for p in end if start[p] <= at < end[p]]
        records = [SampledRecord(p, at, b"", b"x" * 100, (), 1) for p, at in places if at not in self._gaps]
        return FetchedRecords(raw_table("t", records[: most_bytes // 100]), 100 * len(records) <= most_bytes)


def cut(batch: OffsetRange, records: int) -> OffsetRange:
    return next_range("t", batch.start, batch.end, max(1, records))


def read(
    source: Source, ends: Mapping[int, int], monkeypatch: pytest.MonkeyPatch, most_bytes: int = 1_000
) -> LocalRecords | TaskRecords:
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", most_bytes)
    whole = OffsetRange("t", dict.fromkeys(ends, 0), ends)
    return RawSource(cast(RecordSource, source), SESSION, print).of_range(whole, 0, cut)


def places(raw: LocalRecords) -> set[tuple[int, int]]:
    return set(zip(raw.table["partition"].to_pylist(), raw.table["offset"].to_pylist(), strict=True))


@pytest.mark.parametrize("ends", [{0: 40}, {3: 20, 5: 20}, {0: 11}], ids=str)
def test_the_first_records_are_the_batch_and_fetched_once(
    monkeypatch: pytest.MonkeyPatch, ends: Mapping[int, int]
) -> None:
    source = Source()
    found = read(source, ends, monkeypatch)
    assert isinstance(found, LocalRecords)
    assert source.fetched == [sum(ends.values())]
    assert found.offset_range.records == found.table.num_rows == 10
    assert places(found) == {(p, index) for p, end in found.offset_range.end.items() for index in range(end)}


def test_offsets_without_a_record_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(Source(frozenset(range(2, 9))), {0: 40}, monkeypatch)
    assert isinstance(found, LocalRecords)
    assert dict(found.offset_range.end) == {0: 10}
    assert places(found) == {(0, 0), (0, 1), (0, 9)}


def test_where_partitions_were_fetched_unevenly_the_smaller_batch_is_fetched_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Uneven(Source):
        def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
            found = super().fetch(offset_range, 10**9).records.sort_by([("partition", "ascending")])
            return FetchedRecords(found.slice(0, most_bytes // 100), found.num_rows * 100 <= most_bytes)

    source = Uneven()
    found = read(source, {0: 20, 1: 20}, monkeypatch)
    assert isinstance(found, LocalRecords)
    assert source.fetched == [40, 10]
    assert places(found) == {(p, index) for p in (0, 1) for index in range(5)}


def test_a_record_that_is_too_large_by_itself_is_decoded_by_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source()
    found = read(source, {0: 4}, monkeypatch, most_bytes=99)
    assert isinstance(found, TaskRecords)
    assert source.fetched == [4]
    assert dict(found.offset_range.end) == {0: 1}


def test_a_batch_that_may_not_be_cut_is_decoded_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", 1_000)
    whole = OffsetRange("t", {0: 0}, {0: 40})
    found = RawSource(cast(RecordSource, Source()), SESSION, print).of_range(whole)
    assert isinstance(found, TaskRecords)
    assert found.offset_range == whole


def test_a_batch_that_nobody_sampled_is_fetched_whatever_earlier_ones_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records may be larger still: then it is cut."""
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", 1_000)
    source = Source()
    records = RawSource(cast(RecordSource, source), SESSION, print)
    assert isinstance(records.of_range(OffsetRange("t", {0: 0}, {0: 40})), TaskRecords)
    found = records.of_range(OffsetRange("t", {0: 0}, {0: 40}), 500, cut)
    assert isinstance(found, LocalRecords)
    assert (found.offset_range.records, source.fetched) == (10, [40, 40])


def test_records_of_a_part() -> None:
    fetched: pa.Table = Source().fetch(OffsetRange("t", {0: 0, 1: 5}, {0: 3, 1: 8}), 10**9).records
    part = records_of(OffsetRange("t", {0: 0}, {0: 3}), fetched)
    assert part is not None
    assert part["offset"].to_pylist() == [0, 1, 2]
    assert records_of(OffsetRange("t", {0: 0}, {0: 4}), fetched) is None
    assert records_of(OffsetRange("t", {2: 0}, {2: 1}), fetched) is None
