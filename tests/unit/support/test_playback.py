"""A wait for a running service ends as soon as a table halted that the test does not expect to halt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.playback import Running

HALTED = json.dumps({"event": "table halted", "table": "shop.items", "code": "key-changed", "reason": "another key"})
OTHER = json.dumps({"event": "table committed", "table": "shop.items"})
PLENTY = 60.0
"""Seconds."""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """One that does not end by itself."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text(f"{OTHER}\n{HALTED}\n{OTHER}\n", encoding="utf-8")
    return path


def test_a_table_that_halted_unexpectedly_ends_the_wait_with_its_log_line(
    process: subprocess.Popen[bytes], log: Path
) -> None:
    with pytest.raises(AssertionError) as raised:
        Running(process, log).wait_until(lambda: False, PLENTY)
    assert HALTED in str(raised.value)
    assert OTHER not in str(raised.value)


def test_what_holds_by_then_is_not_missed(process: subprocess.Popen[bytes], log: Path) -> None:
    Running(process, log).wait_until(lambda: True, PLENTY)


def test_a_table_that_is_expected_to_halt_does_not_end_the_wait(process: subprocess.Popen[bytes], log: Path) -> None:
    running = Running(process, log, may_halt=frozenset({"shop.items"}))
    with pytest.raises(AssertionError, match=r"not within 0\.5 s") as raised:
        running.wait_until(lambda: False, 0.5)
    assert OTHER in str(raised.value), "the end of the log"


def test_a_line_that_is_still_being_written_is_not_read(process: subprocess.Popen[bytes], log: Path) -> None:
    log.write_text(f"Picked up JAVA_TOOL_OPTIONS\n{OTHER}\n{HALTED[:40]}", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"not within 0\.5 s"):
        Running(process, log).wait_until(lambda: False, 0.5)


def test_a_run_that_ended_ends_the_wait(process: subprocess.Popen[bytes], log: Path) -> None:
    log.write_text(f"{OTHER}\n", encoding="utf-8")
    process.kill()
    with pytest.raises(AssertionError, match="not happen any more"):
        Running(process, log).wait_until(lambda: False, PLENTY)
