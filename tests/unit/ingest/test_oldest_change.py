"""When the oldest change of a batch passed source, connector and Kafka."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.decoding import decode_all, plain_change

from distributary.decode.options import DecodeOptions
from distributary.ingest.oldest_change import oldest_change_times
from distributary.progress.batch_stats import OldestChangeTimes

LSN = {"connector": "sqlserver", "commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0003"}
At = tuple[str, Any, Any, int]
"""Of a change its operation, the source's and the envelope's ts_ms, and Kafka's."""


def times_of(*changes: At) -> OldestChangeTimes | None:
    made = [
        plain_change(index, {"id": 1}, op=op, source={**LSN, "ts_ms": source}, ts_ms=connector)
        for index, (op, source, connector, _) in enumerate(changes)
    ]
    records = [replace(record, timestamp=kafka) for record, (*_, kafka) in zip(made, changes, strict=True)]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver"))
    assert decoded.rejected.num_rows == 0
    return oldest_change_times(decoded.events)


def test_the_change_that_waited_longest_counts() -> None:
    changes = [("c", 2_000, 9_000, 9_500), ("u", 1_000, 4_000, 4_500), ("u", 3_000, 9_000, 9_900)]
    assert times_of(*changes) == OldestChangeTimes(1_000, 4_000, 4_500)


def test_of_several_of_one_commit_the_last_one_counts() -> None:
    assert times_of(("c", 1_000, 2_000, 3_000), ("c", 1_000, 2_500, 3_500)) == OldestChangeTimes(1_000, 2_500, 3_500)


def test_rows_of_snapshots_do_not_count() -> None:
    assert times_of(("r", 9_000, 9_100, 9_200)) is None
    assert times_of(("r", 9_000, 9_100, 9_200), ("c", 1_000, 2_000, 3_000)) == OldestChangeTimes(1_000, 2_000, 3_000)


def test_a_time_that_is_not_told_is_none() -> None:
    assert times_of(("c", None, 2_000, 3_000)) is None
    assert times_of(("c", 1_000, None, 3_000)) == OldestChangeTimes(1_000, None, 3_000)
    assert times_of(("c", 1_000, 2_000, 0)) is None


@pytest.mark.parametrize("found", ["zzzz", 2**70, "9" * 30, 1.5, True, {"a": 1}])
def test_an_envelopes_time_that_is_none_costs_no_record(found: Any) -> None:
    assert times_of(("c", 1_000, found, 3_000), ("c", 1_100, "1500", 3_000)) == OldestChangeTimes(1_000, None, 3_000)
