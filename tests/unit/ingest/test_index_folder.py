"""The directory of a process's key indexes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_MAKE = (
    "import sys, pathlib; from distributary.ingest.index_folder import new_folder;"
    " print(new_folder(pathlib.Path(sys.argv[1])))"
)


def make(parent: Path, then: str = "") -> Path:
    """A directory of a process that has ended."""
    ran = subprocess.run([sys.executable, "-c", _MAKE + then, str(parent)], capture_output=True, text=True, check=False)
    return Path(ran.stdout.strip())


def test_it_goes_when_the_process_ends(tmp_path: Path) -> None:
    assert make(tmp_path).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_those_of_killed_processes_go_and_those_in_use_stay(tmp_path: Path) -> None:
    killed = make(tmp_path, "; sys.stdout.flush(); import os; os.kill(os.getpid(), 9)")
    assert killed.is_dir()
    command = [sys.executable, "-c", _MAKE + "; sys.stdout.flush(); sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        in_use = Path(running.stdout.readline().strip())
        assert not killed.exists()
        make(tmp_path)
        assert list(tmp_path.iterdir()) == [in_use]
        assert running.stdin is not None
        running.stdin.close()
    assert list(tmp_path.iterdir()) == []
