"""The worker of one table: processes batches of its topic, one after the other, until the table is at its target."""

from __future__ import annotations

import threading

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.offsets import Offsets
from distributary.consume.topics import TableId
from distributary.errors import TableHalt
from distributary.halt_actions import PAUSED_IN_CONFIG, ResumeAction
from distributary.ingest.keyless import settings_after_halt, settings_of_filled
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.tables import maintenance_path
from distributary.lake.optimize import Compacted
from distributary.logs import get_logger
from distributary.maintain.garbage import GARBAGE
from distributary.maintain.schedule import Due, MaintenanceSchedule, Task
from distributary.observe.recorder import Stopwatch
from distributary.progress.record import Head, Progress
from distributary.storage.json_file import JsonFile
from distributary.table_state import TableState
from distributary.workers.context import WorkerContext
from distributary.workers.orphaned_rows import commit_orphan_count, warn_of_orphaned_rows
from distributary.workers.reporting import report_state
from distributary.workers.table_parts import TableParts
from distributary.workers.target import Target


class TableWorker:
    """The one writer of a table.

    It continues from the table's own progress record, never from the stream's checkpoint. Records that were applied are
    skipped, missing ones are read, in batches of at most `trigger.max_records` (see ingest/batch_size.py for bytes).
    `context` are the parts that all workers of the process share, `settings` those of the config for the table.
    """

    def __init__(
        self,
        context: WorkerContext,
        table: TableId,
        topic: str,
        settings: TableSettings,
        path: str,
        name: str | None = None,
    ) -> None:
        self.table = table
        self.name = name or str(table)
        """Its name in logs and status."""
        self.topic = topic
        self._target = Target()
        self.failed_tries = 0
        """Tries in a row that failed; an error that does not pass counts as a whole round of them (scheduler.py)."""
        self.failing = False
        """Whether the last try of a step failed and is tried again: the status shows that until a step succeeds."""
        self.halted: TableHalt | None = None
        self.turn_lock = threading.Lock()
        """Held while a thread works on the table: a step, maintenance, an operator's action."""
        self.context, self.settings, self._path = context, settings, path
        self.cursor = TableCursor()
        """The newest commit, as last seen, and the first offset that Kafka had of each partition."""
        self._started = False
        self._log = get_logger(__name__).bind(table=self.name, topic=topic)
        self._use_settings(settings)
        self.resume_action: ResumeAction | None = None
        """The action that an operator or a new `mode` requested, until a step has applied it."""
        self._recheck_due = True
        self._shown_pause: str | None = None  # why, while the status shows the table as paused
        json_file = JsonFile(context.session, maintenance_path(context.config, table))
        self.schedule = MaintenanceSchedule(settings.maintenance, json_file)

    def _use_settings(self, settings: TableSettings) -> None:
        """Makes the parts of the table anew, from these settings."""
        self._parts = TableParts.make(
            self.context, settings, self.table, self.topic, self._path, self.name, self.cursor, self._log
        )
        self.lake = self._parts.lake

    @property
    def target_offsets(self) -> Offsets:
        """The offset per partition that the table is to reach."""
        return self._target.offsets

    @property
    def next_offsets(self) -> Offsets:
        """Per partition the first offset that the table has not applied."""
        return self.cursor.next_offsets

    @property
    def progress(self) -> Progress | None:
        """The table's progress record, as last seen."""
        return self.cursor.progress

    @property
    def head(self) -> Head | None:
        """The newest commit, as last seen; None before the table exists."""
        return self.cursor.head

    def lag(self) -> int:
        """How many offsets lie between the table and its target."""
        return self._target.lag(self.next_offsets, self.cursor.first)

    def resume(self, action: ResumeAction) -> None:
        """Ends a halt by an operator's action; the next step applies it."""
        self.failing = self.failing and self.halted is None
        self.halted, self.failed_tries, self.resume_action = None, 0, action

    @property
    def paused(self) -> str | None:
        """Why the table is paused; None if it is not."""
        return PAUSED_IN_CONFIG if self._parts.settings.paused else self.context.pause_reason(self.topic)

    def has_to_step(self) -> bool:
        """Whether step() has anything to do."""
        if self.halted is not None:
            return False
        if self.paused is not None:
            return self._shown_pause != self.paused or self.failing
        recheck = self._recheck_due and self._started
        was_paused = self._shown_pause is not None
        return self.lag() > 0 or self.resume_action is not None or recheck or self.failing or was_paused

    def start(self) -> None:
        """Reads the table's progress record, and shows it in the status."""
        self.cursor.head = self.lake.head()
        self._use_mode_of(settings_of_filled(self._parts.settings, self.progress))
        self.schedule.start()
        self._started = True
        self.context.recorder.add_table(self.name)
        if not self.failing:
            self._report(TableState.STARTING)
        warn_of_orphaned_rows(self.cursor.head, self._log)

    def set_target(self, end: Offsets) -> None:
        """Moves the target on to the end of a planned batch. A topic that ends before its earlier end may have been
        created again: the next step checks it."""
        if self._target.advance(end):
            self.request_recheck()
        if self._started:  # until then the status would show a lag from 0
            self.context.status.update(self.name, target_offsets={self.topic: dict(self.target_offsets)})

    def end_next(self) -> None:
        """Ends what was begun for the next step. To be called if that does not follow at once."""
        self._parts.processor.end_next()

    def request_recheck(self) -> None:
        """Has the next step check the topic, even if there is no record to process."""
        self._recheck_due = True

    @GARBAGE.after()
    def step(self) -> None:
        """Processes one batch on the way to the target; none while the table is paused. Raises TableHalt,
        TransientError and what Spark raises."""
        paused = self.paused
        if paused is not None:
            self._show_pause(paused)
            return
        self._shown_pause = None
        stopwatch = Stopwatch()
        with stopwatch.phase("check"):
            if not self._started:
                self.start()
            self._refresh_cursor()
            # The target is read before the topic: so added partitions are noticed before their records.
            planned = self.target_offsets
            topic = self._prepare_topic()
            self._parts.layout_sync.ensure()
        if self.resume_action is ResumeAction.REPLAY:
            self.cursor.head = self.lake.commit_record_if_old(self.cursor.head)  # columns may be added for it
            self._parts.processor.replay(topic)
            self.resume_action = None
        target = self._target.within(planned)
        batch = self._parts.processor.next_range(target)
        if batch:
            if not self.failing:
                self._report(TableState.BEHIND if self.lag() > 2 * batch.records else TableState.UP_TO_DATE)
            # A commit that only adds columns may come before the batch's, and has no progress record of its own.
            self.cursor.head = self.lake.commit_record_if_old(self.cursor.head)
            try:
                self._parts.processor.process(topic, batch, dict(target), stopwatch)
            except TableHalt as halt:
                if not self._use_mode_of(settings_after_halt(self._parts.settings, halt, self.progress)):
                    raise
                return  # the next step processes the batch
            self._parts.write_log_checkpoint_if_due()
        if (entered := self._parts.register_in_catalog()) is not None:
            self.context.status.update(self.name, catalog_name=entered)
        self.cursor.head = commit_orphan_count(self.lake, self._parts.writer, self.cursor.head, self._log)
        self.failing = False
        self._report(TableState.UP_TO_DATE)

    def _use_mode_of(self, settings: TableSettings) -> bool:
        """Uses these settings if they have another mode; returns whether they have. The table has applied only
        truncates so far; these are applied again."""
        if settings.mode == self._parts.settings.mode:
            return False
        self._log.info("the records have no key: each change is kept as a row", keyless=settings.keyless)
        self.end_next()
        self._use_settings(settings)
        if self.progress is not None and self.progress.mode != settings.mode:
            self.resume_action = ResumeAction.REBUILD
        return True

    def _show_pause(self, why: str) -> None:
        """Shows in the status that the table is paused, and its progress."""
        if not self._started:
            self.start()
        self.failing, self._shown_pause = False, why
        self._report(TableState.PAUSED)
        self._log.info("table is paused", reason=why)

    def due(self) -> Due | None:
        """The maintenance that the table's files need; None while it is halted or paused."""
        head = self.cursor.head
        if head is None or head.progress is None or self.halted is not None or self.paused is not None:
            return None
        view = self._parts.writer.view()
        needs_compaction = view is not None and view.snapshot.needs_compaction
        return self.schedule.due(head.version, head.at, needs_compaction=needs_compaction)

    @GARBAGE.after()
    def maintain(self, task: Task) -> Compacted | None:
        """Maintains the table's files, in place of a batch. Raises TableHalt, TransientError and what Spark raises;
        after any of them the table's rows are unchanged."""
        self.end_next()  # VACUUM may delete its files, and compaction needs the memory
        self._refresh_cursor()
        if self.progress is None:
            return None
        done = self._parts.maintenance.do(task)
        if not self._parts.maintenance.has_more:
            self.schedule.done(task, self.cursor.head.version if self.cursor.head else 0)
        self.context.status.update(self.name, **self.schedule.last_done())
        return done

    def _refresh_cursor(self) -> None:
        """Reads the newest commit: another driver may have continued the table, or somebody restored or deleted it."""
        before, known = self.next_offsets, self.cursor.head
        if not self.cursor.move_to(self.lake.head(known), self.context.is_lake_there):
            self._parts.processor.reset_if_columns_changed(known)
            return
        self._parts.processor.reset_reader()
        now = self.next_offsets
        if any(now.get(p, 0) < offset for p, offset in before.items()):
            message = "the table is at an older version than before: it continues from there"
            self._log.warning(message, next=now, was=before)

    def _prepare_topic(self) -> Topic:
        """The topic, if all checks pass. Commits the requested resume action, and lost ends of the topic."""
        recheck, self._recheck_due = self._recheck_due, False
        try:
            topic = self._parts.topic_check.find()
            # A partition that was never read starts at the first record that Kafka has.
            self.cursor.first = self.context.kafka.earliest(topic)
            self._apply_resume_action(topic)
            self._parts.topic_check.check(topic)
            if recheck:
                self._check_topic_end(topic)
        except Exception:
            self._recheck_due = self._recheck_due or recheck
            raise
        return topic

    def _apply_resume_action(self, topic: Topic) -> None:
        """Applies the action that an operator requested, in a separate commit."""
        action = self.resume_action
        if action is None:
            return
        if self.context.set_aside is not None:
            self.context.set_aside.read()  # records may have been set aside just before the request
        if self.progress is not None:
            end = self._parts.topic_check.commit_action(action, topic)
            if end is not None:
                self._target.restart(end)
            self._parts.processor.reset_reader()
            if action is ResumeAction.REPLAY:
                return  # step() replays after the checks, and may have to try again
        self.resume_action = None

    def _check_topic_end(self, topic: Topic) -> None:
        """Limits the target to the topic's end, and halts the table if the topic ends before what was applied."""
        before = self.target_offsets
        end = self.context.kafka.latest(topic)
        self._target.limit(end, before)
        self._parts.topic_check.commit_lost_ends(topic, end)

    def _report(self, state: TableState) -> None:
        self.context.report_offsets(self.topic, self.next_offsets)
        report_state(
            self.context.status,
            self.name,
            state,
            self.topic,
            self.cursor,
            self.target_offsets,
            self._parts.settings,
            paused=self._shown_pause,
            warnings=self._parts.processor.warnings,
            maintained=self.schedule.last_done(),
        )
