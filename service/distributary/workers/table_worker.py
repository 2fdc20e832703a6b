"""One table at work: takes batches of its topic, one after the other, until it is where the stream is."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.consume.offsets import Offsets
from distributary.consume.topics import TableId
from distributary.errors import TableHalt
from distributary.halt_actions import PAUSED_IN_CONFIG, ResumeAction
from distributary.ingest.keyless import as_halt_tells, as_kept
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.tables import maintenance_path
from distributary.lake.optimize import Compacted
from distributary.logs import get_logger
from distributary.maintain.garbage import GARBAGE
from distributary.maintain.schedule import Due, MaintenanceSchedule, Task
from distributary.observe.recorder import Stopwatch
from distributary.observe.table_status import TableState
from distributary.progress.record import Head, Progress
from distributary.storage.json_file import JsonFile
from distributary.workers import stale_rows
from distributary.workers.context import WorkerContext
from distributary.workers.reporting import report_state
from distributary.workers.table_parts import TableParts
from distributary.workers.target import Target

_log = get_logger(__name__)


class TableWorker:
    """The one writer of a table.

    It continues from the table's own progress record, never from the stream's checkpoint: what was applied already is
    skipped, what is missing is read, in batches of at most `trigger.max_records` (see ingest/batch_size.py for bytes).
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
        """What logs and status call it."""
        self.topic = topic
        self._target = Target()
        self.faults = 0
        self.failing = False
        """Whether the last try of a step failed in a way that may pass: what was told of it stays until one ends."""
        self.halted: TableHalt | None = None
        self.running = threading.Lock()
        self._context = context
        self.settings = settings
        """What the config says of the table."""
        self._path = path
        self._cursor = TableCursor()
        self._started = False
        self._bound = _log.bind(table=self.name, topic=topic)
        self._keep_by(settings)
        self.asked: ResumeAction | None = None
        """What an operator asks for, until a step has done it."""
        self._doubtful = True
        self._resting: str | None = None  # why, from when the table shows that it is paused
        note = JsonFile(context.session, maintenance_path(context.config, table))
        self.upkeep = MaintenanceSchedule(settings.maintenance, note)

    def _keep_by(self, settings: TableSettings) -> None:
        """From now on these settings count for the table."""
        self._parts = TableParts.make(
            self._context, settings, self.table, self.topic, self._path, self.name, self._cursor, self._bound
        )
        self._lake = self._parts.lake

    @property
    def goal(self) -> Offsets:
        """The offset per partition that the table is to reach."""
        return self._target.offsets

    @property
    def taken(self) -> Offsets:
        """The next offset per partition."""
        return self._cursor.taken

    @property
    def progress(self) -> Progress | None:
        """The table's own record, as last seen."""
        return self._cursor.progress

    @property
    def head(self) -> Head | None:
        """Where the table's log was, as last seen; None before it was made."""
        return self._cursor.head

    @property
    def first(self) -> Mapping[int, int]:
        """The first offset that Kafka had of each partition, as last seen."""
        return self._cursor.first

    def lag(self) -> int:
        """How many offsets lie between the table and its goal."""
        return self._target.lag(self.taken, self._cursor.first)

    def resume(self, accept: ResumeAction) -> None:
        """The table goes on, as an operator wants it to."""
        self.failing = self.failing and self.halted is None
        self.halted, self.faults, self.asked = None, 0, accept

    @property
    def paused(self) -> str | None:
        """Why the table takes nothing in for now; None where it does."""
        return PAUSED_IN_CONFIG if self._parts.settings.paused else self._context.paused(self.topic)

    def has_to_step(self) -> bool:
        """Whether there is anything to be done."""
        if self.halted is not None:
            return False
        if self.paused is not None:
            return self._resting != self.paused or self.failing
        doubtful = self._doubtful and self._started
        rested = self._resting is not None
        return self.lag() > 0 or self.asked is not None or doubtful or self.failing or rested

    def start(self) -> None:
        """Reads where the table is."""
        self._cursor.head = self._lake.head()
        self._keep_changes(as_kept(self._parts.settings, self.progress))
        self.upkeep.start()
        self._started = True
        self._context.recorder.found(self.name)
        if not self.failing:
            self._report(TableState.STARTING)
        stale_rows.warn(self._cursor.head, self._bound)

    def set_target(self, end: Offsets) -> None:
        """Sets the goal further, to the end of a batch of the stream. A topic that ends before its earlier end is
        perhaps another one: the next step looks."""
        if self._target.advance(end):
            self.request_recheck()
        if self._started:  # before, it is not known what the table has
            self._context.status.update(self.name, goal_offsets={self.topic: dict(self.goal)})

    def request_recheck(self) -> None:
        """Has the next step look at the topic, whether or not there is anything to take."""
        self._doubtful = True

    @GARBAGE.after()
    def step(self) -> None:
        """Takes one batch on the way to the goal; nothing while the table is paused. Raises TableHalt, TransientError
        and what Spark raises."""
        paused = self.paused
        if paused is not None:
            self._rest(paused)
            return
        self._resting = None
        stopwatch = Stopwatch()
        with stopwatch.phase("look"):
            if not self._started:
                self.start()
            self._look_at_the_table()
            topic = self._looked_at()
            self._parts.layout_sync.see_to()
        if self.asked is ResumeAction.REPLAY:
            self._cursor.head = self._lake.keep_record(self._cursor.head)  # columns may be added for it
            self._parts.processor.replay(topic)
            self.asked = None
        part = self._parts.processor.next_range(self.goal)
        if part:
            if not self.failing:
                far = self.lag() > 2 * part.records
                self._report(TableState.CATCHING_UP if far else TableState.RUNNING)
            self._cursor.head = self._lake.keep_record(
                self._cursor.head
            )  # columns may be added before the batch's commit
            try:
                self._parts.processor.process(topic, part, dict(self.goal), stopwatch)
            except TableHalt as halt:
                if not self._keep_changes(as_halt_tells(self._parts.settings, halt, self.progress)):
                    raise
                return  # the next step takes the batch
            self._parts.keep_log()
        if (entered := self._parts.enter_in_catalog()) is not None:
            self._context.status.update(self.name, catalog_name=entered)
        self._cursor.head = stale_rows.counted(self._lake, self._parts.writer, self._cursor.head, self._bound)
        self.failing = False
        self._report(TableState.RUNNING)

    def _keep_changes(self, settings: TableSettings) -> bool:
        """Keeps the table by these settings where they have another mode; whether they have. What it has by now are
        truncates at most, and is applied again."""
        if settings.mode == self._parts.settings.mode:
            return False
        self._bound.info("the records have no key: each change is kept as a row", keyless=settings.keyless)
        self._keep_by(settings)
        if self.progress is not None and self.progress.mode != settings.mode:
            self.asked = ResumeAction.REBUILD
        return True

    def _rest(self, why: str) -> None:
        """The table is paused: from now on it shows that, and where it is."""
        if not self._started:
            self.start()
        self.failing, self._resting = False, why
        self._report(TableState.PAUSED)
        self._bound.info("table is paused", reason=why)

    def due(self) -> Due | None:
        """What the table's files need; nothing while it is halted or paused."""
        head = self._cursor.head
        if head is None or head.progress is None or self.halted is not None or self.paused is not None:
            return None
        return self.upkeep.due(head.version, head.at)

    @GARBAGE.after()
    def maintain(self, task: Task) -> Compacted | None:
        """Looks after the table's files, in the place of a batch. Raises TableHalt, TransientError and what Spark
        raises; whatever it is, the table is as it was."""
        self._look_at_the_table()
        if self.progress is None:
            return None
        done = self._parts.maintenance.do(task)
        if not self._parts.maintenance.has_more:
            self.upkeep.done(task, self._cursor.head.version if self._cursor.head else 0)
        self._context.status.update(self.name, **self.upkeep.last_done())
        return done

    def _look_at_the_table(self) -> None:
        """Where the table is now: another driver may have gone on with it, or somebody set it back or deleted it."""
        known, before = self._cursor.head, self.taken
        self._cursor.head = self._lake.head(known)
        if known is None or _commit_of(known) == _commit_of(self._cursor.head):
            return
        self._parts.processor.look_anew()
        if any(self.taken.get(p, 0) < offset for p, offset in before.items()):
            self._bound.warning("the table is older than it was: it goes on from there", next=self.taken, was=before)

    def _looked_at(self) -> Topic:
        """The topic, once it is known that the table can go on with it."""
        doubtful, self._doubtful = self._doubtful, False
        try:
            topic = self._parts.topic_check.find()
            # A partition that was never read starts at the first record that Kafka has.
            self._cursor.first = self._context.broker.earliest(topic)
            self._accept(topic)
            self._parts.topic_check.check(topic)
            if doubtful:
                self._look_at_the_end(topic)
        except Exception:
            self._doubtful = self._doubtful or doubtful
            raise
        return topic

    def _accept(self, topic: Topic) -> None:
        """Does what an operator asked for, in a commit of its own."""
        asked, head = self.asked, self._cursor.head
        if asked is not None and self._context.set_aside is not None:
            self._context.set_aside.read()  # what was set aside just before it was asked for
        if asked is None or head is None or head.progress is None:
            self.asked = None
            return
        end = self._parts.topic_check.apply(asked, topic)
        if end is not None:
            self._target.restart(end)
        self._parts.processor.look_anew()
        if asked is not ResumeAction.REPLAY:  # that comes once the table was looked at, and may have to be tried again
            self.asked = None

    def _look_at_the_end(self, topic: Topic) -> None:
        """No target lies behind the topic's end, and the end not before what was applied."""
        before = self.goal
        end = self._context.broker.latest(topic)
        self._target.limit(end, before)
        self._parts.topic_check.note_lost_ends(topic, end)

    def _report(self, state: TableState) -> None:
        self._context.taken(self.topic, self.taken)
        report_state(
            self._context.status,
            self.name,
            state,
            self.topic,
            self._cursor,
            self.goal,
            self._parts.settings,
            paused=self._resting,
            warnings=self._parts.processor.warnings,
            maintained=self.upkeep.last_done(),
        )


def _commit_of(head: Head | None) -> str | None:
    return head.progress.commit if head is not None and head.progress is not None else None
