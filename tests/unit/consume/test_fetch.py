"""Kafka's records as Arrow, whatever their fields hold."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from tests.support.decoding import plain_change, rejections
from tests.support.mock_kafka import running_mock_kafka

from distributary.consume.fetch import RecordFetcher
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord, records_from
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.types.record_schema import RecordSchema


@pytest.mark.parametrize("time", [2**63 - 1, 10**16, 253_402_300_800_000])
def test_a_record_of_a_time_beyond_all_clocks_is_of_the_last_one(time: int) -> None:
    [found] = raw_table("t", [SampledRecord(0, 0, b"k", b"v", (), time)])["timestamp"].to_pylist()
    assert found == datetime(9999, 12, 31, 23, 59, 59, 999_000, timezone.utc)


def test_a_record_of_a_time_before_all_clocks_is_of_the_first_one() -> None:
    [found] = raw_table("t", [SampledRecord(0, 0, b"k", b"v", (), -(10**17))])["timestamp"].to_pylist()
    assert found == datetime(1, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("part", ["key", "value", "headers"])
def test_every_part_of_a_record_counts_as_its_bytes(part: str) -> None:
    """A few thousand tombstones with large headers would else fill the memory."""
    large = b"x" * 10_000
    with running_mock_kafka() as kafka:
        for _ in range(20):
            key, value = (large if part == name else b"k" for name in ("key", "value"))
            kafka.produce("t", key, value, {b"a": large, b"b": b""} if part == "headers" else {})
        fetcher = RecordFetcher({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        every = OffsetRange("t", {0: 0}, {0: 20})
        whole, too_many = fetcher.fetch(every, 202_000), fetcher.fetch(every, 200_000)
        pieces = [piece.num_rows for piece in fetcher.fetch_pieces(every, 100, 50_100)]
        fetcher.close()
    assert whole.is_complete
    assert whole.records.num_rows == 20
    assert not too_many.is_complete
    assert too_many.records["offset"].to_pylist() == list(range(19))
    assert pieces == [5, 5, 5, 5]


def test_6_3_a_header_whose_name_is_no_text_is_one_records_fault() -> None:
    """Kafka's client for Python raises where it is asked for such headers."""
    with running_mock_kafka() as kafka:
        for number, headers in enumerate(({b"a": b"1"}, {b"ok": b"1", b"\xff\xfe": b"2"}, {b"__op": b"\xff"}, {})):
            change = plain_change(number, {"id": number})
            assert change.value is not None
            kafka.produce("t", b'{"id":%d}' % number, change.value, headers, timestamp=10**17)
        options = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
        fetcher = RecordFetcher(options)
        for _ in range(50):  # until Python has specialised its code for what is called
            raw = fetcher.fetch(OffsetRange("t", {0: 0}, {0: 4})).records
        fetcher.close()
        looked_at = records_from(options, "t", {0: 0}, 20, 4, 10)
    assert [len(record.headers) for record in looked_at] == [1, 1, 1, 0]
    for table in (raw, raw_table("t", looked_at)):
        found = Decoder(DecodeOptions("sqlserver")).decode(table, RecordSchema({"id": "int"}, {"id": "int"}))
        assert rejections(found) == {1: "not-utf8"}
        assert found.events["offset"].to_pylist() == [0, 2, 3]
