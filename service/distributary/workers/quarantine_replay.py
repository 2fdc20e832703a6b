"""Applies a table's records in quarantine again: those that can be applied by now, in one commit."""

from __future__ import annotations

from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.decoded_batch import DecodedBatch
from distributary.ingest.raw_records import RawSource
from distributary.ingest.replay import plan_replay
from distributary.ingest.table_cursor import TableCursor
from distributary.lake.table import LakeTable
from distributary.quarantine.redaction import with_original_bytes
from distributary.quarantine.set_aside import NEVER_REPLAYED
from distributary.workers.batch_progress import with_added, with_names
from distributary.workers.column_changes import ColumnChanges
from distributary.workers.context import WorkerContext


def replay_quarantine(
    context: WorkerContext,
    topic: Topic,
    settings: TableSettings,
    lake: LakeTable,
    writer: BatchWriter,
    reader: BatchReader,
    source: RawSource,
    cursor: TableCursor,
    columns: ColumnChanges,
    log: FilteringBoundLogger,
) -> None:
    """Applies the records of `topic` in quarantine, except those that are never replayed, and moves `cursor`. Those
    that still can't be applied stay. Raises TableHalt, TransientError and what Spark raises."""
    progress, head, first = cursor.progress, cursor.head, cursor.first
    raw = context.quarantine.waiting(lake.session, topic.name, but=NEVER_REPLAYED)
    if raw is None or progress is None or head is None:
        return
    end = context.kafka.latest(topic)
    if end == first:
        log.warning("records in quarantine wait until a record of the topic shows its format")
        return
    waiting = with_original_bytes(raw, lake.session, topic.name, first, end, context.records)
    topic_format = reader.detect_format(topic, first, progress)
    if topic_format is None:
        return
    read = reader.read_and_change_table(source.of_frame(waiting), topic_format, progress)
    if read.altered:
        columns.commit_defaults_after_change()
        head = cursor.head or head
    progress = with_added(with_names(progress, reader), cursor.progress, reader.added)
    again = plan_replay(read.decoded, read.stats, progress, truncates=settings.truncate in ("apply", "soft"))
    log.warning("records in quarantine are applied again", **again.counts)
    if not again.events.num_rows:
        return
    nothing = replace(read.decoded, events=again.events.slice(0, 0), rejected=read.decoded.rejected.slice(0, 0))
    batch = DecodedBatch.of(nothing, progress, reader.columns, len(progress.next), replayed=again.events)
    ready = writer.prepare(lake, batch, head)
    assert not ready.went_back  # replayed records do not count for this check
    cursor.head = lake.commit(head, again.after, ready.write)
    context.quarantine.mark_applied(topic.name, again.events)
