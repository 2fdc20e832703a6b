"""Tests that share a service run, a server or a table run in one process, all others in any."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.scheduling import shares

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("integration/test_recorded.py", True),
        ("integration/test_packed_rules.py", True),
        ("e2e/test_postgres.py", True),
        ("unit/decode/test_recordings.py", True),
        ("integration/test_table_rules.py", False),
        ("unit/support/test_rule_packs.py", False),
    ],
)
def test_files_that_share_something_stay_together(file: str, *, expected: bool) -> None:
    assert shares(str(TESTS / file)) is expected
