"""The directory of a process's key indexes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from distributary.ingest.index_folder import new_folder

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


@pytest.mark.thorough
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


def test_those_of_processes_that_were_killed_while_they_made_them_go_later(tmp_path: Path) -> None:
    unnamed = tmp_path / ".distributary-index-killed"
    unnamed.mkdir()
    made = new_folder(tmp_path)
    assert unnamed.exists()  # it may be another process's that is about to lock it
    os.utime(unnamed, (0, 0))
    assert {*tmp_path.iterdir()} == {made, unnamed}
    assert {new_folder(tmp_path), made} == {*tmp_path.iterdir()}


def test_those_that_are_made_at_the_same_time_all_stay(tmp_path: Path) -> None:
    """Tables' threads, and services that start together, each clean up while the others make theirs."""
    threads, rounds = 8, 10
    start = threading.Barrier(threads)

    def make_many(_thread: int) -> list[Path]:
        start.wait()
        return [new_folder(tmp_path) for _ in range(rounds)]

    with ThreadPoolExecutor(threads) as pool:
        made = [folder for folders in pool.map(make_many, range(threads)) for folder in folders]
    assert sorted(tmp_path.iterdir()) == sorted(made)


def test_tables_that_ask_at_the_same_time_share_their_indexes(tmp_path: Path) -> None:
    ask = (
        "import threading; from distributary.ingest.index_folder import index_cache; start = threading.Barrier(8);"
        " found = []; ask = lambda: (start.wait(), found.append(id(index_cache())));"
        " threads = [threading.Thread(target=ask) for _ in range(8)];"
        " [thread.start() for thread in threads]; [thread.join() for thread in threads];"
        " print(len(found), len(set(found)))"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", ask], env=environment, text=True).split() == ["8", "1"]
