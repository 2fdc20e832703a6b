"""The holder of a lease, as another process sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from distributary.control.lease_holder import already_running, holder_of, this_process

PROGRAM = """
import json, sys
from distributary.control.lease_holder import this_process
print(json.dumps(this_process("home").to_json()), flush=True)
sys.stdin.read()
"""


def test_another_process_is_alive_until_it_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        holder = holder_of(json.loads(process.stdout.readline()))
        assert holder is not None
        assert (holder.pid, holder.is_alive, holder.is_gone) == (process.pid, True, False)
        # Numbers of processes come again, after a restart of a container very soon.
        assert replace(holder, born="1").is_gone
        process.kill()
        process.wait()
        assert (holder.is_alive, holder.is_gone) == (False, True)


@pytest.mark.parametrize("machine", ["another boot pid:[1]", None])
def test_of_a_process_elsewhere_nothing_is_known(machine: str | None) -> None:
    elsewhere = replace(this_process("home"), machine=machine, pid=999_999_999)
    assert (elsewhere.is_alive, elsewhere.is_gone) == (False, False)


@pytest.mark.parametrize("found", [None, {}, "text", {"id": 5}, {**this_process("home").to_json(), "pid": "x"}])
def test_what_is_no_holder_is_none(found: object) -> None:
    assert holder_of(found) is None


def test_a_holder_comes_back_from_its_file_as_it_was() -> None:
    me = this_process("home")
    assert holder_of(me.to_json()) == me


def test_the_loser_learns_who_has_it_and_what_to_do() -> None:
    holder = replace(this_process("home"), host="driver-7", pid=42, since=0.0, beat=60.0)
    error = already_running(holder, "runs")
    assert error.exit_code == 3
    assert "process 42 on driver-7, since 1970-01-01 00:00:00 UTC, last sign of life 1970-01-01 00:01:00" in str(error)
    assert "stop the other driver" in error.fix
