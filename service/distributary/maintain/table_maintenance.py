"""Maintains the files of one table: runs the tasks, and the work that belongs to them."""

from __future__ import annotations

from distributary import failpoints
from distributary.delta.commit import CommitPayload, concurrent_change
from distributary.delta.compaction import MAX_DEAD_SHARE, dead_share, next_file_group
from distributary.delta.live_file import LiveFile
from distributary.delta.writer import TableWriter
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.table_cursor import TableCursor
from distributary.lake.optimize import Compacted, compact, vacuum
from distributary.lake.table import LakeTable
from distributary.maintain.schedule import APPENDED_FILE, REWRITTEN_FILE, Task
from distributary.progress.record import APP_ID, Head, Progress


class TableMaintenance:
    """Does the tasks of one table, of the config's `mode`, and moves its `cursor`. `name`: as failpoints call it."""

    def __init__(self, lake: LakeTable, writer: BatchWriter, cursor: TableCursor, mode: str, name: str) -> None:
        self._lake = lake
        self._writer = writer
        self._cursor = cursor
        self._file_bytes = APPENDED_FILE if mode == "append" else REWRITTEN_FILE
        self._name = name
        self._as_large_as_can_be: set[str] = set()
        """Paths of small files that a compaction would not change."""
        self.has_more = False
        """Whether the task that was done last is only done in part."""

    def do(self, task: Task) -> Compacted | None:
        """Runs a task of a table that has a progress record, or a piece of the task. Returns the result of a
        compaction. Raises TableHalt, TransientError and what Spark raises. The table's rows do not change."""
        self.has_more = False
        head = self._cursor.head
        if head is None or head.progress is None:
            return None
        if task is Task.COMPACT:
            return self._compact(head, head.progress)
        try:
            vacuum(self._lake.session, self._lake.path)
        finally:
            self._lake.release_cache()
        self._writer.remove_old_memory(self._lake, head.progress)
        return None

    def _compact(self, head: Head, progress: Progress) -> Compacted | None:
        writer = self._writer.table_writer(self._lake, progress.key)
        if writer.snapshot.is_clustered:
            return self._compact_by_spark(head)
        piece = self._next_piece(writer)
        if not piece:
            return None
        before = writer.snapshot.files.keys()
        failpoints.passing("before-compaction", self._name)
        done = self._rewrite(head, progress, writer, piece)
        failpoints.passing("after-compaction", self._name)
        if done.added > done.removed / 2 and all(file.vector is None for file in piece):
            # Rows that take far more memory than bytes of a file come to files that are as small as before.
            self._as_large_as_can_be |= writer.snapshot.files.keys() - before
        self.has_more = bool(self._next_piece(writer))
        return done

    def _next_piece(self, writer: TableWriter) -> list[LiveFile]:
        files = writer.snapshot.files
        self._as_large_as_can_be &= files.keys()
        skipped = self._as_large_as_can_be
        wanted = (file for path, file in files.items() if path not in skipped or dead_share(file) >= MAX_DEAD_SHARE)
        return next_file_group(wanted, self._file_bytes)

    def _rewrite(self, head: Head, progress: Progress, writer: TableWriter, piece: list[LiveFile]) -> Compacted:
        """Rewrites the files of a piece as one file or a few, in a commit with the same progress record."""
        added = 0

        def write(head: Head, after: Progress) -> None:
            nonlocal added
            if writer.snapshot.version != head.version:
                raise concurrent_change(self._lake.path, head.version)
            added = writer.compact(piece, CommitPayload(after.to_json(), APP_ID, after.sequence))

        self._cursor.head = self._lake.commit(head, progress.next_commit(), write)
        return Compacted(added, len(piece), sum(file.size for file in piece))

    def _compact_by_spark(self, head: Head) -> Compacted:
        try:
            self._cursor.head = head = self._lake.commit_record_if_old(head) or head
            failpoints.passing("before-compaction", self._name)
            done = compact(self._lake.session, self._lake.path, self._file_bytes)
            failpoints.passing("after-compaction", self._name)
        finally:
            self._lake.release_cache()
        self._cursor.head = self._lake.head(self._cursor.head)
        return done
