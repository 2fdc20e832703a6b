"""Losses of the rules are logged with their number and a fix."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from distributary.ingest.decoded_batch import PreparedBatch
from distributary.logs import get_logger
from distributary.workers.losses import warn_of_losses, warn_of_quarantined

NOTHING = PreparedBatch(lambda _head, _progress: None)


@pytest.mark.parametrize(
    ("batch", "found", "fix"),
    [
        (replace(NOTHING, unknown=3), {"values": 3}, "incremental snapshot"),
        (replace(NOTHING, forgotten_keys=4), {"keys": 4}, "distributary verify"),
        (replace(NOTHING, without_order=5), {"records": 5}, "replay the quarantine"),
        (replace(NOTHING, forgotten=7), {"records": 7}, "after a replay"),
        (replace(NOTHING, stale_snapshot_rows=6), {"rows": 6}, "raise `epoch`"),
    ],
)
def test_each_loss_is_reported_once(batch: PreparedBatch, found: dict[str, int], fix: str) -> None:
    with capture_logs() as logs:
        warn_of_losses(batch, get_logger(__name__))
    [line] = logs
    assert line["log_level"] == "warning"
    assert found.items() <= line.items()
    assert fix in line["fix"]


def test_records_in_quarantine_are_reported_with_their_reasons_and_the_first_one() -> None:
    rejected = pa.table({"partition": [1, 1], "offset": [7, 9]})
    with capture_logs() as logs:
        warn_of_quarantined(rejected, {"not-json": 2}, get_logger(__name__))
        warn_of_quarantined(rejected.slice(0, 0), {}, get_logger(__name__))
    [line] = logs
    assert line["log_level"] == "warning"
    assert (line["reasons"], line["first"]) == ({"not-json": 2}, {"partition": 1, "offset": 7})
    assert "quarantine list" in line["fix"]


def test_a_batch_without_a_loss_says_nothing() -> None:
    with capture_logs() as logs:
        warn_of_losses(NOTHING, get_logger(__name__))
    assert not logs
