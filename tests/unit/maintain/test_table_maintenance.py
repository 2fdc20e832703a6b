"""A table's compaction, piece by piece, on a real table whose log is JSON by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tests.support.hand_made_lake import HandMadeLake

from distributary.delta.data_file import FileOptions
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.table_cursor import TableCursor
from distributary.lake.table import LakeTable
from distributary.maintain.schedule import Task
from distributary.maintain.table_maintenance import TableMaintenance
from distributary.progress.record import Head, Progress, first_progress


class Table:
    """Stands for LakeTable and BatchWriter: commits and writes go to the `lake`."""

    path = "t"

    def __init__(self, lake: HandMadeLake) -> None:
        self.lake = lake

    def table_writer(self, *_: Any) -> Any:
        self.lake.writer.sync()
        return self.lake.writer

    def commit(self, head: Head, progress: Progress, write: Callable[[Head, Progress], object]) -> Head:
        write(head, progress)
        return Head(self.lake.table.version, progress)


def maintenance(lake: HandMadeLake) -> TableMaintenance:
    table = Table(lake)
    cursor = TableCursor(Head(lake.table.version, first_progress("t", "id", "sqlserver", "upsert", ("id",))))
    return TableMaintenance(cast(LakeTable, table), cast(BatchWriter, table), cursor, "upsert", "t")


def test_a_compaction_ends_where_the_files_can_not_become_larger(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write(dict.fromkeys(range(40), "a"))
    lake.writer = lake.new_writer(FileOptions(target_bytes=100))  # each file has a few rows, whatever is joined
    lake.write(dict.fromkeys(range(40), "b"))
    before, rows = lake.writer.snapshot.version, lake.rows()
    assert len(lake.writer.snapshot.files) > 4
    table = maintenance(lake)
    assert table.do(Task.COMPACT) is not None
    assert not table.has_more
    assert table.do(Task.COMPACT) is None, "what came out as it was is joined again"
    assert lake.table.version == before + 1
    assert lake.rows() == rows


def test_a_compaction_carries_the_record_on_and_counts_its_files(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    for number in range(5):
        lake.write({number: "a"})
    done = maintenance(lake).do(Task.COMPACT)
    assert done is not None
    assert (done.added, done.removed) == (1, 5)
    carried = Progress.from_json(lake.committer.records[-1].text)
    assert carried is not None
    assert (carried.topic, carried.key, carried.sequence) == ("t", ("id",), 1)
