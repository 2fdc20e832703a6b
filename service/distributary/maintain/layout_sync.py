"""The properties and the clustering that the config wants of a table, which is there already."""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.ingest.table_cursor import TableCursor
from distributary.lake.layout import Layout
from distributary.lake.table import LakeTable


class LayoutSync:
    """Gives them to one table, once for a worker. `cursor` is moved along."""

    def __init__(self, lake: LakeTable, cursor: TableCursor, layout: Layout, log: FilteringBoundLogger) -> None:
        self._lake = lake
        self._cursor = cursor
        self._log = log
        self._done = layout.is_empty

    def ensure(self) -> None:
        """Gives the table the config's layout. Raises TableHalt if the table can't have it."""
        if self._done:
            return
        if self._cursor.head is not None and self._lake.columns():  # a table without columns is made anew with them
            self._log.debug("checking the table's properties and layout")
            diff = self._lake.layout_diff()
            if diff:
                self._cursor.head = self._lake.commit_record_if_old(self._cursor.head)
                self._lake.apply_layout(diff)
                self._log.info("the table was altered", properties=dict(diff.properties), clustered_by=diff.cluster_by)
                self._cursor.head = self._lake.head(self._cursor.head)
            if diff.partitions:
                self._log.warning("the table keeps its partitions, which differ from the config's", fix=diff.partitions)
        self._done = True
