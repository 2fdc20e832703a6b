"""Random writes, with other writers and damage in between, leave the rows of a dict: see
tests/support/delta_play.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.delta_play import KINDS, play
from tests.support.random_share import Scale, thorough_but


@pytest.mark.parametrize("seed", thorough_but(1, range(2)))
@pytest.mark.parametrize("kind", thorough_but(2, KINDS))
def test_random_writes_leave_what_a_dict_has(tmp_path: Path, kind: str, seed: int, scale: Scale) -> None:
    steps = scale(30, at_least=12)
    assert play(tmp_path, kind, seed, steps=steps).batches > steps // 3
