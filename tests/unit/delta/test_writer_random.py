"""Random writes, with other writers and damage in between, leave the rows of a dict: see
tests/support/delta_play.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.delta_play import KINDS, play
from tests.support.random_share import Scale, thorough_but

from distributary.delta import data_file, data_reader


@pytest.mark.parametrize("seed", thorough_but(1, range(2)))
@pytest.mark.parametrize("kind", thorough_but(2, KINDS))
def test_random_writes_leave_what_a_dict_has(tmp_path: Path, kind: str, seed: int, scale: Scale) -> None:
    steps = scale(30, at_least=12)
    assert play(tmp_path, kind, seed, steps=steps).batches > steps // 3


def test_so_do_writes_in_which_all_columns_are_read_and_copied_in_threads(
    tmp_path: Path, scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (data_file, data_reader):
        monkeypatch.setattr(module, "_BYTES_FOR_THREADS", 0)
    steps = scale(30, at_least=12)
    assert play(tmp_path, "mixed", 7, steps=steps).batches > steps // 3
