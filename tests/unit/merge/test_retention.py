"""What Delta keeps of a log, and the library."""

from __future__ import annotations

import pytest

from distributary.merge.retention import FILES_KEPT, same_tombstones


@pytest.mark.parametrize("said", ["interval 30 days", "interval 1 week", "interval 12 hours"])
def test_what_the_library_reads_as_spark_does_leaves_the_checkpoint_to_it(said: str) -> None:
    assert same_tombstones({FILES_KEPT: said})
    assert same_tombstones({})


@pytest.mark.parametrize("said", ["30 days", "INTERVAL 30 DAYS", "interval 1 week 3 days", "interval '30' days"])
def test_what_the_library_takes_for_a_week_leaves_it_to_spark(said: str) -> None:
    assert not same_tombstones({FILES_KEPT: said})
