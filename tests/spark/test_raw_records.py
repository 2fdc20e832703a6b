"""Decoding in the driver and in Spark's tasks gives the same records."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.decoding import options_of
from tests.support.learning import learn
from tests.support.recorded import Record, Scenario

from distributary.consume.fetch import raw_table
from distributary.consume.offsets import OffsetRange
from distributary.consume.sample import Record as Peeked
from distributary.consume.source import RecordSource
from distributary.decode.decoder import Decoder
from distributary.ingest import raw_records
from distributary.ingest.raw_records import LocalRecords, RawSource, TaskRecords, runs

RECORDED = (
    *(("pg_json_schema", "customers"), ("pg_types", "special"), ("pg_types_plain", "special")),
    *(("pg_toast", "toasty"), ("maria_json_schema", "all_types"), ("pg_unwrap_rewrite", "customers")),
)


def peeked(record: Record) -> Peeked:
    return Peeked(record.partition, record.offset, record.key, record.value, tuple(record.headers), record.timestamp)


@pytest.mark.parametrize(("scenario", "table"), RECORDED)
def test_a_batch_is_decoded_alike_here_and_in_sparks_tasks(session: SparkSession, scenario: str, table: str) -> None:
    recording = Scenario(scenario)
    truth = recording.tables[table]
    records = [peeked(record) for record in recording.topic(truth.schema, truth.name)]
    faulty = [Peeked(0, 10**6 + n, b"{}", value, (), 1) for n, value in enumerate((b"\xff", b"{", b'{"op":"c"}'))]
    raw = raw_table("t", [*records, *faulty])
    options = options_of(recording, truth, before=True)
    schema = learn(Decoder(options), raw)
    here = LocalRecords(session, raw).decode(Decoder(options), schema)
    frame = session.createDataFrame(raw).repartition(2, "offset")
    source = RawSource(cast(RecordSource, None), session, print)
    there = source.of_frame(frame).decode(Decoder(options), schema)
    for one, other in ((there.events, here.events), (there.rejected, here.rejected)):
        assert one.schema.equals(other.schema)
        everything = {"window": one.num_rows, "container_window": one.num_rows, "element_size_limit": 10**9}
        for name in one.column_names:  # as texts: NaN equals NaN there
            texts = (chunked.combine_chunks().to_string(**everything) for chunked in (one[name], other[name]))
            assert next(texts) == next(texts), name
    assert here.rejected.num_rows >= len(faulty)
    assert {name for one in there.observed for name in one.names} == {
        name for one in here.observed for name in one.names
    }
    assert there.conflict is None
    assert here.events.num_rows + here.rejected.num_rows >= len(records) + len(faulty)


def test_what_is_small_is_decoded_here_and_what_was_too_large_once_is_not_fetched_again(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []

    class Source:
        def fetch(self, offset_range: OffsetRange, most_bytes: int) -> pa.Table | None:
            fetched.append(offset_range.records)
            found = raw_table("t", [Peeked(0, n, b"{}", b"x" * 100, (), 1) for n in range(offset_range.records)])
            return found if 100 * offset_range.records <= most_bytes else None

    def where(records: int) -> type:
        return type(source.of_range(OffsetRange("t", {0: 0}, {0: records})))

    told: list[str] = []
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", 1_000)
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 50)
    source = RawSource(cast(RecordSource, Source()), session, told.append)
    assert [where(n) for n in (51, 20, 20, 11, 5)] == [*[TaskRecords] * 4, LocalRecords]
    assert fetched == [20, 11, 5]
    assert len(told) == 5


def places(*found: tuple[int, int]) -> pa.Table:
    partitions, offsets = zip(*found, strict=True)
    return pa.table({"partition": pa.array(partitions, pa.int32()), "offset": pa.array(offsets, pa.int64())})


def test_ranges_of_offsets_that_have_all_places() -> None:
    found = runs("t", places((1, 7), (0, 5), (0, 6), (0, 104), (0, 300), (1, 8)))
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
        def fetch(self, offset_range: OffsetRange, _most_bytes: int) -> pa.Table:
            [(partition, start)], [end] = offset_range.start.items(), offset_range.end.values()
            fetched.append(end - start)
            return raw_table("t", [Peeked(partition, n, b"{}", b"x", (), 2**63 - 1) for n in range(start, end)])

    source = RawSource(cast(RecordSource, Source()), session, print)
    records = source.of_range(OffsetRange("t", {0: 0}, {0: 10**6}))
    found = records.frame(places(*((0, offset) for offset in bad))).toArrow()
    assert found["offset"].to_pylist() == list(bad)
    assert sum(fetched) == len(bad)


def test_where_many_records_of_a_large_batch_are_rejected_all_are_read_again(session: SparkSession) -> None:
    class Source:
        def frame(self, _session: SparkSession, offset_range: OffsetRange) -> str:
            return f"all {offset_range.records}"

    source = RawSource(cast(RecordSource, Source()), session, print)
    records = source.of_range(OffsetRange("t", {0: 0}, {0: 10**6}))
    assert str(records.frame(places(*((0, 1_000 * n) for n in range(51))))) == "all 1000000"
