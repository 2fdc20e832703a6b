"""One table at work: takes slices of its topic, one after the other, until it is where the stream is."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timezone

from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.consume.offsets import Offsets, Slice, largest
from distributary.consume.source import read
from distributary.consume.topics import TableId
from distributary.decode.queries import Queries
from distributary.errors import TableHalt
from distributary.evolve.diff import check_key
from distributary.merge.advance import advanced
from distributary.merge.deletes import RememberedDeletes
from distributary.merge.facts import Facts
from distributary.merge.files import Compacted, compact, vacuum
from distributary.merge.kept import keeping, let_go
from distributary.merge.layout import wanted_layout
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.modes import mode_of
from distributary.merge.progress import Head, Progress, first_progress
from distributary.merge.row_size import UNKNOWN_ROW
from distributary.merge.slice_keys import SliceKeys
from distributary.merge.table import SMALL_SLICE, LakeTable, Write
from distributary.operate import failpoints, ghosts
from distributary.operate.accept import Accept
from distributary.operate.catalog import CatalogEntry
from distributary.operate.continuity import accepted, check_continuity, not_ours
from distributary.operate.limits import too_many_bad
from distributary.operate.logs import get_logger
from distributary.operate.note import Note
from distributary.operate.portion import Portion, key_bytes, slice_bytes
from distributary.operate.reader import Read, TableReader
from distributary.operate.recorder import Watch
from distributary.operate.replay import replayed
from distributary.operate.source_log import check_source_log
from distributary.operate.status import Batch, TableState
from distributary.operate.surroundings import Surroundings
from distributary.operate.tables import catalog_name, deletes_path, maintenance_path
from distributary.operate.upkeep import APPENDED_FILE, REWRITTEN_FILE, Due, Task, Upkeep
from distributary.operate.wire import wire_of
from distributary.operate.withheld import with_withheld, withheld_columns

_READS_SENT_AGAIN = 7 * 24 * 3600 * 1000  # milliseconds of source time in which a snapshot row may be sent again
_RECORD_IS_OLD = 7 * 24 * 3600  # seconds; Delta's log keeps 30 days
_log = get_logger(__name__)


class TableWorker:
    """The one writer of a table.

    Its own progress record tells where it goes on, never the stream's checkpoint: whatever was taken in already is
    passed over, whatever is missing is read, in slices of at most `trigger.max_records` (see portion.py for bytes).
    """

    def __init__(self, around: Surroundings, table: TableId, topic: str, settings: TableSettings, path: str) -> None:
        self.table = table
        self.topic = topic
        self.goal: Offsets = {}
        self.faults = 0
        self.failing = False
        """Whether the last try of a step failed in a way that may pass: what was told of it stays until one ends."""
        self.halted: TableHalt | None = None
        self.running = threading.Lock()
        self._around = around
        self._settings = settings
        self._mode = mode_of(settings)
        self._layout = wanted_layout(settings)
        self._lake = LakeTable(
            around.session,
            path,
            self._mode.service_columns,
            fixed=around.config.spark,
            commit=settings.commit,
            layout=self._layout,
        )
        self._laid_out = self._layout.says_nothing
        self._deletes = RememberedDeletes(self._lake.session, deletes_path(around.config, table))
        self._head: Head | None = None
        self._first: Offsets = {}
        self._started = False
        self._queries = Queries()
        self._of_one_key = key_bytes(around.session)
        self._portion = Portion(around.broker, topic, around.config.trigger.max_records, slice_bytes(around.session))
        self._bound = _log.bind(table=str(table), topic=topic)
        name = catalog_name(around.config, table)
        self._entry = CatalogEntry(self._lake.session, name, path, self._bound) if name else None
        self._reader = self._new_reader()
        self.asked: Accept | None = None
        """What an operator asks for, until a step has done it."""
        self._doubtful = False
        note = Note(around.session, maintenance_path(around.config, table))
        self.upkeep = Upkeep(settings.maintenance, note)

    @property
    def name(self) -> str:
        """`schema.table`, as logs and status have it."""
        return str(self.table)

    @property
    def settings(self) -> TableSettings:
        """What counts for the table."""
        return self._settings

    @property
    def taken(self) -> Offsets:
        """The next offset per partition."""
        progress = self.progress
        return dict(progress.next) if progress else {}

    @property
    def progress(self) -> Progress | None:
        """The table's own record, as last seen."""
        return self._head.progress if self._head else None

    @property
    def first(self) -> Mapping[int, int]:
        """The first offset that Kafka had of each partition, as last seen."""
        return self._first

    def behind(self) -> int:
        """How many offsets lie between the table and its goal."""
        taken = self.taken
        return sum(max(0, end - taken.get(p, self._first.get(p, 0))) for p, end in self.goal.items())

    def resume(self, accept: Accept) -> None:
        """The table goes on, as an operator wants it to."""
        self.failing = self.failing and self.halted is None
        self.halted, self.faults, self.asked = None, 0, accept

    def has_to_step(self) -> bool:
        """Whether there is anything to be done."""
        wanted = self.behind() > 0 or self.asked is not None or self._doubtful or self.failing
        return wanted and self.halted is None

    def start(self) -> None:
        """Reads where the table is."""
        self._head = self._lake.head()
        self._deletes.forget_old(datetime.now(timezone.utc).date())
        self.upkeep.start()
        self._started = True
        self._around.recorder.found(self.name)
        if not self.failing:
            self._report(TableState.STARTING)
        ghosts.warn(self._head, self._bound)

    def aim(self, end: Offsets) -> None:
        """Sets the goal further, to the end of a batch of the stream. A topic that ends before its earlier end is
        perhaps another one: the next step looks."""
        if any(offset < self.goal.get(p, 0) for p, offset in end.items()):
            self.doubt()
        self.goal = largest([self.goal, end])
        if self._started:  # before, it is not known what the table has
            self._around.status.update(self.name, goal_offsets={self.topic: dict(self.goal)})

    def doubt(self) -> None:
        """Has the next step look at the topic, whether or not there is anything to take."""
        self._doubtful = True

    @keeping()
    def step(self) -> None:
        """Takes one slice on the way to the goal. Raises TableHalt, TransientError and what Spark raises."""
        watch = Watch()
        with watch.phase("look"):
            if not self._started:
                self.start()
            self._look_at_the_table()
            topic = self._looked_at()
            self._lay_out()
        if self.asked is Accept.REPLAY:
            self._replay(topic)
            self.asked = None
        part = self._portion.next({**self._first, **self.taken}, self.goal)
        if part:
            if not self.failing:
                far = self.behind() > 2 * part.records
                self._report(TableState.CATCHING_UP if far else TableState.RUNNING)
            self._take(topic, part, watch)
        self._enter_in_catalog()
        self._head = ghosts.counted(
            self._lake, self._head, marks_deleted="__deleted" in self._mode.service_columns, log=self._bound
        )
        self.failing = False
        self._report(TableState.RUNNING)

    def due(self) -> Due | None:
        """What the table's files need; nothing while it is halted."""
        head = self._head
        if head is None or head.progress is None or self.halted is not None:
            return None
        return self.upkeep.due(head.version, head.written.at if head.written else None)

    @keeping()
    def tend(self, task: Task) -> Compacted | None:
        """Looks after the table's files, in the place of a slice. Raises TableHalt, TransientError and what Spark
        raises; whatever it is, the table is as it was."""
        self._look_at_the_table()
        head, progress = self._head, self.progress
        if head is None or progress is None:
            return None
        self._lake.suit(SMALL_SLICE + 1)  # all of its small files are read
        done = None
        try:
            if task is Task.COMPACT:
                done = self._compact(head, progress)
            else:
                vacuum(self._lake.session, self._lake.path, self.upkeep.keep)
                self._deletes.forget_old(datetime.now(timezone.utc).date())
        finally:
            self._lake.leave()
        self.upkeep.done(task, self._head.version if self._head else 0)
        self._around.status.update(self.name, **self.upkeep.told())
        return done

    def _compact(self, head: Head, progress: Progress) -> Compacted:
        written = head.written.at if head.written else None
        if written is None or datetime.now(timezone.utc).timestamp() - written > _RECORD_IS_OLD:
            # Others' commits lie over it. With one more of them Delta may clean the log up and take the record's away.
            self._head = self._lake.commit(head, progress.next_commit(), self._lake.nothing())
        failpoints.passing("before-compaction", self.name)
        size = APPENDED_FILE if self._settings.mode == "append" else REWRITTEN_FILE
        done = compact(self._lake.session, self._lake.path, size)
        if columns := self._lake.columns():
            key = {name: columns[name] for name in progress.key}
            self._deletes.gather(key, of_changes=self._settings.mode == "history")
        failpoints.passing("after-compaction", self.name)
        self._head = self._lake.head(self._head)
        return done

    def _look_at_the_table(self) -> None:
        """Where the table is now: another driver may have gone on with it, or somebody set it back or deleted it."""
        known, before = self._head, self.taken
        self._head = self._lake.head(known)
        if known is None or _commit_of(known) == _commit_of(self._head):
            return
        self._reader = self._new_reader()
        if any(self.taken.get(p, 0) < offset for p, offset in before.items()):
            self._bound.warning("the table is older than it was: it goes on from there", next=self.taken, was=before)

    def _looked_at(self) -> Topic:
        """The topic, once it is known that the table can go on with it."""
        doubtful, self._doubtful = self._doubtful, False
        try:
            topic = self._topic()
            # A partition that was never read starts at the first record that Kafka has.
            self._first = self._around.broker.earliest(topic)
            self._accept(topic)
            self._check(topic)
        except Exception:
            self._doubtful = self._doubtful or doubtful
            raise
        return topic

    def _topic(self) -> Topic:
        topic = self._around.broker.topics([self.topic]).get(self.topic)
        if topic is None:
            raise TableHalt(
                "topic-gone",
                f"the topic {self.topic} does not exist any more; the table stays as it is",
                "create the topic again or take the table out of the config",
            )
        return topic

    def _accept(self, topic: Topic) -> None:
        """Does what an operator asked for, in a commit of its own."""
        accept, head = self.asked, self._head
        if accept is None or head is None or head.progress is None:
            self.asked = None
            return
        after = accepted(accept, head.progress, topic, self._first, self._settings.mode)
        if after is not None:
            self._bound.warning("an operator's word was followed", accepted=accept.value, next=dict(after.next))
            self._head = self._lake.commit(
                head, after, self._lake.clear() if accept is Accept.REBUILD else self._lake.nothing()
            )
        if accept is Accept.REBUILD:
            self._deletes.forget_all()
        if accept in (Accept.LOSS, Accept.RESET, Accept.REBUILD):
            self.goal = self._around.broker.latest(topic)
        self._reader = self._new_reader()
        if accept is not Accept.REPLAY:  # which comes after the table was looked at, and may have to be tried again
            self.asked = None

    def _new_reader(self) -> TableReader:
        around = self._around
        return TableReader(
            around.broker,
            around.config.source,
            self._settings,
            self._lake,
            self._mode,
            self._bound,
            around.transactions,
            wire_of(around.registry),
            self._queries,
            lambda: around.told(self.topic),
        )

    def _check(self, topic: Topic) -> None:
        """The table must be ours, and Kafka must still have what comes next."""
        progress = self.progress
        if progress is not None:
            check_continuity(progress, topic, self._first, self._settings, self._lake.path)
        elif self._head is not None and self._lake.columns() and not self._is_new():
            raise not_ours(self._lake.path)

    def _enter_in_catalog(self) -> None:
        """Makes a table that is there known to the catalog of the config."""
        if self._entry is not None and self._entry.is_due and self._lake.exists() and self._entry.see_to():
            self._around.status.update(self.name, catalog_name=self._entry.name)

    def _lay_out(self) -> None:
        """Gives a table that is there the properties and the clustering of the config, once for a worker."""
        if self._laid_out:
            return
        if self._head is not None and self._lake.columns():  # a table without columns is made anew with them
            self._bound.debug("the table's properties and layout are looked at")
            changed = self._lake.lay_out()
            if changed:
                self._bound.info(
                    "the table was altered", properties=dict(changed.properties), clustered_by=changed.cluster_by
                )
                self._head = self._lake.head(self._head)
            if changed.partitions:
                self._bound.warning(
                    "the table's files are not parted as the config says: it goes on as it is",
                    fix=changed.partitions,
                )
        self._laid_out = True

    def _is_new(self) -> bool:
        """A table without progress record and without rows: its first batch did not come about."""
        return bool(self._lake.delta().toDF().isEmpty())

    def _take(self, topic: Topic, part: Slice, watch: Watch) -> None:
        # No table has more rows than the records that made it.
        rows = self.progress.records if self.progress else 0
        self._lake.suit(part.records, rows, self._portion.record_bytes or UNKNOWN_ROW)
        session = self._lake.session
        # A topic's partition is one task for Kafka's source; where it is long, all cores decode parts of it.
        small = part.records <= SMALL_SLICE
        tasks = 1 if small else session.sparkContext.defaultParallelism
        raw = read(session, self._around.options, part, tasks, small)
        known = None if self.progress is None or self.progress.is_new else self.progress
        with watch.phase("look"):
            look = self._reader.look(topic, part.start, known)
        key = self._reader.renames.all_of(look.key or self._settings.key)
        progress = known or first_progress(self.topic, topic.topic_id, look.order, self._settings.mode, key)
        if known is None and self.progress is not None:
            progress = progress.model_copy(update={"sequence": self.progress.sequence})
        if not progress.key:
            progress = progress.model_copy(update={"key": key})
        check_key(progress.key, key)
        if (marks := self._reader.masks.marks() or None) != progress.masks:
            progress = progress.model_copy(update={"masks": marks})
        if progress.unwrapped != (look.unwrapped is not None):
            progress = progress.model_copy(update={"unwrapped": look.unwrapped is not None})
        with watch.phase("read"):
            came = self._reader.read(raw, progress)
        if (renamed := {**(progress.renames or {}), **self._reader.renamed} or None) != progress.renames:
            progress = progress.model_copy(update={"renames": renamed})
        if came.altered:
            failpoints.passing("after-schema-change", self.name)
            self._around.recorder.schema_changed(self.name)
            self._head = self._lake.head(self._head)
        keys = SliceKeys(came.records, self._queries)
        share = self._foldable(came.found, keys)
        if share < 1 and part.records > len(part.end):
            let_go(came.records)  # nothing of it is anywhere yet
            self._take(topic, self._portion.smaller(part, share), watch)
            return
        check_source_log(came.records, came.found, progress, self._settings, self.topic)
        reasons: Mapping[str, int] = {}
        if came.found.bad:
            with watch.phase("quarantine"):
                failpoints.passing("before-quarantine", self.name)
                bad_ones = came.records.where("bad IS NOT NULL")
                reasons = self._around.quarantine.add(self.name, raw, bad_ones, withheld_columns(self._settings))
                failpoints.passing("after-quarantine", self.name)
        with watch.phase("write"):
            bad = self._merge(came, keys, progress, part, topic)
        self._portion.took(came.found)
        self._record(came.found, watch, reasons)
        if bad is not None:
            raise TableHalt(
                "too-many-bad-records",
                f"{bad} of the last records went to the quarantine table, more than quarantine.max_ratio allows",
                "look at their reasons in the quarantine table; mend the cause or raise quarantine.max_ratio",
            )

    def _foldable(self, found: Facts, keys: SliceKeys) -> float:
        """What share of a slice can be folded at once, by its key that has most."""
        if self._settings.mode == "append" or found.payload <= self._of_one_key:
            return 1.0
        return self._of_one_key / max(1, keys.largest)

    def _replay(self, topic: Topic) -> None:
        """Applies the table's records in quarantine again, those that can be applied by now."""
        progress, head = self.progress, self._head
        raw = self._around.quarantine.waiting(self._lake.session, self.topic)
        if raw is None or progress is None or head is None:
            return
        self._lake.suit(SMALL_SLICE + 1, row_bytes=UNKNOWN_ROW)  # how many there are is not known
        end = self._around.broker.latest(topic)
        if end == self._first:
            self._bound.warning("records in quarantine wait until the topic has one that tells its format")
            return
        raw = with_withheld(raw, self._lake.session, self._around.options, self.topic, self._first, end)
        self._reader.look(topic, self._first, progress)
        came = self._reader.read(raw, progress)
        if came.altered:
            self._head = head = self._lake.head(head) or head
        again = replayed(came.records, progress, truncates=self._settings.truncate in ("apply", "soft"))
        self._bound.warning("records in quarantine are applied again", **again.told(came.found))
        if not again.found.records:
            return
        part = DecodedSlice(
            again.records,
            again.found,
            SliceKeys(again.records, self._queries),
            again.truncated,
            again.after.truncated,
            first=False,
            reached={},
            reads_lately=True,
            head=head,
        )
        self._head = self._lake.commit(head, again.after, self._mode.write(self._destination(progress), part).write)
        self._around.quarantine.applied(self.topic, again.records)
        let_go(came.records)

    def _merge(self, came: Read, keys: SliceKeys, progress: Progress, part: Slice, topic: Topic) -> int | None:
        """Commits the slice; see _commit."""
        found = came.found
        truncated = found.truncated if self._settings.truncate in ("apply", "soft") else None
        after = advanced(progress, found, part.end, truncated, self._first, lambda: self._around.broker.latest(topic))
        head = self._head
        assert head is not None
        to = self._destination(progress)
        slice_ = DecodedSlice(
            came.records,
            found,
            keys,
            truncated,
            after.truncated,
            first=head.progress is None or head.progress.is_new,
            reached={p: last.position for p, last in progress.last.items() if last.position is not None},
            reads_lately=(after.source_ts_ms or 0) - (after.read_ts_ms or 0) < _READS_SENT_AGAIN,
            head=head,
        )
        ready = self._mode.write(to, slice_)
        after = after.model_copy(update={"undecided": after.undecided + ready.undecided})
        return self._commit(head, after, ready.write, found)

    def _destination(self, progress: Progress) -> Destination:
        return Destination(
            lake=self._lake,
            deletes=self._deletes,
            topic=self.topic,
            connector=progress.connector,
            columns=self._reader.columns,
            key={name: self._reader.columns[name] for name in progress.key},
            settings=self._settings,
            tell=lambda event, count: self._bound.warning(event, count=count),
            debug=lambda reason: self._bound.debug("the slice is committed by Spark", reason=reason),
            queries=self._queries,
        )

    def _commit(self, head: Head, after: Progress, write: Write, found: Facts) -> int | None:
        """Gives how many of the last records were bad, where that is more than the config allows."""
        recent, bad = too_many_bad(after.recent, self._around.config.quarantine.max_ratio)
        after = after.model_copy(update={"recent": recent})
        failpoints.passing("before-commit", self.name)
        self._head = self._lake.commit(head, after, write)
        failpoints.passing("after-commit", self.name)
        self._bound.info(
            "committed",
            version=self._head.version,
            records=found.records,
            applied=found.applied,
            quarantined=found.bad,
            next=dict(after.next),
        )
        return bad

    def _record(self, found: Facts, watch: Watch, reasons: Mapping[str, int]) -> None:
        """Tells of a slice that was committed."""
        newest, written = found.newest_ts_ms, self._head.written if self._head else None
        at = written.at if written and written.at is not None else datetime.now(timezone.utc).timestamp()
        self._around.recorder.committed(
            self.name,
            Batch(at, found.records, found.applied, found.bad, round(watch.seconds, 3)),
            freshness_seconds=None if newest is None else max(0.0, round(at - newest / 1000, 3)),
            phases=watch.phases,
            operations=found.operations,
            merged=written.rows if written else {},
            reasons=reasons,
        )

    def _report(self, state: TableState) -> None:
        progress, head = self.progress, self._head
        self._around.taken(self.topic, self.taken)
        if head is not None and head.written is not None and head.written.at is not None:
            self._around.status.update(self.name, last_commit_at=head.written.at)
        self._around.status.update(
            self.name,
            topics=(self.topic,),
            state=state,
            position=progress.position if progress else None,
            next_offsets={self.topic: self.taken},
            goal_offsets={self.topic: dict(self.goal)},
            records_applied=progress.records if progress else 0,
            quarantined=progress.quarantined if progress else 0,
            undecided=progress.undecided if progress else 0,
            source_ts=progress.source_ts_ms if progress else None,
            ghosts=progress.snapshot.ghosts if progress and progress.snapshot else None,
            error=None,
            **self.upkeep.told(),
        )


def _commit_of(head: Head | None) -> str | None:
    return head.progress.commit if head is not None and head.progress is not None else None
