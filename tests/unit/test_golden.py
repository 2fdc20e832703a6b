"""Each kind of batch commits what the files in tests/golden have."""

from __future__ import annotations

import pytest
from tests.support.golden import FOLDER, KINDS, golden


@pytest.mark.parametrize("name", KINDS)
def test_a_batch_commits_the_actions_of_its_golden_file(name: str) -> None:
    assert golden(KINDS[name]) == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def test_each_golden_file_is_of_a_kind_of_batch() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(KINDS)
