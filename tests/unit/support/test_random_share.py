"""How many random cases a test plays."""

from __future__ import annotations

import pytest
from tests.support.random_share import scale_by


@pytest.mark.parametrize(
    ("share", "full", "at_least", "expected"),
    [(1.0, 600, 8, 600), (0.05, 600, 8, 30), (0.05, 100, 8, 8), (0.05, 6, 8, 6), (0.0, 5, 0, 0)],
)
def test_a_share_is_played_but_not_fewer_than_the_test_needs(
    share: float, full: int, at_least: int, expected: int
) -> None:
    assert scale_by(share)(full, at_least=at_least) == expected
