"""Batches of one table's topic: each is read, checked and committed together with the table's progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from structlog.typing import FilteringBoundLogger

from distributary import failpoints
from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.decode.decoder import Decoded
from distributary.decode.source_order import order_of
from distributary.delta.commit import concurrent_change
from distributary.evolve.diff import check_key
from distributary.evolve.order import check_order
from distributary.evolve.unknown_columns import CODE, FIX
from distributary.ingest.batch import Batch
from distributary.ingest.batch_reader import BatchReader, Read
from distributary.ingest.batch_size import BatchSizer, batch_bytes
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.column_fill import fill_added
from distributary.ingest.preconditions import too_many_bad
from distributary.ingest.raw_records import RawSource
from distributary.ingest.replay import replayed
from distributary.ingest.source_checks import before_going_back, check_truncates
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.topic_format import TopicFormat
from distributary.lake.table import LakeTable
from distributary.observe.recorder import Stopwatch
from distributary.observe.table_details import SchemaChange
from distributary.progress.advance import advanced
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Head, Progress, first_progress
from distributary.quarantine.redaction import with_withheld, withheld_columns
from distributary.quarantine.set_aside import REASON, RecordPlace, put_aside
from distributary.workers.context import WorkerContext
from distributary.workers.reporting import record_batch


class BatchProcessor:
    """Commits batches of one table's records, and moves its `place`. It keeps what the batches before were like.

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
        self._compacted: bool | None = None
        self._portion = BatchSizer(
            context.broker, topic, context.config.trigger.max_records, batch_bytes(context.session)
        )
        self._source = RawSource(
            context.records, lake.session, lambda why: log.debug("where records are decoded", reason=why)
        )
        self._reader = self._new_reader()

    def look_anew(self) -> None:
        """The table is not as it was, or is to be filled otherwise: what was learnt of its records is learnt anew."""
        self._reader = self._new_reader()
        self._compacted = None

    @property
    def warnings(self) -> tuple[Mapping[str, str], ...]:
        """Likely mistakes in the table's config, each with `code`, `message` and `fix`."""
        return tuple({"code": CODE, "message": str(one), "fix": FIX} for one in self._reader.sent.unknown)

    def next(self, taken: Mapping[int, int], goal: Mapping[int, int]) -> OffsetRange:
        """What to take next on the way from `taken` to `goal`."""
        return self._portion.next(taken, goal)

    def take(self, topic: Topic, part: OffsetRange, goal: Offsets, stopwatch: Stopwatch) -> int | None:
        """Commits a batch, or its beginning where the source went back in its middle; nothing where no record is left
        to make a table of. `goal`: where the topic ended when the batch was planned. Gives how many of the table's last
        records were bad, where that is more than the config allows."""
        self._fill_added(self._cursor.head)
        if aside := self._set_aside(part):
            context, withheld = self._context, withheld_columns(self._settings)
            with stopwatch.phase("quarantine"):
                put_aside(aside, self._name, self._lake.session, context.records, context.quarantine, withheld)
        before = self._cursor.progress
        with stopwatch.phase("look"):
            topic_format = self._reader.detect_format(topic, part.start, _filled(before))
        if topic_format is None:
            return None
        progress = self._going_on(before, topic_format, topic)
        with stopwatch.phase("read"):
            columns = self._reader.columns
            raw = self._source.of_range(part, self._portion.record_bytes)
            came = self._reader.read(raw, topic_format, progress)
        progress = self._with_names(progress)
        if came.altered:
            failpoints.passing("after-schema-change", self._name)
            change = SchemaChange.between(columns, self._reader.columns, datetime.now(timezone.utc).timestamp())
            self._context.recorder.schema_changed(self._name, change)
            self._look_after_change()
        progress = self._with_added(progress)
        check_truncates(came.found, progress, self._settings, part.topic)
        fit = self._of_one_form(came.found, topic, part, progress)
        if fit != part:
            if not fit:
                self.look_anew()
            return self.take(topic, fit or part, goal, stopwatch)
        reasons: Mapping[str, int] = {}
        if came.found.bad:
            with stopwatch.phase("quarantine"):
                failpoints.passing("before-quarantine", self._name)
                withheld = withheld_columns(self._settings)
                reasons = self._context.quarantine.add(self._name, raw.frame, came.decoded.rejected, withheld)
                failpoints.passing("after-quarantine", self._name)
        with stopwatch.phase("write"):
            done = self._commit(came, progress, part, goal, topic)
        if isinstance(done, OffsetRange):
            return self.take(topic, done, goal, stopwatch)
        bad, rows = done
        self._portion.took(came.found)
        record_batch(
            self._context.recorder, self._name, self._cursor, self._writer, came.found, stopwatch, reasons, rows
        )
        return bad

    def _set_aside(self, part: OffsetRange) -> Mapping[RecordPlace, str]:
        return {} if self._context.set_aside is None else self._context.set_aside.within(part)

    def replay(self, topic: Topic) -> None:
        """Applies the table's records in quarantine again, those that can be applied by now."""
        try:
            self._replay(topic)
        finally:
            self.look_anew()  # they may have another form than those that come next

    def _replay(self, topic: Topic) -> None:
        self._fill_added(self._cursor.head)
        progress, head, first = self._cursor.progress, self._cursor.head, self._cursor.first
        raw = self._context.quarantine.waiting(self._lake.session, self._topic, but=REASON)
        if raw is None or progress is None or head is None:
            return
        end = self._context.broker.latest(topic)
        if end == first:
            self._log.warning("records in quarantine wait until the topic has one that tells its format")
            return
        waiting = with_withheld(raw, self._lake.session, self._topic, first, end, self._context.records)
        topic_format = self._reader.detect_format(topic, first, progress)
        if topic_format is None:
            return
        came = self._reader.read(self._source.of_frame(waiting), topic_format, progress)
        if came.altered:
            self._look_after_change()
            head = self._cursor.head or head
        progress = self._with_added(self._with_names(progress))
        again = replayed(came.decoded, came.found, progress, truncates=self._truncates())
        self._log.warning("records in quarantine are applied again", **again.told)
        if not again.events.num_rows:
            return
        nothing = replace(came.decoded, events=again.events.slice(0, 0), rejected=came.decoded.rejected.slice(0, 0))
        ready = self._writer.prepare(self._lake, self._batch(nothing, progress, progress.next, again.events), head)
        assert not ready.went_back  # what is applied again has no part in that
        self._cursor.head = self._lake.commit(head, again.after, ready.write)
        self._context.quarantine.applied(self._topic, again.events)

    def _new_reader(self) -> BatchReader:
        context = self._context
        return BatchReader(
            context.broker,
            context.config.source,
            self._settings,
            self._lake,
            self._writer,
            self._log,
            context.transactions,
            context.registry,
            lambda: context.told(self._topic),
            ignored=lambda: {} if context.set_aside is None else context.set_aside.places(),
        )

    def _going_on(self, before: Progress | None, topic_format: TopicFormat, topic: Topic) -> Progress:
        """The table's record as the batch finds it, with the form that its rows have now; where nothing was applied
        yet, it begins with the format of the topic. Raises TableHalt where the topic has another key."""
        key = self._reader.sent.renames.all_of(topic_format.key or self._settings.key)
        progress = _filled(before) or first_progress(
            self._topic, topic.topic_id, topic_format.order, self._settings.mode, key
        )
        order = order_of(progress.connector, self._context.config.source.order_fields)
        if _filled(before) is not None:
            check_order(progress.order, order)
        changed: dict[str, object] = {"order": order or None}
        if before is not None:
            changed["sequence"] = before.sequence
        if not progress.key:
            changed["key"] = key
        changed["unwrapped"] = topic_format.unwrapped is not None
        changed["marks_deleted"] = self._settings.marks_deleted
        changed["timestamps"] = None if self._settings.timestamps == "ntz" else self._settings.timestamps
        changed["transactions"] = self._settings.has_transactions or None
        check_key(progress.key or key, key)
        return progress.model_copy(update=changed)

    def _with_names(self, progress: Progress) -> Progress:
        """The record with what the reader has learnt of its source table and of its columns: how they are called, and
        masked."""
        renamed = {**(progress.renames or {}), **self._reader.sent.renamed} or None
        masked = self._reader.sent.marks or None
        table = self._reader.source_table
        if (renamed, masked, table) == (progress.renames, progress.masks, progress.source_table):
            return progress
        return progress.model_copy(update={"renames": renamed, "masks": masked, "source_table": table})

    def _fill_added(self, head: Head | None) -> None:
        """Moves the table's place to where it is when older rows have the defaults of new columns."""
        self._cursor.head = fill_added(self._lake, head, self._settings, self._log)

    def _look_after_change(self) -> None:
        """Moves the table's place to where it is after its columns were changed. Raises TransientError if another
        driver has applied records meanwhile: the batch would be applied to another state than it was read for."""
        before, head = self._cursor.head, self._lake.head(self._cursor.head)
        if _state_of(before) != _state_of(head):
            raise concurrent_change(self._lake.path, -1 if before is None else before.version)
        self._fill_added(head)

    def _with_added(self, progress: Progress) -> Progress:
        """The record with the columns that the table got for this batch, by commits of their own."""
        now = _filled(self._cursor.progress)
        if now is None:
            return progress.model_copy(update={"added": self._reader.added or None})
        return progress.model_copy(update={"commit": now.commit, "sequence": now.sequence, "added": now.added})

    def _of_one_form(self, found: BatchStats, topic: Topic, part: OffsetRange, progress: Progress) -> OffsetRange:
        """What of the batch comes before the connector's transforms were changed so that its records got or lost their
        envelope: all of it, where they were not. Looks at the topic only where records have not the others' form."""
        first = found.other_form
        if not first or not self._reader.has_other_form(topic, first, progress):
            return part
        ends = {p: end for p, end in {**part.end, **first}.items() if end > part.start[p]}
        return OffsetRange(part.topic, {p: part.start[p] for p in ends}, ends)

    def _commit(
        self, came: Read, progress: Progress, part: OffsetRange, goal: Offsets, topic: Topic
    ) -> OffsetRange | tuple[int | None, Mapping[str, int]]:
        """Commits the decoded batch; gives what take() gives and how many rows were inserted, updated and deleted, or
        what of the batch is to be taken before. Nothing is committed where no record told a column, so that there is
        no table: truncates without a schema."""
        head = self._cursor.head
        if head is None:
            return None, {}
        found, first = came.found, self._cursor.first
        truncated = found.truncated if self._truncates() else None
        after = advanced(progress, found, part.end, truncated, first, lambda: self._context.broker.latest(topic))
        after = self._grown(after, progress, topic)
        batch = self._batch(
            came.decoded,
            progress,
            after.next,
            None,
            first=_filled(head.progress) is None,
            has_gaps=found.records < part.records,
        )
        if progress.growth is not None and after.growth is None:
            batch = replace(batch, growth_over=True)
        if all(after.next.get(p, first.get(p, 0)) >= end for p, end in goal.items()):
            batch = replace(batch, caught_up=True)
        ready = self._writer.prepare(self._lake, batch, head)
        if ready.went_back:
            return before_going_back(part, ready.went_back, progress.connector, self._settings)
        recent, bad = too_many_bad(after.recent, self._context.config.quarantine.max_ratio)
        aside = len(self._set_aside(part))
        changed = {"undecided": after.undecided + ready.ambiguous, "recent": recent}
        after = after.model_copy(update={**changed, "quarantined": after.quarantined + aside})
        failpoints.passing("before-commit", self._name)
        self._cursor.head = head = self._lake.commit(head, after, ready.write)
        failpoints.passing("after-commit", self._name)
        self._log.info(
            "committed",
            version=head.version,
            records=found.records,
            applied=found.applied,
            quarantined=found.bad + aside,
            next=dict(after.next),
        )
        return bad, ready.rows

    def _grown(self, after: Progress, before: Progress, topic: Topic) -> Progress:
        """The record with where all partitions end now, as long as records may be unread that were sent before the
        topic got more of them: until then a key may be in two partitions."""
        growth = after.growth
        if before.next and len(after.next) > len(before.next):
            growth = self._context.broker.latest(topic)
        if growth is not None and all(after.next.get(p, 0) >= end for p, end in growth.items()):
            growth = None
        return after.model_copy(update={"growth": growth})

    def _batch(
        self,
        decoded: Decoded,
        progress: Progress,
        next_: Mapping[int, int],
        replayed: pa.Table | None,
        *,
        first: bool = False,
        has_gaps: bool = False,
    ) -> Batch:
        columns = self._reader.columns
        return Batch(
            topic=self._topic,
            connector=progress.connector,
            columns=columns,
            key={name: columns[name] for name in progress.key},
            events=decoded.events,
            rejected=decoded.rejected,
            before=None if first else progress,
            partitions=len(next_) or 1,
            compacted=has_gaps and self._is_compacted(),
            unwrapped=bool(progress.unwrapped),
            replayed=replayed,
        )

    def _is_compacted(self) -> bool:
        """Whether Kafka keeps only the last record of each key; not, where it may not be asked."""
        if self._compacted is None:
            settings = self._context.broker.settings([self._topic]).get(self._topic, {})
            self._compacted = "compact" in settings.get("cleanup.policy", "")
        return self._compacted

    def _truncates(self) -> bool:
        return self._settings.truncate in ("apply", "soft")


def _filled(progress: Progress | None) -> Progress | None:
    """The table's record, unless the table is to be filled from the beginning."""
    return None if progress is None or progress.is_new else progress


def _state_of(head: Head | None) -> dict[str, Any] | None:
    """What the table's record says of applied records."""
    progress = None if head is None else _filled(head.progress)
    return None if progress is None else progress.model_dump(exclude={"commit", "sequence", "added"})
