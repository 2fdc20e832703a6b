"""Moves a table's cursor when its columns change: by commits of their own, before the batch that needs them."""

from __future__ import annotations

from typing import Any

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.delta.commit import concurrent_change
from distributary.ingest.column_fill import commit_defaults
from distributary.ingest.table_cursor import TableCursor
from distributary.lake.table import LakeTable
from distributary.progress.record import Head
from distributary.workers.batch_progress import known_progress


class ColumnChanges:
    """The changes of one table's columns. Moves `cursor`."""

    def __init__(
        self, lake: LakeTable, cursor: TableCursor, settings: TableSettings, log: FilteringBoundLogger
    ) -> None:
        self._lake = lake
        self._cursor = cursor
        self._settings = settings
        self._log = log

    def commit_defaults(self) -> None:
        """Gives older rows the defaults of new columns, where that is still to be done."""
        self._fill(self._cursor.head)

    def commit_defaults_after_change(self) -> None:
        """Gives older rows the defaults of columns that were added just now. Raises TransientError if another driver
        has applied records meanwhile: the batch was read for another state of the table."""
        before, head = self._cursor.head, self._lake.head(self._cursor.head)
        if _applied(before) != _applied(head):
            raise concurrent_change(self._lake.path, -1 if before is None else before.version)
        self._fill(head)

    def _fill(self, head: Head | None) -> None:
        self._cursor.head = commit_defaults(self._lake, head, self._settings, self._log)


def _applied(head: Head | None) -> dict[str, Any] | None:
    """The part of the progress record that applied records change."""
    progress = None if head is None else known_progress(head.progress)
    return None if progress is None else progress.model_dump(exclude={"commit", "sequence", "added"})
