"""Batches of one table's topic: each is read, checked and committed together with the table's progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from distributary import failpoints
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.kafka_errors import check_none_gone
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.error_mapping import unexpected_in
from distributary.evolve.unknown_columns import CODE, FIX
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_size import sizer_of
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.decoded_batch import DecodedBatch, ReadBatch
from distributary.ingest.large_values import LargeValueStore
from distributary.ingest.raw_records import LocalRecords, RawSource
from distributary.ingest.rejection_limit import rejection_halt, too_many_rejected
from distributary.ingest.source_checks import before_going_back
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.task_records import TaskRecords
from distributary.lake.table import LakeTable
from distributary.observe.recorder import Stopwatch
from distributary.progress.advance import advanced
from distributary.progress.record import Head, Progress
from distributary.quarantine.redaction import redacted_columns
from distributary.rules.event import Pointer
from distributary.workers.batch_progress import (
    known_progress,
    progress_before,
    with_added,
    with_names,
    with_partition_change,
)
from distributary.workers.batch_ranges import BatchRanges
from distributary.workers.column_changes import ColumnChanges
from distributary.workers.context import WorkerContext
from distributary.workers.losses import warn_of_losses, warn_of_quarantined
from distributary.workers.quarantine_replay import replay_quarantine
from distributary.workers.reporting import record_batch, record_schema_change


class _Retry(NamedTuple):
    """How a batch has to be processed instead: only its beginning `batch`, or without the events at these places."""

    batch: OffsetRange
    contradicted: Collection[Pointer] = ()


class BatchProcessor:
    """Commits batches of one table's records, and moves its `cursor`. It remembers the schemas and sizes of earlier
    batches.

    `writer` writes the decoded batches. Every method that reads or writes raises TableHalt, TransientError and what
    Spark raises.
    """

    def __init__(
        self,
        context: WorkerContext,
        topic: str,
        settings: TableSettings,
        writer: BatchWriter,
        lake: LakeTable,
        cursor: TableCursor,
        name: str,
        log: FilteringBoundLogger,
    ) -> None:
        self._context = context
        self._topic = topic
        self._settings = settings
        self._writer = writer
        self._lake = lake
        self._cursor = cursor
        self._name = name
        self._log = log
        self._is_compacted = cache(partial(context.kafka.is_compacted, topic))
        source = context.config.source
        self._redacted_columns = redacted_columns(settings, source.connector_properties, source.connector)
        self._sizer = sizer_of(context.session, context.kafka, topic, context.config.trigger)
        self._source = RawSource(
            context.records,
            lake.session,
            lambda why: log.debug("where records are decoded", reason=why),
            lambda schema, topic, ahead: writer.task_writer(lake, schema, topic, ahead=ahead),
            context.ahead,
        )
        self._ranges = BatchRanges(self._sizer, self._source, cursor)
        self._reader = self._new_reader()
        self._columns = ColumnChanges(lake, cursor, settings, log)

    def reset_reader(self) -> None:
        """Forgets what was learnt of the table's records: the table was changed, or is to be filled in another way."""
        self.end_next()
        self._reader = self._new_reader()
        self._is_compacted.cache_clear()

    def reset_if_columns_changed(self, before: Head | None) -> None:
        """Reads the table's columns anew if somebody else has changed them since the commit `before`."""
        head, known = self._cursor.head, self._reader.columns
        if before is None or head is None or head.version == before.version or not known:
            return
        try:
            is_changed = self._lake.columns() != known
        except BaseException:  # the next step sees no newer commit: so it must read the columns
            self.reset_reader()
            raise
        if is_changed:
            self._log.info("another writer changed the table's columns")
            self.reset_reader()

    @property
    def warnings(self) -> tuple[Mapping[str, str], ...]:
        """Likely mistakes in the table's config, each with `code`, `message` and `fix`."""
        return tuple({"code": CODE, "message": str(unknown), "fix": FIX} for unknown in self._reader.sent.unknown)

    def next_range(self, target: Offsets) -> OffsetRange:
        """See BatchRanges.next."""
        return self._ranges.next(target)

    def end_next(self) -> None:
        """Ends the decoding of the next batch. To be called if no step follows at once."""
        self._source.end_next()

    def process(self, topic: Topic, batch: OffsetRange, target: Offsets, stopwatch: Stopwatch) -> None:
        """Commits a batch, or only its beginning: where the source went back, where the records' form changes, or half
        of it if it needs too many large values. Commits nothing if no record is left to make a table of. `target`:
        where the topic ended when the batch was planned. Raises TableHalt also after the commit, if more of the table's
        last records were bad than the config allows."""
        try:
            bad = self._process(topic, batch, target, stopwatch)
        except Exception as error:
            if (halt := unexpected_in(error, batch)) is not None:
                raise halt from error
            raise
        finally:
            self._source.end_used()
        if self._cursor.progress is None or self._cursor.progress.is_new:
            # No record is left up to `target`, and there is no table to note that in. So the table counts as having
            # reached it. With the next target the first offsets are asked for again, and the batch begins there.
            self._cursor.first = {**self._cursor.first, **target}
        if bad is not None:
            raise rejection_halt(bad)

    def _process(
        self,
        topic: Topic,
        batch: OffsetRange,
        target: Offsets,
        stopwatch: Stopwatch,
        contradicted: Collection[Pointer] = (),
    ) -> int | None:
        """As process; returns how many of the table's last records were bad, if more than allowed, else None.
        `contradicted`: the events at these places go to quarantine."""
        self._columns.commit_defaults()
        planned = batch
        if set_aside := self._context.set_aside_in(planned):
            with stopwatch.phase("quarantine"):
                self._context.quarantine_set_aside(set_aside, self._name, self._redacted_columns)
        before = self._cursor.progress
        with stopwatch.phase("check"):
            topic_format = self._reader.detect_format(topic, batch.start, known_progress(before))
        if topic_format is None:
            return None
        progress = progress_before(
            before, topic, topic_format, self._reader, self._settings, self._context.config.source.order_fields
        )
        with stopwatch.phase("read"):
            columns = self._reader.columns
            raw = self._source.of_range(batch, self._sizer.record_bytes, self._sizer.cut_of(batch))
            batch = raw.offset_range
            read = self._reader.read_and_change_table(raw, topic_format, progress, contradicted)
        progress = with_names(progress, self._reader)
        if read.altered:
            failpoints.passing("after-schema-change", self._name)
            record_schema_change(self._context.recorder, self._name, columns, self._reader.columns)
            self._columns.commit_defaults_after_change()
        if self._context.set_aside_in(planned) != set_aside:  # more of them were passed over than are in quarantine
            return self._process(topic, planned, target, stopwatch)
        progress = with_added(progress, self._cursor.progress, self._reader.added)
        if read.decoded.has_too_many_large_values and (half := self._sizer.half(batch)):
            return self._process(topic, half, target, stopwatch)
        same_form = self._reader.range_of_one_form(read.stats.other_form, topic, batch, progress)
        if same_form != batch:
            if not same_form:
                self.reset_reader()
            return self._process(topic, same_form or batch, target, stopwatch)
        reasons: Mapping[str, int] = {}
        if read.stats.bad:
            with stopwatch.phase("quarantine"):
                failpoints.passing("before-quarantine", self._name)
                rejected = read.decoded.rejected
                reasons = self._context.quarantine.add(self._name, raw.records_at, rejected, self._redacted_columns)
                check_none_gone(sum(reasons.values()), rejected.num_rows)
                failpoints.passing("after-quarantine", self._name)
        self._sizer.learn(read.stats)
        self._ranges.begin_after(raw, target, read.options, read.schema)
        with stopwatch.phase("write"):
            in_batch = sum(batch.has(record.partition, record.offset) for record in set_aside)
            done = self._commit(read, raw, progress, target, topic, in_batch)
        if isinstance(done, _Retry):
            return self._process(topic, done.batch, target, stopwatch, {*contradicted, *done.contradicted})
        bad, rows = done
        warn_of_quarantined(read.decoded.rejected, reasons, self._log)
        record_batch(
            self._context.recorder, self._name, self._cursor, self._writer, read.stats, stopwatch, reasons, rows
        )
        return bad

    def replay(self, topic: Topic) -> None:
        """Applies the table's records in quarantine again, those that can be applied by now."""
        try:
            self._columns.commit_defaults()
            replay_quarantine(
                self._context,
                topic,
                self._settings,
                self._lake,
                self._writer,
                self._reader,
                self._source,
                self._cursor,
                self._columns,
                self._log,
            )
        finally:
            self.reset_reader()  # they may have another form than those that come next

    def _new_reader(self) -> BatchReader:
        context = self._context
        return BatchReader(
            context.kafka,
            context.config.source,
            self._settings,
            self._lake,
            self._log,
            context.transactions,
            context.registry,
            lambda: context.announced_types(self._topic),
            ignored=lambda: {} if context.set_aside is None else context.set_aside.offsets(),
            large_values=LargeValueStore.of(context.config.large_messages),
        )

    def _commit(
        self,
        read: ReadBatch,
        raw: LocalRecords | TaskRecords,
        progress: Progress,
        target: Offsets,
        topic: Topic,
        set_aside: int,
    ) -> _Retry | tuple[int | None, Mapping[str, int]]:
        """Commits the decoded batch. Returns the result of _process() and the numbers of rows inserted, updated and
        deleted; or how the batch has to be processed instead. Commits nothing if no record has shown a column, so that
        there is no table: truncates without a schema. `set_aside`: records of the batch that were set aside by hand."""
        head = self._cursor.head
        if head is None:
            return None, {}
        stats, first, batch = read.stats, self._cursor.first, raw.offset_range
        truncated = stats.truncated if self._settings.truncate in ("apply", "soft") else None
        after = advanced(progress, stats, batch.end, truncated, first, lambda: self._context.kafka.latest(topic))
        after = with_partition_change(after, progress, lambda: self._context.kafka.latest(topic))
        decoded = DecodedBatch.of(
            read.decoded,
            progress,
            self._reader.columns,
            len(after.next),
            first=known_progress(head.progress) is None,
            compacted=stats.records < batch.records and self._is_compacted(),
            partition_change_read=progress.growth is not None and after.growth is None,
            caught_up=all(after.next.get(p, first.get(p, 0)) >= end for p, end in target.items()),
            written=raw.written,
        )
        ready = self._writer.prepare(self._lake, decoded, head)
        if ready.contradicted:
            return _Retry(batch, ready.contradicted)
        if ready.went_back:
            return _Retry(before_going_back(batch, ready.went_back, progress.connector, self._settings))
        recent, bad = too_many_rejected(after.recent, self._context.config.quarantine.max_ratio)
        changed = {"ambiguous_deletes": after.ambiguous_deletes + ready.ambiguous, "recent": recent}
        after = after.model_copy(update={**changed, "quarantined": after.quarantined + set_aside})
        failpoints.passing("before-commit", self._name)
        self._cursor.head = head = self._lake.commit(head, after, ready.write)
        failpoints.passing("after-commit", self._name)
        self._log.info(
            "committed",
            version=head.version,
            records=stats.records,
            applied=stats.applied,
            quarantined=stats.bad + set_aside,
            next=dict(after.next),
        )
        warn_of_losses(ready, self._log)
        return bad, ready.rows
