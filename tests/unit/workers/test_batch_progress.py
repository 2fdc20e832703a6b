"""Where a topic's growth ends for a table, as its progress record says."""

from __future__ import annotations

import pytest

from distributary.consume.offsets import Offsets
from distributary.progress.record import first_progress
from distributary.workers.batch_progress import with_growth

NEW = first_progress("p.dbo.t", "id", "sqlserver", "upsert", ("id",))
ENDS: Offsets = {0: 9, 1: 4}


def growth_after(before: Offsets, after: Offsets, *, grew_before: bool = False) -> Offsets | None:
    """The ends that the table is still to reach once a batch has brought it from `before` to `after`."""
    one, other = (NEW.model_copy(update={"next": offsets}) for offsets in (before, after))
    found = with_growth(other, one, lambda: ENDS, grew_before=grew_before).growth
    return None if found is None else dict(found)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({0: 5}, {0: 6}, None),
        ({0: 5}, {0: 6, 1: 0}, ENDS),
        ({0: 5}, {0: 9, 1: 4}, None),  # all of it is in the batch that notices it
        ({}, {0: 5, 1: 0}, None),
    ],
)
def test_2_5_growth_lasts_until_the_table_reaches_what_was_there(
    before: Offsets, after: Offsets, expected: Offsets | None
) -> None:
    assert growth_after(before, after) == expected


def test_2_5_so_does_one_from_before_the_table_was_first_read() -> None:
    assert growth_after({}, {0: 5, 1: 0}, grew_before=True) == ENDS
    assert growth_after({}, {0: 9, 1: 4}, grew_before=True) is None
