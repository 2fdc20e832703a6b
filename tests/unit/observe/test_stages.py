"""The time of a change, split into those who took it."""

from __future__ import annotations

from distributary.observe.stages import Stages, stages_of
from distributary.progress.batch_stats import OldestChangeTimes


def test_each_part_of_the_way_is_reported() -> None:
    assert stages_of(OldestChangeTimes(10_000, 12_000, 12_500), at=20.0) == Stages(2.0, 0.5, 7.5)


def test_what_is_not_known_is_none() -> None:
    assert stages_of(OldestChangeTimes(10_000, None, 12_500), at=20.0) == Stages(None, None, 7.5)
    assert stages_of(None, at=20.0) is None


def test_clocks_that_differ_make_nothing_negative() -> None:
    assert stages_of(OldestChangeTimes(13_000, 12_000, 11_000), at=10.0) == Stages(0.0, 0.0, 0.0)
