"""One process of a machine commits to a table at a time."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from pyarrow import fs

from distributary.delta import commit_lock as module
from distributary.delta.commit_lock import LOCK, commit_lock
from distributary.delta.storage import TableFiles

SPAWN = multiprocessing.get_context("spawn")
ROUNDS = 200


def add_up(folder: str, begin: Event) -> None:
    """Reads a number and writes it back with one more, which loses some where two processes do so at once."""
    files = TableFiles(folder)
    number = Path(folder) / "number"
    begin.wait()
    for _ in range(ROUNDS):
        with commit_lock(files):
            number.write_text(str(int(number.read_text()) + 1))


@pytest.mark.thorough
def test_of_two_processes_none_overwrites_the_other(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    begin = SPAWN.Event()
    processes = [SPAWN.Process(target=add_up, args=(str(tmp_path), begin)) for _ in range(2)]
    for process in processes:
        process.start()
    begin.set()
    for process in processes:
        process.join(120)
    assert (tmp_path / "number").read_text() == str(2 * ROUNDS)


def test_a_process_that_keeps_it_holds_up_no_table_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with commit_lock(TableFiles(str(tmp_path))), commit_lock(TableFiles(str(tmp_path))):
        pass


def test_other_stores_have_none(tmp_path: Path) -> None:
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    with commit_lock(TableFiles("t", store)):
        assert not (tmp_path / "t" / LOCK).exists()
