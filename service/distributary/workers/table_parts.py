"""The parts that read and write one table, made from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.consume.topics import TableId
from distributary.error_mapping import classify
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.tables import catalog_name
from distributary.lake.layout import wanted_layout
from distributary.lake.table import LakeTable
from distributary.maintain.layout_sync import LayoutSync
from distributary.maintain.table_maintenance import TableMaintenance
from distributary.workers.batch_processor import BatchProcessor
from distributary.workers.catalog import CatalogEntry
from distributary.workers.context import WorkerContext
from distributary.workers.topic_check import TopicCheck


@dataclass(frozen=True)
class TableParts:
    """The parts that a worker uses for its table, for one version of its `settings`. `entry`: None without a
    catalog."""

    settings: TableSettings
    writer: BatchWriter
    lake: LakeTable
    processor: BatchProcessor
    topic_check: TopicCheck
    layout_sync: LayoutSync
    maintenance: TableMaintenance
    entry: CatalogEntry | None
    log: FilteringBoundLogger

    @classmethod
    def make(
        cls,
        context: WorkerContext,
        settings: TableSettings,
        table: TableId,
        topic: str,
        path: str,
        name: str,
        cursor: TableCursor,
        log: FilteringBoundLogger,
    ) -> TableParts:
        """The parts of the table at `path`. `name`: its name in logs and status; `cursor`: its newest commit."""
        writer = BatchWriter(settings, context.index_cache)
        layout = wanted_layout(settings)
        lake = LakeTable(context.session, path, writer.service_columns, layout=layout)
        entry = catalog_name(context.config, table)
        return cls(
            settings,
            writer,
            lake,
            BatchProcessor(context, topic, settings, writer, lake, cursor, name, log),
            TopicCheck(context, topic, settings, lake, cursor, log),
            LayoutSync(lake, cursor, layout, log),
            TableMaintenance(lake, writer, cursor, settings.mode, name),
            CatalogEntry(lake.session, entry, path, log) if entry else None,
            log,
        )

    def register_in_catalog(self) -> str | None:
        """Makes a table that exists known to the catalog of the config; gives its name there if that was done now."""
        entry = self.entry
        if entry is not None and entry.is_due and self.lake.exists() and entry.ensure():
            return entry.name
        return None

    def write_log_checkpoint_if_due(self) -> None:
        """Writes a checkpoint of the table's log if one is due. If that fails it is tried again with the next commit:
        the table does without."""
        try:
            self.writer.write_log_checkpoint_if_due(self.lake)
        except Exception as error:  # Spark's, Java's and the storage's
            self.log.warning("no checkpoint of the table's log was written", reason=classify(error).message)
