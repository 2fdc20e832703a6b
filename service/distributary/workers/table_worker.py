"""One table at work: takes batches of its topic, one after the other, until it is where the stream is."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.consume.offsets import OffsetRange, Offsets, largest
from distributary.consume.topics import TableId
from distributary.error_mapping import classify, unexpected_in
from distributary.errors import TableHalt
from distributary.halt_actions import PAUSED_IN_CONFIG, ResumeAction
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.continuity import accepted, check_continuity, lost_ends, nearer_goal, not_ours
from distributary.ingest.keyless import as_halt_tells, as_kept
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.table_cursor import TableCursor
from distributary.ingest.tables import catalog_name, maintenance_path
from distributary.lake.layout import wanted_layout
from distributary.lake.optimize import Compacted
from distributary.lake.table import LakeTable
from distributary.logs import get_logger
from distributary.maintain.garbage import GARBAGE
from distributary.maintain.layout_sync import LayoutSync
from distributary.maintain.schedule import Due, MaintenanceSchedule, Task
from distributary.maintain.table_maintenance import TableMaintenance
from distributary.observe.recorder import Stopwatch
from distributary.observe.status import TableState
from distributary.progress.record import Head, Progress
from distributary.storage.json_file import JsonFile
from distributary.workers import stale_rows
from distributary.workers.batch_processor import BatchProcessor
from distributary.workers.catalog import CatalogEntry
from distributary.workers.context import WorkerContext

_ANEW = (
    ResumeAction.LOSS,
    ResumeAction.RESET,
    ResumeAction.REBUILD,
)  # after which the table continues from other offsets
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
        self.goal: Offsets = {}
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
        self._aiming = threading.Lock()
        note = JsonFile(context.session, maintenance_path(context.config, table))
        self.upkeep = MaintenanceSchedule(settings.maintenance, note)

    def _keep_by(self, settings: TableSettings) -> None:
        """From now on these settings count for the table."""
        context = self._context
        self._settings = settings
        self._writer = BatchWriter(settings, context.index_cache)
        layout = wanted_layout(settings)
        self._lake = LakeTable(
            context.session,
            self._path,
            self._writer.service_columns,
            layout=layout,
        )
        entry = catalog_name(context.config, self.table)
        self._entry = CatalogEntry(self._lake.session, entry, self._path, self._bound) if entry else None
        self._taker = BatchProcessor(
            context, self.topic, settings, self._writer, self._lake, self._cursor, self.name, self._bound
        )
        self._laying_out = LayoutSync(self._lake, self._cursor, layout, self._bound)
        self._tending = TableMaintenance(self._lake, self._writer, self._cursor, settings.mode, self.name)

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
        taken = self.taken
        return sum(max(0, end - taken.get(p, self._cursor.first.get(p, 0))) for p, end in self.goal.items())

    def resume(self, accept: ResumeAction) -> None:
        """The table goes on, as an operator wants it to."""
        self.failing = self.failing and self.halted is None
        self.halted, self.faults, self.asked = None, 0, accept

    @property
    def paused(self) -> str | None:
        """Why the table takes nothing in for now; None where it does."""
        return PAUSED_IN_CONFIG if self._settings.paused else self._context.paused(self.topic)

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
        self._keep_changes(as_kept(self._settings, self.progress))
        self.upkeep.start()
        self._started = True
        self._context.recorder.found(self.name)
        if not self.failing:
            self._report(TableState.STARTING)
        stale_rows.warn(self._cursor.head, self._bound)

    def set_target(self, end: Offsets) -> None:
        """Sets the goal further, to the end of a batch of the stream. A topic that ends before its earlier end is
        perhaps another one: the next step looks."""
        if any(offset < self.goal.get(p, 0) for p, offset in end.items()):
            self.request_recheck()
        with self._aiming:
            self.goal = largest([self.goal, end])
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
            self._laying_out.see_to()
        if self.asked is ResumeAction.REPLAY:
            self._cursor.head = self._lake.keep_record(self._cursor.head)  # columns may be added for it
            self._taker.replay(topic)
            self.asked = None
        part = self._next_part()
        if part:
            if not self.failing:
                far = self.lag() > 2 * part.records
                self._report(TableState.CATCHING_UP if far else TableState.RUNNING)
            self._cursor.head = self._lake.keep_record(
                self._cursor.head
            )  # columns may be added before the batch's commit
            try:
                self._take(topic, part, stopwatch)
            except TableHalt as halt:
                if not self._keep_changes(as_halt_tells(self._settings, halt, self.progress)):
                    raise
                return  # the next step takes the batch
            self._keep_log()
        self._enter_in_catalog()
        self._cursor.head = stale_rows.counted(self._lake, self._writer, self._cursor.head, self._bound)
        self.failing = False
        self._report(TableState.RUNNING)

    def _keep_log(self) -> None:
        """Writes a checkpoint where one is due. The table does without: it is tried again with the next commit."""
        try:
            self._writer.keep_log(self._lake)
        except Exception as error:  # Spark's, Java's and the storage's
            self._bound.warning("no checkpoint of the table's log was written", reason=classify(error).message)

    def _keep_changes(self, settings: TableSettings) -> bool:
        """Keeps the table by these settings where they have another mode; whether they have. What it has by now are
        truncates at most, and is applied again."""
        if settings.mode == self._settings.mode:
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
        done = self._tending.do(task)
        if not self._tending.has_more:
            self.upkeep.done(task, self._cursor.head.version if self._cursor.head else 0)
        self._context.status.update(self.name, **self.upkeep.last_done())
        return done

    def _look_at_the_table(self) -> None:
        """Where the table is now: another driver may have gone on with it, or somebody set it back or deleted it."""
        known, before = self._cursor.head, self.taken
        self._cursor.head = self._lake.head(known)
        if known is None or _commit_of(known) == _commit_of(self._cursor.head):
            return
        self._taker.look_anew()
        if any(self.taken.get(p, 0) < offset for p, offset in before.items()):
            self._bound.warning(
                "the table is at an older version than before: it continues from there", next=self.taken, was=before
            )

    def _looked_at(self) -> Topic:
        """The topic, once it is known that the table can go on with it."""
        doubtful, self._doubtful = self._doubtful, False
        try:
            topic = self._topic()
            # A partition that was never read starts at the first record that Kafka has.
            self._cursor.first = self._context.broker.earliest(topic)
            self._accept(topic)
            self._check(topic)
            if doubtful:
                self._look_at_the_end(topic)
        except Exception:
            self._doubtful = self._doubtful or doubtful
            raise
        return topic

    def _topic(self) -> Topic:
        topic = self._context.broker.topics([self.topic]).get(self.topic)
        if topic is None:
            raise TableHalt(
                "topic-gone",
                f"the topic {self.topic} does not exist any more; the table stays as it is",
                "create the topic again; or take the table out of the config, or start the service again where a"
                " pattern names it: without a topic there is nothing to keep it equal to",
            )
        return topic

    def _accept(self, topic: Topic) -> None:
        """Does what an operator asked for, in a commit of its own."""
        accept, head = self.asked, self._cursor.head
        if accept is not None and self._context.set_aside is not None:
            self._context.set_aside.read()  # what was set aside just before it was asked for
        if accept is None or head is None or head.progress is None:
            self.asked = None
            return
        end = self._context.broker.latest(topic) if accept in _ANEW else {}
        after = accepted(accept, head.progress, topic, self._cursor.first, end, self._settings.mode)
        if after is not None:
            self._bound.warning("an operator's word was followed", accepted=accept.value, next=dict(after.next))
            self._cursor.head = self._lake.commit(
                head, after, self._lake.clear() if accept is ResumeAction.REBUILD else self._lake.empty_commit()
            )
        if accept in _ANEW:
            self.goal = end
        self._taker.look_anew()
        if (
            accept is not ResumeAction.REPLAY
        ):  # which comes after the table was looked at, and may have to be tried again
            self.asked = None

    def _check(self, topic: Topic) -> None:
        """The table must be ours, and Kafka must still have what comes next."""
        progress = self.progress
        if progress is not None:
            check_continuity(progress, topic, self._cursor.first, self._settings, self._lake.path)
        elif self._cursor.head is not None and self._lake.columns() and not self._is_new():
            raise not_ours(self._lake.path)

    def _look_at_the_end(self, topic: Topic) -> None:
        """No goal lies behind the topic's end, and the end not before what was applied: that is written down, as it
        can't be seen any more once the topic has grown again."""
        before = self.goal
        end = self._context.broker.latest(topic)
        with self._aiming:
            self.goal = {
                p: min(goal, end.get(p, goal)) if before.get(p) == goal else goal for p, goal in self.goal.items()
            }
        head = self._cursor.head
        if head is None or head.progress is None:
            return
        if short := lost_ends(head.progress, end):
            after = head.progress.next_commit(short=short)
            self._cursor.head = self._lake.commit(head, after, self._lake.empty_commit())
            self._check(topic)

    def _next_part(self) -> OffsetRange:
        """What to take next; first what was there when an operator accepted a loss (see nearer_goal)."""
        taken = {**self._cursor.first, **self.taken}
        lost = self.progress.lost if self.progress else None
        nearer = self._taker.next(taken, nearer_goal(self.goal, taken, lost)) if lost else None
        return nearer or self._taker.next(taken, self.goal)

    def _enter_in_catalog(self) -> None:
        """Makes a table that is there known to the catalog of the config."""
        if self._entry is not None and self._entry.is_due and self._lake.exists() and self._entry.see_to():
            self._context.status.update(self.name, catalog_name=self._entry.name)

    def _is_new(self) -> bool:
        """A table without progress record and without rows: its first batch did not come about."""
        return bool(self._lake.delta().toDF().isEmpty())

    def _take(self, topic: Topic, part: OffsetRange, stopwatch: Stopwatch) -> None:
        goal = dict(self.goal)
        try:
            bad = self._taker.take(topic, part, goal, stopwatch)
        except Exception as error:
            if (halt := unexpected_in(error, part)) is not None:
                raise halt from error
            raise
        if self.progress is None or self.progress.is_new:
            # Up to there no record is left, and there is no table to note it in: the next goal is looked at from the
            # start again.
            self._cursor.first = {**self._cursor.first, **goal}
        if bad is not None:
            raise TableHalt(
                "too-many-bad-records",
                f"{bad} of the last records went to the quarantine table, more than quarantine.max_ratio allows",
                "read the reasons (`distributary quarantine list`), fix the cause or raise quarantine.max_ratio",
            )

    def _report(self, state: TableState) -> None:
        progress, head = self.progress, self._cursor.head
        self._context.taken(self.topic, self.taken)
        if head is not None and head.at is not None:
            self._context.status.update(self.name, last_commit_at=head.at)
        self._context.status.update(
            self.name,
            topics=(self.topic,),
            state=state,
            position=progress.position if progress else None,
            next_offsets={self.topic: {**self._cursor.first, **self.taken}},
            goal_offsets={self.topic: dict(self.goal)},
            records_applied=progress.records if progress else 0,
            quarantined=progress.quarantined if progress else 0,
            undecided=progress.undecided if progress else 0,
            source_ts=progress.source_ts_ms if progress else None,
            ghosts=progress.snapshot.ghosts if progress and progress.snapshot else None,
            layout=removal_layout(self._settings).value,
            remembered_keys=progress.remembered_keys if progress else None,
            memory_bytes=progress.memory_bytes if progress else None,
            error=None,
            paused=self._resting,
            warnings=self._taker.warnings,
            **self.upkeep.last_done(),
        )


def _commit_of(head: Head | None) -> str | None:
    return head.progress.commit if head is not None and head.progress is not None else None
