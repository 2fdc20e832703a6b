"""Looks after the files of one table: what a task does to them, and what must be done beside it."""

from __future__ import annotations

from distributary import failpoints
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.table_cursor import Place
from distributary.lake.optimize import Compacted, compact, vacuum
from distributary.lake.table import LakeTable
from distributary.maintain.schedule import APPENDED_FILE, REWRITTEN_FILE, Task


class TableMaintenance:
    """Does the tasks of one table, of the config's `mode`, and moves its `place`. `name` is what failpoints call it."""

    def __init__(self, lake: LakeTable, writer: BatchWriter, place: Place, mode: str, name: str) -> None:
        self._lake = lake
        self._writer = writer
        self._place = place
        self._mode = mode
        self._name = name

    def do(self, task: Task) -> Compacted | None:
        """Does a task of a table that has a record; gives what a compaction did. Raises TransientError and what Spark
        raises; the table's rows are as they were."""
        try:
            if task is Task.COMPACT:
                return self._compact()
            vacuum(self._lake.session, self._lake.path)
            if self._place.progress is not None:
                self._writer.remove_old_memory(self._lake, self._place.progress)
            return None
        finally:
            self._lake.release_cache()

    def _compact(self) -> Compacted | None:
        head = self._place.head
        if head is None or head.progress is None:
            return None
        self._place.head = self._lake.keep_record(head)
        failpoints.passing("before-compaction", self._name)
        size = APPENDED_FILE if self._mode == "append" else REWRITTEN_FILE
        done = compact(self._lake.session, self._lake.path, size)
        failpoints.passing("after-compaction", self._name)
        self._place.head = self._lake.head(self._place.head)
        return done
