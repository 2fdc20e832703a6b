"""Tables that a task returns are the ones that the driver reads, in files and through Spark."""

from __future__ import annotations

import queue
import resource
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from distributary.errors import TransientError
from distributary.ingest import task_results
from distributary.ingest.task_results import make_result, read_results, result_folder

TABLES = [
    ("events", pa.table({"id": [1, 2], "row": [{"v": "a"}, None]})),
    ("rejected", pa.table({"id": pa.array([], pa.int64())})),
    ("file", pa.table({"offset": [7]}).replace_schema_metadata({"add": "{}"})),
    ("events", pa.table({"id": [3], "row": [{"v": "ä" * 10_000}]})),
]


def context(folder: Path, master: str = "local[2]", **settings: str) -> Any:
    """What is asked of a Spark context."""
    known = {name.replace("_", "."): value for name, value in settings.items()}
    return SimpleNamespace(master=master, _temp_dir=str(folder), _conf=known)


def returned(*folders: Path | None) -> pa.Table:
    """What a task returns of TABLES, each by way of one of these folders."""
    rows = [
        make_result(kind, table, None if folder is None else str(folder))
        for (kind, table), folder in zip(TABLES, folders, strict=True)
    ]
    return pa.Table.from_batches(rows)


@pytest.mark.parametrize(
    "in_files", [(True,) * 4, (False,) * 4, (True, False, False, True), (False, True, True, False)]
)
def test_the_driver_reads_what_tasks_return(tmp_path: Path, in_files: tuple[bool, ...]) -> None:
    made = returned(*(tmp_path if in_file else None for in_file in in_files))
    assert [path is not None for path in made["path"].to_pylist()] == list(in_files)
    assert len([*tmp_path.iterdir()]) == sum(in_files)
    for table in (made, made.combine_chunks(), pa.concat_tables([made.slice(0, 1), made.combine_chunks().slice(1)])):
        found = read_results(table)
        assert [kind for kind, _ in found] == [kind for kind, _ in TABLES]
        assert all(read.equals(sent, check_metadata=True) for (_, read), (_, sent) in zip(found, TABLES, strict=True))


def test_tables_remain_when_their_files_are_removed(tmp_path: Path) -> None:
    with result_folder(context(tmp_path)) as folder:
        assert folder is not None
        assert Path(folder).stat().st_mode & 0o077 == 0
        found = read_results(returned(*[Path(folder)] * 4))
    assert [*tmp_path.iterdir()] == []
    assert [table for _, table in found] == [table for _, table in TABLES]


def test_files_of_a_failed_job_are_removed(tmp_path: Path) -> None:
    def fail() -> None:
        with result_folder(context(tmp_path)) as folder:
            returned(*[Path(str(folder))] * 4)
            assert len([*tmp_path.rglob("*")]) == 1 + 4
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert [*tmp_path.iterdir()] == []


def test_no_file_of_a_task_that_still_writes_is_left(tmp_path: Path) -> None:
    """A cancelled job's tasks go on for some seconds."""
    ended, folders = threading.Event(), queue.SimpleQueue[str]()

    def write() -> None:
        folder = folders.get()
        while not ended.is_set():
            with suppress(queue.Empty):
                folder = folders.get_nowait()
            make_result("events", TABLES[0][1], folder)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(60):
            with result_folder(context(tmp_path)) as folder:
                for _ in writers:
                    folders.put(str(folder))
                time.sleep(0.005)
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    assert [*tmp_path.iterdir()] == []


def test_more_files_than_a_process_may_open_are_read(tmp_path: Path) -> None:
    table = pa.table({"id": [1]})
    many = pa.Table.from_batches([make_result("events", table, str(tmp_path)) for _ in range(400)])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        found = read_results(many)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert [read for _, read in found] == [table] * 400


def test_a_file_that_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    made = returned(*[tmp_path] * 4)
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(TransientError):
        read_results(made)


def test_what_a_full_disk_can_not_take_goes_through_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}" for number in range(4)]
    for name in names[::2]:
        (tmp_path / name).symlink_to("/dev/full")
    following = iter(names)
    monkeypatch.setattr(task_results, "uuid4", lambda: SimpleNamespace(hex=next(following)))
    made = returned(*[tmp_path] * 4)
    assert made["path"].to_pylist() == [None, str(tmp_path / "1"), None, str(tmp_path / "3")]
    assert [table for _, table in read_results(made)] == [table for _, table in TABLES]
    assert {path.name for path in tmp_path.iterdir()} == {"1", "3"}


def test_a_task_whose_job_was_cancelled_meets_no_fault_without_its_folder(tmp_path: Path) -> None:
    assert returned(*[tmp_path / "removed"] * 4)["path"].to_pylist() == [None] * 4


def test_files_are_only_for_tasks_on_this_machine_and_never_beside_encrypted_ones(tmp_path: Path) -> None:
    others = [
        context(tmp_path, "local-cluster[2,1,1024]"),
        context(tmp_path, "spark://127.0.0.1:7077"),
        context(tmp_path, "k8s://https://10.0.0.1"),
        context(tmp_path, spark_io_encryption_enabled="true"),
        context(tmp_path / "missing"),
    ]
    for one in others:
        with result_folder(one) as folder:
            assert folder is None
    for one in (context(tmp_path, "local"), context(tmp_path, "local[*]", spark_io_encryption_enabled="false")):
        with result_folder(one) as folder:
            assert folder is not None
            shutil.rmtree(folder)  # as cleaners of /tmp do
