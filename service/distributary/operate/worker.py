"""One table at work: takes slices of its topic, one after the other, until it is where the stream is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from distributary.config import Config
from distributary.config.table import TableSettings
from distributary.consume.broker import Broker, Record, Topic
from distributary.consume.offsets import Offsets, Slice, largest, next_slice
from distributary.consume.source import read
from distributary.consume.topics import TableId
from distributary.decode.discover import signatures, types_by_value
from distributary.decode.placeholder import DEFAULT_PLACEHOLDER, PLACEHOLDER_PROPERTY
from distributary.decode.position import BY_OFFSET
from distributary.decode.records import Reading, decoded
from distributary.decode.shapes import Shape, Signature, TypeSources, shape_of
from distributary.decode.slices import shape_number, sliced
from distributary.decode.unwrapped import Unwrapped, added_by
from distributary.errors import TableHalt
from distributary.evolve.diff import check_key, columns_to_add
from distributary.merge.deletes import RememberedDeletes
from distributary.merge.facts import Facts, facts, went_back
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.modes import mode_of
from distributary.merge.progress import Head, Last, Progress, first_progress
from distributary.merge.table import LakeTable
from distributary.operate.limits import refuse_unbuilt, too_many_bad
from distributary.operate.logs import get_logger
from distributary.operate.look import Known, Look, look_at
from distributary.operate.quarantine import Quarantine
from distributary.operate.status import ServiceStatus, TableState

_LOOKED_AT = 20  # records per partition from which a table's format is learnt
_LOOKED_FURTHER = 2_000  # where none of those has a value
_READS_SENT_AGAIN = 7 * 24 * 3600 * 1000  # milliseconds of source time in which a snapshot row may be sent again
_log = get_logger(__name__)


@dataclass(frozen=True)
class Surroundings:
    """What all tables of the service share."""

    config: Config
    session: SparkSession
    broker: Broker
    options: Mapping[str, str]
    quarantine: Quarantine
    status: ServiceStatus
    stopping: threading.Event


class TableWorker:
    """The one writer of a table.

    Its own progress record tells where it goes on, never the stream's checkpoint: whatever was taken in already is
    passed over, whatever is missing is read, in slices of at most `trigger.max_records`.
    """

    def __init__(self, around: Surroundings, table: TableId, topic: str, settings: TableSettings, path: str) -> None:
        self.table = table
        self.topic = topic
        self.goal: Offsets = {}
        self.faults = 0
        self.halted: TableHalt | None = None
        self.running = threading.Lock()
        self._around = around
        self._settings = settings
        self._mode = mode_of(settings)
        self._details = self._mode.wants(None)
        self._lake = LakeTable(around.session, path, self._mode.service_columns, fixed=around.config.spark)
        self._deletes = RememberedDeletes(self._lake.session, _deletes_path(around.config, table))
        self._head: Head | None = None
        self._first: Offsets = {}
        self._started = False
        self._columns: dict[str, str] = {}
        self._shapes: list[Shape] = []
        self._look: Look | None = None
        self._unwrapped: Unwrapped | None = None
        self._key_from_row = False
        self._bound = _log.bind(table=str(table), topic=topic)

    @property
    def name(self) -> str:
        """`schema.table`, as logs and status have it."""
        return str(self.table)

    @property
    def taken(self) -> Offsets:
        """The next offset per partition."""
        progress = self._head.progress if self._head else None
        return dict(progress.next) if progress else {}

    def behind(self) -> int:
        """How many offsets lie between the table and its goal."""
        taken = self.taken
        return sum(max(0, end - taken.get(p, self._first.get(p, 0))) for p, end in self.goal.items())

    def start(self) -> None:
        """Reads where the table is."""
        self._head = self._lake.head()
        self._deletes.forget_old(datetime.now(timezone.utc).date())
        self._started = True
        self._report(TableState.STARTING)

    def aim(self, end: Offsets) -> None:
        """Sets the goal further, to the end of a batch of the stream."""
        self.goal = largest([self.goal, end])

    def step(self) -> None:
        """Takes one slice on the way to the goal. Raises TableHalt, TransientError and what Spark raises."""
        if not self._started:
            self.start()
        self._head = self._lake.head(self._head)
        topic = self._topic()
        self._check(topic)
        # A partition that was never read starts at the first record that Kafka has.
        self._first = self._around.broker.earliest(topic)
        at_most = self._around.config.trigger.max_records
        part = next_slice(self.topic, {**self._first, **self.taken}, self.goal, at_most)
        if part:
            far = self.behind() > 2 * at_most
            self._report(TableState.CATCHING_UP if far else TableState.RUNNING)
            self._take(topic, part)
        self._report(TableState.RUNNING)

    def _topic(self) -> Topic:
        topic = self._around.broker.topics([self.topic]).get(self.topic)
        if topic is None:
            raise TableHalt(
                "topic-gone",
                f"the topic {self.topic} does not exist any more; the table stays as it is",
                "create the topic again or take the table out of the config",
            )
        return topic

    def _check(self, topic: Topic) -> None:
        """Kafka must still have what comes next (rule 6.4)."""
        progress = self._head.progress if self._head else None
        if progress is None:
            if self._head is not None and self._head.version > 0 and self._lake.columns() and not self._is_new():
                raise self._foreign()
            return
        if progress.topic != self.topic:
            raise TableHalt(
                "other-topic",
                f"the table at {self._lake.path} is kept equal to the topic {progress.topic}, not to {self.topic}",
                "give each of the two a place of its own with {database} in target.table",
            )
        if progress.mode != self._settings.mode:
            raise TableHalt(
                "mode-changed",
                f"the table is kept as mode: {progress.mode}, the config ({self._settings.where}) says mode:"
                f" {self._settings.mode}",
                "set the mode back, or delete the table's directory to have it filled again in the new mode",
            )
        if topic.topic_id != progress.topic_id:
            raise TableHalt(
                "topic-recreated",
                f"the topic {self.topic} was deleted and created again: offsets {_ranges(progress.next)} of the old one"
                " are taken in, and nothing tells what was in between",
                "delete the table's directory to have it filled again from the new topic",
            )
        for partition, first in self._around.broker.earliest(topic).items():
            taken = progress.next.get(partition)
            if taken is not None and first > taken:
                raise TableHalt(
                    "records-lost",
                    f"Kafka's retention removed offsets {taken} to {first - 1} of {self.topic} partition {partition}"
                    " before they were taken in",
                    "have the connector send a snapshot into a new topic, or delete the table's directory to have it"
                    " filled again from what the topic still has",
                )

    def _is_new(self) -> bool:
        """A table without progress record and without rows: its first batch did not come about."""
        return bool(self._lake.delta().toDF().isEmpty())

    def _foreign(self) -> TableHalt:
        return TableHalt(
            "not-our-table",
            f"there is a Delta table with rows at {self._lake.path} that this service did not write",
            "choose another target.path or move that table away",
        )

    def _take(self, topic: Topic, part: Slice) -> None:
        self._lake.suit(part.records)
        raw = read(self._lake.session, self._around.options, part)
        look = self._look_at(topic, part)
        key = look.key or self._settings.key
        progress = (self._head and self._head.progress) or first_progress(
            self.topic, topic.topic_id, look.order, self._settings.mode, key
        )
        if not progress.key:
            progress = progress.model_copy(update={"key": key})
        check_key(progress.key, key)
        if progress.unwrapped != (look.unwrapped is not None):
            progress = progress.model_copy(update={"unwrapped": look.unwrapped is not None})
        cut = self._sliced(raw)
        records, found = self._decode(cut, progress)
        self._check_facts(records, found, progress)
        if found.bad:
            self._around.quarantine.add(self.name, raw, records.where("bad IS NOT NULL"))
        self._merge(records, found, progress, part)

    def _look_at(self, topic: Topic, part: Slice) -> Look:
        """The format of the table's records, learnt from the first ones of the slice."""
        if self._look is None:
            records: Sequence[Record] = self._around.broker.records(topic, part.start, _LOOKED_AT)
            if not any(r.value for r in records):
                records = self._around.broker.records(topic, part.start, _LOOKED_FURTHER)
            source = self._around.config.source
            progress = self._head.progress if self._head else None
            known = Known(progress.connector, progress.unwrapped) if progress else None
            look = look_at(records, self.topic, source.connector, added_by(source.connector_properties), known)
            refuse_unbuilt(self._settings, look)
            self._look = look if look.tells_all else None
            self._unwrapped = look.unwrapped
            self._key_from_row = bool(self._settings.key) and not look.key
            if look.order == BY_OFFSET:
                self._bound.warning(
                    "rows without an envelope are ordered by their offsets: records that are sent again show older"
                    " states until their end",
                    fix="name the source's position under add.fields of ExtractNewRecordState",
                )
            session = self._lake.session
            rows = {"key": [r.key for r in records], "value": [r.value for r in records]}
            head = session.createDataFrame(pa.table(rows, schema=pa.schema({"key": pa.binary(), "value": pa.binary()})))
            raw = head.selectExpr(
                "key", "value", "0 AS partition", "0L AS offset", "current_timestamp() AS timestamp",
                "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
            )  # fmt: skip
            self._columns = self._lake.columns() if self._head else {}
            self._learn(self._sliced(raw))
            return look
        return self._look

    def _sliced(self, raw: DataFrame) -> DataFrame:
        return sliced(raw, self._unwrapped, before=self._details.before)

    def _learn(self, cut: DataFrame) -> None:
        """The shapes of sliced records; types of values without schema are looked up or taken from the values."""
        found = [s.signature for s in signatures(cut)]
        if not found:
            return
        shapes = [self._shape(s, {}) for s in found]
        untyped = {name for shape in shapes for name in shape.untyped} | self._untyped_keys(found)
        if untyped:
            unwrapped = self._unwrapped is not None
            shown = types_by_value(cut, untyped, unwrapped=unwrapped, before=self._details.before)
            shapes = [self._shape(s, shown) for s in found]
            if shown:
                self._bound.warning(
                    "columns typed by their values: records carry no schema",
                    columns=dict(shown),
                    fix="name their types under `columns` in the config",
                )
        self._shapes = shapes

    def _shape(self, signature: Signature, shown: Mapping[str, str]) -> Shape:
        return shape_of(signature, self._types(shown), frozenset(self._settings.exclude), self._unwrapped)

    def _types(self, shown: Mapping[str, str]) -> TypeSources:
        properties = self._around.config.source.connector_properties
        return TypeSources(self._settings.columns, self._columns, shown, properties)

    def _untyped_keys(self, found: Sequence[Signature]) -> set[str]:
        types = self._types({})
        names = {name for s in found for name in s.key_names_without_schema()}
        return {name for name in names if types.codec(name) is None}

    def _decode(self, cut: DataFrame, progress: Progress) -> tuple[DataFrame, Facts]:
        """The decoded records, kept in memory and on disk, and what they hold; new shapes are learnt on the way."""
        if len(self._shapes) != 1 or self._shapes[0].untyped:
            cut = self._kept(cut)
            self._learn(cut)
        records, found = self._decoded(cut, progress)
        if found.unknown:
            cut = self._kept(cut)
            self._learn(cut)
            records, found = self._decoded(cut, progress)
        if (wanted := self._mode.wants(found)) != self._details:
            # What the mode asks for now it will most likely need for the next slices too.
            self._details = wanted
            records, found = self._decoded(cut, progress)
        self._shapes = self._shapes[-1:]  # the newest; what comes next most likely looks like it
        return records, found

    def _decoded(self, cut: DataFrame, progress: Progress) -> tuple[DataFrame, Facts]:
        self._evolve(progress)
        reading = self._reading(progress)
        if len(self._shapes) == 1:
            records = decoded(cut, self._shapes[0], reading)
        else:
            number = shape_number(self._shapes)
            parts = [decoded(cut.where(number == i), shape, reading) for i, shape in enumerate(self._shapes)]
            records = parts[0]
            for more in parts[1:]:
                records = records.unionByName(more)
        records = self._kept(records)
        return records, facts(records, progress)

    @staticmethod
    def _kept(frame: DataFrame) -> DataFrame:
        # Unlike persist() this cuts the plan: what follows is planned on rows, not on the whole decoding.
        return frame.localCheckpoint(eager=False)

    def _reading(self, progress: Progress) -> Reading:
        properties = self._around.config.source.connector_properties
        if lacking := [name for name in progress.key if name not in self._columns]:
            raise TableHalt(
                "key-column-missing",
                f"no record so far has the key's columns {', '.join(lacking)}",
                f"name columns of the source table under `key` ({self._settings.where})",
            )
        return Reading(
            connector=progress.connector,
            epoch=self._settings.epoch,
            columns=self._columns,
            key={name: self._columns[name] for name in progress.key},
            placeholder=properties.get(PLACEHOLDER_PROPERTY, DEFAULT_PLACEHOLDER),
            deleted={p: last.deleted_key for p, last in progress.last.items() if last.deleted_key is not None},
            keyless=self._settings.mode == "append" and not progress.key,
            before=self._details.before,
            links=self._details.links,
            missing=self._details.missing,
            unwrapped=self._unwrapped,
            key_from_row=self._key_from_row,
        )

    def _evolve(self, progress: Progress) -> None:
        """Makes the table or adds columns, where the shapes have more than it has."""
        for shape in self._shapes:
            check_key(progress.key, shape.key)
        wire = [
            {name: codec.target for name, codec in {**shape.key, **shape.row}.items()}
            for shape in self._shapes
            if not shape.unreadable
        ]
        if self._settings.schema_changes == "ignore" and self._columns:
            wire = [{n: t for n, t in columns.items() if n in self._columns} for columns in wire]
        added = columns_to_add(self._columns, wire, self._mode.service_columns)
        if not added:
            return
        if not self._columns and self._head is None:
            self._lake.create(added)
            self._bound.info("table created", path=self._lake.path, columns=dict(added))
        elif self._settings.schema_changes == "halt" and self._columns:
            names = ", ".join(f"{name} {kind}" for name, kind in added.items())
            raise TableHalt(
                "schema-changed",
                f"the source has new columns ({names}) and schema_changes is halt",
                "add the columns to the table, or set schema_changes: evolve or ignore",
            )
        else:
            self._lake.add_columns(added)
            self._bound.info("columns added", columns=dict(added))
        self._head = self._lake.head(self._head)
        self._columns = self._lake.columns()
        self._shapes = [self._retyped(shape) for shape in self._shapes]

    def _retyped(self, shape: Shape) -> Shape:
        """Without schema a column's type is the table's from now on."""
        return shape if not shape.untyped else self._shape(shape.signature, {})

    def _check_facts(self, records: DataFrame, found: Facts, progress: Progress) -> None:
        if found.truncated is not None and self._settings.truncate == "halt":
            raise TableHalt(
                "truncated",
                f"the source table was truncated at {found.truncated} and truncate is halt",
                "set truncate: apply or ignore",
            )
        # Offsets never go back, and their times say nothing of the source.
        back = went_back(records, progress) if found.suspect and progress.connector != BY_OFFSET else None
        if back is not None:
            raise TableHalt(
                "source-went-back",
                f"offset {back.offset} of {self.topic} partition {back.partition} was committed at the source at"
                f" {_time(back.ts_ms)} with position {back.position}, lower than {back.last_position}, reached at"
                f" {_time(back.last_ts_ms)}: the source was restored or failed over to an earlier position",
                f"set `epoch: {self._settings.epoch + 1}` for this table if what follows is to replace what was before",
            )

    def _merge(self, records: DataFrame, found: Facts, progress: Progress, part: Slice) -> None:
        truncated = found.truncated if self._settings.truncate in ("apply", "soft") else None
        after = self._after(progress, found, part, truncated)
        head = self._head
        assert head is not None
        to = Destination(
            lake=self._lake,
            deletes=self._deletes,
            topic=self.topic,
            connector=progress.connector,
            columns=self._columns,
            key={name: self._columns[name] for name in progress.key},
            settings=self._settings,
            tell=lambda event, count: self._bound.warning(event, count=count),
        )
        slice_ = DecodedSlice(
            records,
            found,
            truncated,
            after.truncated,
            first=head.progress is None,
            reads_lately=(after.source_ts_ms or 0) - (after.read_ts_ms or 0) < _READS_SENT_AGAIN,
        )
        self._commit(head, after, self._mode.write(to, slice_), found)

    def _after(self, progress: Progress, found: Facts, part: Slice, truncated: str | None) -> Progress:
        last = dict(progress.last)
        for p, seen in found.partitions.items():
            before = last.get(p, Last())
            last[p] = Last(
                position=max(filter(None, (before.position, seen.position)), default=None),
                ts_ms=max(filter(None, (before.ts_ms, seen.ts_ms)), default=None),
                deleted_key=seen.deleted_key,
            )
        return progress.next_commit(
            next={**progress.next, **part.end},
            last=last,
            position=max(filter(None, (progress.position, found.position)), default=None),
            truncated=max(filter(None, (progress.truncated, truncated)), default=None),
            source_ts_ms=max(filter(None, (progress.source_ts_ms, found.newest_ts_ms)), default=None),
            read_ts_ms=max(filter(None, (progress.read_ts_ms, found.read_ts_ms)), default=None),
            records=progress.records + found.applied,
            quarantined=progress.quarantined + found.bad,
            recent=(*progress.recent, (found.records, found.bad)),
        )

    def _commit(self, head: Head, after: Progress, write: Callable[[], None], found: Facts) -> None:
        recent, bad = too_many_bad(after.recent, self._around.config.quarantine.max_ratio)
        after = after.model_copy(update={"recent": recent})
        self._head = self._lake.commit(head, after, write)
        self._bound.info(
            "committed",
            version=self._head.version,
            records=found.records,
            applied=found.applied,
            quarantined=found.bad,
            next=dict(after.next),
        )
        self._around.status.update(self.name, last_commit_at=datetime.now(timezone.utc).timestamp())
        if bad is not None:
            raise TableHalt(
                "too-many-bad-records",
                f"{bad} of the last records went to the quarantine table, more than quarantine.max_ratio allows",
                "look at their reasons in the quarantine table; mend the cause or raise quarantine.max_ratio",
            )

    def _report(self, state: TableState) -> None:
        progress = self._head.progress if self._head else None
        self._around.status.update(
            self.name,
            topics=(self.topic,),
            state=state,
            position=progress.position if progress else None,
            next_offsets={self.topic: self.taken},
            goal_offsets={self.topic: dict(self.goal)},
            records_applied=progress.records if progress else 0,
            quarantined=progress.quarantined if progress else 0,
            source_ts=progress.source_ts_ms if progress else None,
            error=None,
        )


def _deletes_path(config: Config, table: TableId) -> str:
    parts = [p for p in ("_distributary", "deleted", table.database, table.schema, table.table) if p]
    return "/".join([str(config.target.path).rstrip("/"), *parts])


def _ranges(next_offsets: Mapping[int, int]) -> str:
    return ", ".join(f"up to {offset - 1} (partition {p})" for p, offset in sorted(next_offsets.items()))


def _time(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
