"""Failpoints: what is refused, and when a point fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from distributary import failpoints
from distributary.errors import TransientError, UsageError
from distributary.failpoints import MadeToFail, arm, passing


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    arm(None)


@pytest.mark.parametrize(
    "text",
    [
        *("after-comit=kill", "after-commit", "after-commit=die", "after-commit=kill@0", "after-commit=kill@x"),
        *("after-commit=wait", "after-commit=wait(soon)", "=kill", "after-commit:=kill", "after-commit=kill,raise"),
    ],
)
def test_a_failpoint_that_is_misspelt_is_refused(text: str) -> None:
    arm("after-commit=raise")
    with pytest.raises(UsageError, match="after-schema-change") as raised:
        arm(f"before-commit=raise;{text}")
    assert raised.value.code == "bad-failpoint"
    with pytest.raises(MadeToFail):  # what counted before still does
        passing("after-commit")


@pytest.mark.parametrize("text", [None, "", " ; "])
def test_without_the_variable_no_point_fails(text: str | None) -> None:
    arm(text)
    for point in failpoints.POINTS:
        passing(point, "dbo.t")


def test_a_point_fails_for_its_table_and_at_its_time() -> None:
    arm("after-commit:dbo.t=raise@2; before-commit=raise-transient")
    passing("after-commit", "dbo.other")
    passing("after-commit", "dbo.t")
    passing("after-commit", "dbo.other")
    with pytest.raises(MadeToFail):
        passing("after-commit", "dbo.t")
    passing("after-commit", "dbo.t")
    for _ in range(2):
        with pytest.raises(TransientError):
            passing("before-commit", "dbo.any")


def test_a_point_can_wait() -> None:
    arm("before-batch=wait(0.2)")
    before = time.monotonic()
    passing("before-batch")
    assert time.monotonic() - before >= 0.2


def test_a_point_can_kill_the_process() -> None:
    program = "from distributary import failpoints as f; f.arm('before-plan=kill'); f.passing('before-plan')"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=60)
    assert ended.returncode == -signal.SIGKILL
