"""Random writes, with other writers and damage in between, leave what a dict says: see tests/support/delta_play.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.delta_play import KINDS, play


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_random_writes_leave_what_a_dict_says(tmp_path: Path, kind: str, seed: int) -> None:
    assert play(tmp_path, kind, seed, steps=30).batches > 10
