"""The config's settings for writing a table's rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.delta_log import field, metadata
from tests.support.hand_made_lake import HandMadeLake

from distributary.apply.task_rows import RecordPlaces
from distributary.config.table import TableSettings
from distributary.config.table_rule import FileLayout
from distributary.delta.commit import ConcurrentChange
from distributary.delta.index_cache import IndexCache
from distributary.delta.live_file import LiveFile
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.ingest.batch_writer import BatchWriter, _knows, sync_writer
from distributary.ingest.decoded_batch import DecodedBatch, lacks_first_copies
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.task_files import WrittenFiles
from distributary.ingest.task_writer import TaskFile, TaskWriter
from distributary.progress.record import Head
from distributary.rules.state import RulesState


@pytest.mark.parametrize(
    ("layout", "properties", "expected"),
    [
        ("auto", {}, RemovalLayout.AUTO),
        ("rewrite", {}, RemovalLayout.REWRITE),
        ("vectors", {}, RemovalLayout.VECTORS),
        ("auto", {"delta.enableDeletionVectors": "true"}, RemovalLayout.AUTO),
        ("vectors", {"delta.enableDeletionVectors": "false"}, RemovalLayout.REWRITE),
        ("auto", {"delta.enabledeletionvectors": "False"}, RemovalLayout.REWRITE),
    ],
)
def test_rows_leave_a_table_s_files_as_the_config_says(
    layout: FileLayout, properties: dict[str, str], expected: RemovalLayout
) -> None:
    assert removal_layout(TableSettings("dbo.t", layout=layout, properties=properties)) is expected


def test_3_6_a_name_of_a_source_table_is_known_by_the_table_s_rows_and_by_changes_of_the_batch(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "p.s.one"})
    keys = [{"id": 2, "v": "p.s.two"}, {"id": None, "v": "p.s.gone"}, None]
    kind = pa.struct([("id", pa.int64()), ("v", pa.string())])
    events = pa.table({"operation": ["c", "t", "x"], "key": pa.array(keys, kind)})
    for changes in (events, events.slice(0, 0)):
        found = {name: _knows(lake.writer, changes, "v", f"p.s.{name}") for name in ("one", "two", "gone")}
        assert found == {"one": True, "two": bool(changes.num_rows), "gone": False}


@pytest.mark.parametrize("adds_column", [False, True])
def test_a_column_that_is_added_while_a_batch_is_decoded_makes_it_be_decoded_again(
    tmp_path: Path, *, adds_column: bool
) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a"})
    head = Head(lake.table.version, None)
    fields = [field("id", "long"), field("v", "string"), *([field("own", "string")] if adds_column else [])]
    newest = lake.table.commit(metadata(fields))
    table: Any = SimpleNamespace(path=str(tmp_path), head=lambda _known: Head(newest, None))
    with pytest.raises(ConcurrentChange) if adds_column else nullcontext():
        sync_writer(lake.writer, table, head)
    sync_writer(lake.writer, table, Head(newest, None))


@pytest.mark.parametrize("change", ["none", "column", "constraint"])
def test_files_of_tasks_do_not_come_into_a_table_that_another_writer_has_changed(tmp_path: Path, change: str) -> None:
    lake = HandMadeLake(tmp_path)
    files, table = TableFiles(str(lake.path)), lake.writer.snapshot
    tasks = TaskWriter(files, table, ("id",), pa.struct([]), "t", marks_deleted=False, file_bytes=1, least_bytes=1)
    places = RecordPlaces(np.zeros(1, np.int64), np.zeros(1, np.int64))
    written = WrittenFiles([TaskFile(LiveFile({"path": "a"}), places)], tasks)
    fields = [field("id", "long"), field("v", "string"), *([field("own", "string")] if change == "column" else [])]
    properties = {"delta.constraints.positive": "id > 0"} if change == "constraint" else {}
    lake.table.commit(metadata(fields, properties=properties))
    lake.writer.sync()
    writer = BatchWriter(TableSettings("dbo.t"), lambda: IndexCache(tmp_path / "c", 1, 1))
    with nullcontext() if change == "none" else pytest.raises(ConcurrentChange):
        rows = writer._written_rows(replace(batch(1), written=written), lake.writer, "local")
        assert rows.files == [places]


def batch(*seconds: int | None, gaps: bool = False) -> DecodedBatch:
    times = pa.array([None if second is None else 1000 * second for second in seconds], pa.int64())
    events = pa.table({"source_time": times})
    return DecodedBatch("t", "sqlserver", {}, {}, events, events.slice(0, 0), None, 1, compacted=gaps)


def test_records_near_to_those_that_compaction_took_away_may_be_second_copies() -> None:
    state = RulesState()
    assert not lacks_first_copies(batch(10), state)
    assert lacks_first_copies(batch(10, 20, None, gaps=True), state)
    assert lacks_first_copies(batch(3_600), state)
    assert lacks_first_copies(batch(None), state)
    assert lacks_first_copies(batch(20, 90_000), state)
    assert not lacks_first_copies(batch(3_700), state)  # an hour later nothing is sent again from before the gap
