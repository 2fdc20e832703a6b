"""The tests detect every deliberate fault of the service."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.model.mutations import MUTATIONS, Mutation, mutated

ROOT = Path(__file__).parents[2]
ALL_HISTORIES = "selected_histories or test_histories_that"
A_TEST_MAY_TAKE = 300
"""Seconds. A fault may make a table take the same records for ever: a test that does not end has noticed it too."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_the_code_still_has_what_the_fault_changes(mutation: Mutation) -> None:
    assert mutation.new in mutation.patched()
    ast.parse(mutation.patched())  # code that can't be read would be noticed by no test


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_a_fault_is_noticed(mutation: Mutation, tmp_path: Path) -> None:
    """By the tests that the fault names, or by those whose names have the rule, else by random histories."""
    service = mutated(mutation, tmp_path)
    rule = f"_{mutation.rule.replace('.', '_')}_"
    found = ""
    named = [(list(mutation.tests), "")] if mutation.tests else []
    for tests, chosen in named or (
        ([*("tests/unit", "tests/spark"), *_holding(rule)], rule),
        (["tests/integration/test_histories.py"], ALL_HISTORIES),
    ):
        done = _run(service, tests, chosen)
        found += done.stdout[-2000:]
        if done.returncode == 1:
            assert " failed" in done.stdout, found
            assert " error" not in done.stdout.splitlines()[-1], found
            return
    pytest.fail(f"rule {mutation.rule} broken, and no test failed:\n{found}")


def _holding(rule: str) -> list[str]:
    """The integration tests with the rule in their names."""
    files = sorted((ROOT / "tests" / "integration").glob("test_*.py"))
    return [str(file) for file in files if file.name != "test_histories.py" and rule in file.read_text("utf-8")]


def _run(service: Path, tests: list[str], chosen: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(service), str(ROOT))), "HISTORIES_TRIES": "0"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", "pythonpath="]
    command += ["--timeout", str(A_TEST_MAY_TAKE)]
    command += [*tests, "-m", "slow or not slow", "-k", chosen]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
