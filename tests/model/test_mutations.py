"""Every deliberate fault of the service is noticed by the tests that hold the rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.model.mutations import MUTATIONS, Mutation, mutated

SELECTION = (
    *("tests/integration/test_table_rules.py", "tests/integration/test_histories.py", "-k"),
    "test_selected or test_histories_that or test_table_rules",
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_a_fault_is_noticed(mutation: Mutation, tmp_path: Path) -> None:
    service = mutated(mutation, tmp_path)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(service), str(root))), "HISTORIES_TRIES": "0"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=", *SELECTION]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, f"rule {mutation.rule} broken, and no test failed:\n{done.stdout[-2000:]}"
    assert "test_table_rules" in done.stdout or "test_histories" in done.stdout
