"""Files that tasks wrote are in the table, or deleted, or left to VACUUM; and which tables have such files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs
from tests.support.delta_log import HandMadeTable, field

from distributary.apply.task_rows import RecordPlaces
from distributary.config.table import TableSettings
from distributary.delta.commit import concurrent_change
from distributary.delta.live_file import LiveFile
from distributary.delta.log_reader import LogReader
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles
from distributary.ingest.task_files import WrittenFiles, why_driver_must_write
from distributary.ingest.task_writer import TaskFile, TaskWriter


def table_at(folder: Path, *fields: Any, **creation: Any) -> DeltaSnapshot:
    HandMadeTable(folder).create(field("id", "long"), *fields, **creation)
    return LogReader(TableFiles(str(folder))).newest(None).snapshot


def written_files(folder: Path, names: Sequence[str]) -> WrittenFiles:
    writer = TaskWriter(
        TableFiles(str(folder)),
        table_at(folder),
        ("id",),
        pa.struct([]),
        "t",
        marks_deleted=False,
        file_bytes=1,
        least_bytes=1,
    )
    for name in names:
        (folder / name).write_bytes(b"rows")
    places = RecordPlaces(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return WrittenFiles([TaskFile(LiveFile({"path": name}), places) for name in names], writer)


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (None, ["b"]),
        (concurrent_change("t", 1), []),
        (OSError("the answer was lost"), ["b"]),
    ],
)
def test_files_that_are_not_in_the_table_are_deleted(tmp_path: Path, error: Exception | None, left: list[str]) -> None:
    written = written_files(tmp_path, ["a", "b", "c"])
    with suppress(OSError, type(concurrent_change("t", 1))), written.committing([1]) as files:
        assert [file.path for file in files] == ["a", "b", "c"]
        if error is not None:
            raise error
    written.delete_unused()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == left


def test_files_of_a_batch_that_is_not_committed_are_deleted(tmp_path: Path) -> None:
    written = written_files(tmp_path, ["a", "b"])
    written.delete_unused()
    written.delete_unused()
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


UPSERT = TableSettings("dbo.t")


def reason(
    folder: Path, settings: TableSettings = UPSERT, master: str = "local[2]", remote: bool = False, **creation: Any
) -> str | None:
    table = table_at(folder, **creation)
    filesystem = fs.SubTreeFileSystem("/", fs.LocalFileSystem()) if remote else None
    return why_driver_must_write(settings, table, TableFiles(str(folder), filesystem), master)


def test_rows_of_usual_tables_may_be_written_by_tasks(tmp_path: Path) -> None:
    assert reason(tmp_path / "usual") is None
    assert reason(tmp_path / "soft", replace(UPSERT, deletes="soft")) is None
    assert reason(tmp_path / "feed", properties={"delta.enableChangeDataFeed": "true"}) is None


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"settings": TableSettings("dbo.t", mode="history")}, "mode history"),
        ({"settings": TableSettings("dbo.t", mode="append")}, "mode append"),
        ({"partition_by": ["id"]}, "partitions"),
        ({"properties": {"delta.constraints.positive": "id > 0"}}, "constraints"),
    ],
)
def test_other_tables_are_written_by_the_driver(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    assert part in (reason(tmp_path, **changes) or "")


def test_a_change_feed_needs_the_rows_once_the_table_has_some(tmp_path: Path) -> None:
    table = table_at(tmp_path, properties={"delta.enableChangeDataFeed": "true"})
    filled = replace(table, files={"a": LiveFile({"path": "a"})})
    assert "change data feed" in (why_driver_must_write(UPSERT, filled, TableFiles(str(tmp_path)), "local") or "")


@pytest.mark.parametrize(
    ("master", "may_write"),
    [
        ("local", True),
        ("local[4]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://cluster:7077", False),
        ("k8s://https://127.0.0.1.example:6443", False),
        ("yarn", False),
    ],
)
def test_executors_on_other_machines_do_not_write_on_this_one_s_disk(
    tmp_path: Path, master: str, *, may_write: bool
) -> None:
    assert (reason(tmp_path / "here", master=master) is None) == may_write
    assert reason(tmp_path / "store", master=master, remote=True) is None
