"""Looks after the files of one table: what a task does to them, and what must be done beside it."""

from __future__ import annotations

from distributary.ingest.batch_writer import BatchWriter
from distributary.merge.files import Compacted, compact, vacuum
from distributary.merge.table import LakeTable
from distributary.operate import failpoints
from distributary.operate.place import Place
from distributary.operate.upkeep import APPENDED_FILE, REWRITTEN_FILE, Task


class Tending:
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
            self._lake.leave()

    def _compact(self) -> Compacted | None:
        head = self._place.head
        if head is None or head.progress is None:
            return None
        self._place.head = self._lake.renewed(head)
        failpoints.passing("before-compaction", self._name)
        size = APPENDED_FILE if self._mode == "append" else REWRITTEN_FILE
        done = compact(self._lake.session, self._lake.path, size)
        failpoints.passing("after-compaction", self._name)
        self._place.head = self._lake.head(self._place.head)
        return done
