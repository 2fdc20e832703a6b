"""Decoding in the driver and in Spark's tasks gives the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.runners import RUNNER_CASES, assert_decoded_alike

from distributary.consume.fetch import FetchedRecords
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.consume.source import RecordSource
from distributary.decode.decoder import Decoder
from distributary.ingest import raw_records, task_records
from distributary.ingest.offset_ranges import ranges_with
from distributary.ingest.raw_records import LocalRecords, RawSource
from distributary.ingest.task_records import TaskRecords
from distributary.ingest.task_results import TaskResults, read_results


@pytest.mark.parametrize("name", RUNNER_CASES)
def test_a_batch_is_decoded_alike_here_and_in_sparks_tasks(session: SparkSession, name: str) -> None:
    case = RUNNER_CASES[name]()
    here = LocalRecords(case.range, case.raw).decode(Decoder(case.options), case.schema)
    assert here.events.num_rows
    assert here.rejected.num_rows

    class Source:
        fetch_pieces = case.fetch_pieces

    source = RawSource(cast(RecordSource, Source()), session, print)
    fetched = TaskRecords(session, cast(RecordSource, Source()), case.range, source._findings)
    assert_decoded_alike(fetched.decode(Decoder(case.options), case.schema), here)
    frame = session.createDataFrame(case.raw).repartition(2, "offset")
    assert_decoded_alike(source.of_frame(frame).decode(Decoder(case.options), case.schema), here)


def test_rows_do_not_pass_through_java(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(iter(RUNNER_CASES.values()))()
    returned: list[pa.Table] = []

    def read(table: pa.Table) -> TaskResults:
        returned.append(table)
        return read_results(table)

    class Source:
        fetch_pieces = case.fetch_pieces

    monkeypatch.setattr(task_records, "read_results", read)
    source = RawSource(cast(RecordSource, Source()), session, print)
    fetched = TaskRecords(session, cast(RecordSource, Source()), case.range, source._findings)
    assert fetched.decode(Decoder(case.options), case.schema).events.num_rows
    [table] = returned
    assert table["content"].null_count == table.num_rows
    folders = {Path(path).parent for path in table["path"].to_pylist()}
    assert [folder.exists() for folder in folders] == [False]


def test_what_is_small_is_decoded_here_and_what_was_too_large_once_is_not_fetched_again(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []

    class Source:
        def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
            fetched.append(offset_range.records)
            found = raw_table("t", [SampledRecord(0, n, b"{}", b"x" * 100, (), 1) for n in range(offset_range.records)])
            return FetchedRecords(found, 100 * offset_range.records <= most_bytes)

    def where(records: int) -> type:
        return type(source.of_range(OffsetRange("t", {0: 0}, {0: records})))

    result: list[str] = []
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", 1_000)
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 50)
    source = RawSource(cast(RecordSource, Source()), session, result.append)
    assert [where(n) for n in (51, 20, 20, 11, 5)] == [*[TaskRecords] * 4, LocalRecords]
    assert fetched == [20, 11, 5]
    assert result.pop().endswith(": decoded in the driver")
    assert result == [
        "51 offsets are more than 50: Spark's tasks decode them",
        "more than 1000 bytes: Spark's tasks decode them",
        "20 records of 51 bytes: Spark's tasks decode them",
        "more than 1000 bytes: Spark's tasks decode them",
    ]


def places(*found: tuple[int, int]) -> pa.Table:
    partitions, offsets = zip(*found, strict=True)
    return pa.table({"partition": pa.array(partitions, pa.int32()), "offset": pa.array(offsets, pa.int64())})


def test_ranges_of_offsets_that_have_all_places() -> None:
    found = ranges_with("t", places((1, 7), (0, 5), (0, 6), (0, 104), (0, 300), (1, 8)))
    assert [(dict(part.start), dict(part.end)) for part in found] == [
        ({0: 5}, {0: 105}),
        ({0: 300}, {0: 301}),
        ({1: 7}, {1: 9}),
    ]


@pytest.mark.parametrize("bad", [(3,), (3, 4, 900)])
def test_of_a_large_batch_only_the_rejected_records_are_read_again(session: SparkSession, bad: tuple[int, ...]) -> None:
    """So a time that Spark can't count is no fault of their batch either."""
    fetched = []

    class Source:
        def fetch(self, offset_range: OffsetRange, _most_bytes: int) -> FetchedRecords:
            [(partition, start)], [end] = offset_range.start.items(), offset_range.end.values()
            fetched.append(end - start)
            records = [SampledRecord(partition, n, b"{}", b"x", (), 2**63 - 1) for n in range(start, end)]
            return FetchedRecords(raw_table("t", records))

    source = RawSource(cast(RecordSource, Source()), session, print)
    records = source.of_range(OffsetRange("t", {0: 0}, {0: 10**6}))
    found = pa.concat_tables(records.records_at(places(*((0, offset) for offset in bad))))
    assert found["offset"].to_pylist() == list(bad)
    assert sum(fetched) == len(bad)


def test_where_many_records_of_a_large_batch_are_rejected_all_are_read_again_in_pieces(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_records, "_TASK_BYTES", 1_000)

    class Source:
        def fetch_pieces(self, offset_range: OffsetRange, _records: int, _bytes: int) -> Iterator[pa.Table]:
            for start in range(0, offset_range.records, 10_000):
                numbers = range(start, start + 10_000, 500)
                yield raw_table("t", [SampledRecord(0, n, b"{}", b"x", (), 1) for n in numbers])

    source = RawSource(cast(RecordSource, Source()), session, print)
    records = source.of_range(OffsetRange("t", {0: 0}, {0: 10**6}))
    pieces = [*records.records_at(places(*((0, 1_000 * n) for n in range(51))))]
    assert pa.concat_tables(pieces)["offset"].to_pylist() == [1_000 * n for n in range(51)]
    assert 1 < len(pieces) < 6
