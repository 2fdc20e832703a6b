"""Kafka's records as Arrow, whatever their producer says."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from distributary.consume.fetch import raw_table
from distributary.consume.peek import Record


@pytest.mark.parametrize("time", [2**63 - 1, 10**16, 253_402_300_800_000])
def test_a_record_of_a_time_beyond_all_clocks_is_of_the_last_one(time: int) -> None:
    [found] = raw_table("t", [Record(0, 0, b"k", b"v", (), time)])["timestamp"].to_pylist()
    assert found == datetime(9999, 12, 31, 23, 59, 59, 999_000, timezone.utc)
