"""The limit on records that can't be applied."""

from __future__ import annotations

from distributary.ingest.rejection_limit import too_many_rejected


def test_too_many_bad_records_are_counted_over_the_last_thousand() -> None:
    recent = [(600, 0), (500, 90), (600, 30)]
    assert too_many_rejected(recent, 0.1) == (((500, 90), (600, 30)), 120)
    assert too_many_rejected(recent, 0.2)[1] is None
    assert too_many_rejected([(50, 50)], 0.1)[1] is None  # fewer than 100 bad ones are no pattern yet
