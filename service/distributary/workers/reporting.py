"""Reports of a table's worker to status and metrics: the table's state, and each committed batch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache, partial

from distributary.config.table import TableSettings
from distributary.consume.offsets import Offsets
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.table_cursor import TableCursor
from distributary.observe.recorder import Recorder, Stopwatch
from distributary.observe.stages import stages_of
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import SchemaChange, stored_table
from distributary.observe.table_status import Batch
from distributary.progress.batch_stats import BatchStats
from distributary.table_state import TableState


def report_state(
    status: ServiceStatus,
    name: str,
    state: TableState,
    topic: str,
    cursor: TableCursor,
    target: Offsets,
    settings: TableSettings,
    *,
    paused: str | None,
    warnings: tuple[Mapping[str, str], ...],
    maintained: Mapping[str, float | None],
) -> None:
    """Shows the table's state and the fields of its progress record; ends the error that was shown.

    `paused`: why it is paused, else None; `warnings`: likely mistakes in its config; `maintained`: when its files were
    maintained last, by field of TableStatus.
    """
    progress, head = cursor.progress, cursor.head
    if head is not None and head.at is not None:
        status.update(name, last_commit_at=head.at)
    status.update(
        name,
        topics=(topic,),
        state=state,
        position=progress.position if progress else None,
        next_offsets={topic: cursor.from_offsets},
        target_offsets={topic: dict(target)},
        records_applied=progress.records if progress else 0,
        quarantined=progress.quarantined if progress else 0,
        ambiguous_deletes=progress.ambiguous_deletes if progress else 0,
        source_ts=progress.source_ts_ms if progress else None,
        orphaned_rows=progress.snapshot.orphaned_rows if progress and progress.snapshot else None,
        layout=removal_layout(settings).value,
        remembered_keys=progress.remembered_keys if progress else None,
        memory_bytes=progress.memory_bytes if progress else None,
        error=None,
        paused=paused,
        warnings=warnings,
        **maintained,
    )


def record_schema_change(recorder: Recorder, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Records that the table has other columns now; `before` and `after`: name to Spark type."""
    recorder.schema_changed(name, SchemaChange.between(before, after, datetime.now(timezone.utc).timestamp()))


def record_batch(
    recorder: Recorder,
    name: str,
    cursor: TableCursor,
    writer: BatchWriter,
    stats: BatchStats,
    stopwatch: Stopwatch,
    reasons: Mapping[str, int],
    rows: Mapping[str, int],
) -> None:
    """Records a batch that was committed: `stats` in its records, `reasons` of those put into quarantine by number,
    `rows` inserted, updated and deleted."""
    head, view = cursor.head, writer.view()
    since = stats.newest_ts_ms if stats.oldest_change is None else stats.oldest_change.source_ms
    at = head.at if head is not None and head.at is not None else datetime.now(timezone.utc).timestamp()
    recorder.committed(
        name,
        Batch(at, stats.records, stats.applied, stats.bad, round(stopwatch.seconds, 3)),
        freshness_seconds=None if since is None else max(0.0, round(at - since / 1000, 3)),
        phases=stopwatch.phases,
        operations=stats.operations,
        merged=rows,
        reasons=reasons,
        version=None if head is None else head.version,
        stored=None if view is None else cache(partial(stored_table, view, writer.service_columns)),
        stages=stages_of(stats.oldest_change, at),
    )
