"""A table's memory between two commits."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from distributary.apply.memory import Memory, TableSpec, first_memory
from distributary.delta.storage import TableFiles
from distributary.errors import TableHalt
from distributary.ingest.memory_store import MemoryStore
from distributary.progress.record import Progress, first_progress
from distributary.rules.event import Position
from distributary.rules.state import KeyState, RuleSettings

SPEC = TableSpec(RuleSettings("sqlserver"), "p.s.t", pa.struct([("id", pa.int64())]), pa.struct([("id", pa.int64())]))
START = first_progress("p.s.t", "topic-id", "sqlserver", "upsert", ("id",))
DAY = 86_400.0


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles(str(tmp_path))


def memory_of(deletes: int) -> Memory:
    at = Position(("0a",), ("1",), "0a", time=5)
    memory = first_memory(SPEC, 1)
    memory.state.deleted_keys = {f"{number} {hash(str(number))}": at for number in range(deletes)}
    return memory


def put(files: TableFiles, store: MemoryStore, memory: Memory, before: Progress) -> Progress:
    progress = store.put(files, memory, before.next_commit(records=1))
    store.keep(progress.commit, memory)
    return progress


@pytest.mark.parametrize("deletes", [1, 10_000])
def test_what_a_commit_carries_or_names_is_taken_by_the_next_one(files: TableFiles, deletes: int) -> None:
    store, memory = MemoryStore(), memory_of(deletes)
    progress = put(files, store, memory, START)
    assert (progress.memory is None) is (deletes == 1)
    assert store.load(files, SPEC, progress, 1) is memory
    assert store.load(files, SPEC, progress, 1) == memory  # it was given away, and is read
    assert MemoryStore().load(files, SPEC, progress, 1) == memory


@pytest.mark.parametrize("deletes", [1, 10_000])
def test_the_record_says_how_large_the_memory_is(files: TableFiles, tmp_path: Path, deletes: int) -> None:
    memory = memory_of(deletes)
    memory.state.special = {"1": KeyState(), "2": KeyState()}
    progress = put(files, MemoryStore(), memory, START)
    kept = len(progress.recalled or "") if progress.memory is None else (tmp_path / progress.memory).stat().st_size
    assert (progress.remembered_keys, progress.memory_bytes) == (2, kept)


def test_a_table_set_back_gets_the_memory_of_its_version(files: TableFiles) -> None:
    store = MemoryStore()
    first = put(files, store, memory_of(1), START)
    put(files, store, memory_of(2), first)
    assert store.load(files, SPEC, first, 1) == memory_of(1)


@pytest.mark.parametrize("deletes", [1, 10_000])
def test_a_memory_that_can_not_be_read_halts_its_table(files: TableFiles, tmp_path: Path, deletes: int) -> None:
    progress = put(files, MemoryStore(), memory_of(deletes), START)
    if progress.memory is None:
        progress = progress.model_copy(update={"recalled": "damaged"})
    else:
        (tmp_path / progress.memory).write_bytes(b"damaged")
    with pytest.raises(TableHalt, match="memory-unreadable"):
        MemoryStore().load(files, SPEC, progress, 1)


def test_a_table_of_an_older_version_halts(files: TableFiles) -> None:
    with pytest.raises(TableHalt, match="table-of-older-version"):
        MemoryStore().load(files, SPEC, START.next_commit(records=5), 1)
    assert MemoryStore().load(files, SPEC, START.next_commit(), 1) == first_memory(SPEC, 1)


@pytest.mark.thorough
def test_files_go_when_no_version_that_is_kept_needs_them(files: TableFiles, tmp_path: Path) -> None:
    store, progress, names = MemoryStore(), START, []
    for age in (10, 8, 5, 0):
        progress = put(files, store, replace(memory_of(10_000)), progress)
        assert progress.memory is not None
        names.append(progress.memory)
        at = time.time() - age * DAY
        os.utime(tmp_path / progress.memory, (at, at))
    store.remove_old(files, 7 * DAY, progress.memory)
    # That of eight days ago held until five days ago.
    assert [(tmp_path / name).exists() for name in names] == [False, True, True, True]
