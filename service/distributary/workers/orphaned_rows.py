"""Orphaned rows: rows that the last complete snapshot lacks. Counted once per snapshot, and removed when an operator
asks."""

from __future__ import annotations

import pyarrow as pa
from structlog.typing import FilteringBoundLogger

from distributary.apply.origin_columns import DELETED
from distributary.apply.orphaned_rows import COLUMNS, are_orphaned, deletes_of
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.decoded_batch import DecodedBatch, PreparedBatch, arrow_struct
from distributary.lake.table import LakeTable
from distributary.progress.record import Head, Progress
from distributary.progress.snapshots import is_countable


def find_orphaned_rows(lake: LakeTable, writer: BatchWriter, progress: Progress, snapshot_position: str) -> pa.Table:
    """The orphaned rows that a complete snapshot at this position shows: key columns, and
    apply.orphaned_rows.COLUMNS."""
    marks = [DELETED] if DELETED in writer.service_columns else []
    columns = [*progress.key, *COLUMNS, *marks]
    return writer.find(
        lake, progress.key, columns, lambda rows: are_orphaned(progress.connector, rows, snapshot_position)
    )


def prepare_removal(
    lake: LakeTable,
    writer: BatchWriter,
    head: Head,
    progress: Progress,
    snapshot_position: str,
    orphaned_rows: pa.Table,
) -> PreparedBatch:
    """Prepares the commit that deletes the orphaned rows, hard or soft like all deletes of the table."""
    columns = lake.columns()
    key = {name: columns[name] for name in progress.key}
    row = arrow_struct(columns)
    deletes = deletes_of(progress.connector, orphaned_rows, list(arrow_struct(key)), row, snapshot_position)
    nothing, partitions = deletes.slice(0, 0), len(progress.next) or 1
    topic, connector = progress.topic, progress.connector
    batch = DecodedBatch(topic, connector, columns, key, nothing, nothing, progress, partitions, replayed=deletes)
    return writer.prepare(lake, batch, head)


def commit_orphan_count(
    lake: LakeTable, writer: BatchWriter, head: Head | None, log: FilteringBoundLogger
) -> Head | None:
    """Commits the number of orphaned rows if they can be counted and were not yet; gives the table's newest commit."""
    progress = head.progress if head else None
    if head is None or progress is None or progress.snapshot is None or not is_countable(progress):
        return head
    orphan_count = find_orphaned_rows(lake, writer, progress, progress.snapshot.position).num_rows
    snapshot = progress.snapshot.model_copy(update={"orphaned_rows": orphan_count})
    head = lake.commit(head, progress.next_commit(snapshot=snapshot), lake.empty_commit())
    warn_of_orphaned_rows(head, log)
    return head


def warn_of_orphaned_rows(head: Head | None, log: FilteringBoundLogger) -> None:
    """Logs the number of orphaned rows and the command that removes them. `log` has the table's name as `table`."""
    progress = head.progress if head else None
    if progress is not None and progress.snapshot is not None and progress.snapshot.orphaned_rows:
        log.warning(
            "the table has rows that its last complete snapshot does not have",
            rows=progress.snapshot.orphaned_rows,
            fix="distributary resume -c FILE TABLE --reconcile removes them",
        )
