"""Makes of a table what its batches say: the rules decide, Arrow carries the values, one commit writes it all."""

from __future__ import annotations

import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from distributary.apply.batch import apply_events
from distributary.apply.memory import Memory, TableLayout, first_memory
from distributary.apply.memory_file import read_memory, write_memory
from distributary.apply.stored_rows import DELETED
from distributary.apply.values import one_array
from distributary.config.delta_properties import interval_seconds
from distributary.config.table import TableSettings
from distributary.decode.record_schema import arrow_of
from distributary.delta.checkpoint import LogKeeper
from distributary.delta.commit import ProgressRecord
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import Layout
from distributary.delta.storage import TableFiles
from distributary.delta.table_features import VECTORS
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.errors import TableHalt
from distributary.ingest.applied_writer import AppliedWriter
from distributary.merge.mode import ORIGIN_COLUMNS
from distributary.merge.progress import APP_ID, Head, Progress
from distributary.merge.table import LakeTable, Write
from distributary.rules.columns import Bools, as_bools
from distributary.rules.event import Event
from distributary.rules.state import Rules
from distributary.rules.watermark import grow, schedule_growth_end

_CHANGES = pa.array(["c", "u", "d", "r", "t"])
_MEMORY_FILES = "_distributary/memory"
_FILES_KEPT, _USUALLY_KEPT = "delta.deletedFileRetentionDuration", "interval 7 days"
_INDEX_MEMORY = 256 * 2**20
_INDEX_DISK = 4 * 2**30


def new_index_cache() -> IndexCache:
    """The key indexes of all tables: bytes in memory, and in a directory that goes with the cache, or with the process
    unless that is killed."""
    folder = tempfile.TemporaryDirectory(prefix="distributary-index-")
    cache = IndexCache(Path(folder.name), _INDEX_MEMORY, _INDEX_DISK)
    weakref.finalize(cache, folder.cleanup)
    return cache


@dataclass(frozen=True)
class Batch:
    """A decoded batch, `events` and `rejected` (see decode.events.make_events), on its way to its table.

    `columns` and `key`: the source's columns that the table has and those of its key, name to Spark type. `before`: the
    table's record. `partitions`: how many the topic has. `compacted`: the topic keeps the last record of each key.
    `unwrapped`: records have no envelope.
    `growth_over`: all that was sent before the topic got more partitions is in this batch or before it. `replayed`:
    events that come back from quarantine.
    """

    topic: str
    connector: str
    columns: Mapping[str, str]
    key: Mapping[str, str]
    events: pa.Table
    rejected: pa.Table
    before: Progress | None
    partitions: int
    compacted: bool = False
    unwrapped: bool = False
    growth_over: bool = False
    replayed: pa.Table | None = None


@dataclass(frozen=True)
class Prepared:
    """A batch that is ready to be committed, by `write`, once; then `rows` has how many rows it inserted, updated
    and deleted. `ambiguous` counts deletes of which nothing tells
    whether they took the new row of a key or the one before it (rule 2.7). `went_back`: the first event of each
    partition that shows that the source was set back (rule 2.6); then nothing may be committed."""

    write: Write
    ambiguous: int = 0
    went_back: tuple[Event, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)


def service_columns_of(settings: TableSettings) -> Mapping[str, str]:
    """The columns that a table has beside the source's: name to Spark type."""
    if settings.mode == "history":
        ends = {"__start_at": "string", "__end_at": "string", "__current": "boolean"}
        return {**ends, **ORIGIN_COLUMNS, "__moved_from": "string"}
    if settings.mode == "append":
        return {**ORIGIN_COLUMNS, "__unavailable": "array<string>"}
    return {**ORIGIN_COLUMNS, **({DELETED: "boolean"} if settings.marks_deleted else {})}


def removal_layout(settings: TableSettings) -> Layout:
    """How rows leave the table's files: by deletion vectors where that is cheaper, unless the config says that the
    table is to have none."""
    said = {name.lower(): value.lower() for name, value in settings.properties.items()}
    return Layout.REWRITE if said.get(VECTORS.lower()) == "false" else Layout.AUTO


class BatchWriter:
    """The writer of one table. Not safe for several threads."""

    def __init__(self, settings: TableSettings, index_cache: Callable[[], IndexCache]) -> None:
        self._settings = settings
        self._index_cache = index_cache
        self._memory: tuple[str, Memory] | None = None
        self._writer: TableWriter | None = None
        self._key: list[str] = []
        self._keeper: LogKeeper | None = None

    @property
    def service_columns(self) -> Mapping[str, str]:
        """The columns that the table has beside the source's: name to Spark type."""
        return service_columns_of(self._settings)

    @property
    def reads_before(self) -> bool:
        """Whether records are decoded with the row before the change."""
        return self._settings.mode == "append"

    def prepare(self, lake: LakeTable, batch: Batch) -> Prepared:
        """Applies a batch to the table's rows, and makes ready what commits it. Raises TableHalt and TransientError."""
        settings = self._settings
        rules = Rules(
            batch.connector,
            settings.mode,
            settings.deletes,
            settings.truncate,
            deletes_are_null=batch.unwrapped and not pc.any(pc.equal(batch.events["operation"], "d")).as_py(),
            compacted=batch.compacted,
            keyless=not batch.key,
        )
        row, key = (arrow_struct(columns) for columns in (batch.columns, batch.key))
        layout = TableLayout(rules, batch.topic, row, key)
        files = table_files(lake.session, lake.path)
        writer = self._writer_of(lake, files, list(batch.key))
        writer.sync()
        memory = self._memory_before(files, layout, batch)
        if batch.partitions > memory.state.partitions:
            grow(batch.connector, memory.state, batch.partitions)
        located = AppliedWriter(writer, layout)
        events, quarantined = _with_rejected(batch)
        replayed = None if batch.replayed is None else self._not_there(writer, batch.replayed)
        applied = apply_events(layout, memory, events, located, quarantined=quarantined, replayed=replayed)
        if applied.changes.went_back:
            return Prepared(_nothing, went_back=_first_of_each(applied.changes.went_back))
        if batch.growth_over:
            schedule_growth_end(batch.connector, memory.state)

        rows: dict[str, int] = {}

        def write(_head: Head, progress: Progress) -> None:
            name = f"{_MEMORY_FILES}/{uuid.uuid4()}.parquet"
            files.write(name, write_memory(memory))
            told = progress.model_copy(update={"memory": name})
            done = located.write(applied, ProgressRecord(told.to_json(), APP_ID, told.sequence))
            rows.update(inserted=done.inserted, updated=done.updated, deleted=done.deleted)
            self._memory = (told.commit, memory)

        return Prepared(write, applied.changes.ambiguous, rows=rows)

    def find(
        self, lake: LakeTable, key: Sequence[str], columns: Sequence[str], choose: Callable[[pa.Table], Bools]
    ) -> pa.Table:
        """These columns of the table's rows for which `choose` is true; it is given pieces of the table."""
        writer = self._writer_of(lake, table_files(lake.session, lake.path), list(key))
        writer.sync()
        return writer.read_all(columns, choose).rows

    def keep_log(self, lake: LakeTable) -> None:
        """Writes a checkpoint of the table's log where one is due. To be called between commits."""
        if self._writer is None:
            return
        if self._keeper is None:
            self._keeper = LogKeeper(lake.session, lake.path, table_files(lake.session, lake.path))
        if self._keeper.is_due(self._writer.snapshot):
            self._keeper.checkpoint(self._writer.snapshot)

    def remove_old_memory(self, lake: LakeTable, progress: Progress) -> None:
        """Removes memory files that no version names which the table can be set back to. `progress`: its record."""
        files = table_files(lake.session, lake.path)
        writer = self._writer_of(lake, files, list(progress.key))
        writer.sync()
        kept = interval_seconds(writer.snapshot.properties.get(_FILES_KEPT, _USUALLY_KEPT))
        folder = fs.FileSelector(files.place(_MEMORY_FILES), allow_not_found=True)
        if kept is None:
            return
        for info in files.filesystem.get_file_info(folder):
            name = f"{_MEMORY_FILES}/{info.base_name}"
            is_old = info.mtime is not None and info.mtime.timestamp() < time.time() - kept
            if is_old and name != progress.memory:
                files.delete([name])

    def _writer_of(self, lake: LakeTable, files: TableFiles, key: list[str]) -> TableWriter:
        if self._writer is None or self._key != key:  # a table of truncates alone has no key yet
            committer = DeltaCommitter(lake.session, lake.path, files)
            layout = removal_layout(self._settings)
            self._writer, self._key = TableWriter(files, key, committer, self._index_cache(), layout=layout), key
        return self._writer

    def _not_there(self, writer: TableWriter, replayed: pa.Table) -> pa.Table:
        """The events that a table of changes does not have. They come again where the service ended before it was
        written down that they were applied."""
        if self._settings.mode != "append":
            return replayed
        names, of_events = ["__partition", "__offset", "__op"], ["partition", "offset", "operation"]
        offsets = pc.unique(replayed["offset"])
        rows = writer.read_all(names, lambda rows: as_bools(pc.is_in(rows["__offset"], offsets))).rows
        known = set(zip(*(rows[name].to_pylist() for name in names), strict=True))
        places = zip(*(replayed[name].to_pylist() for name in of_events), strict=True)
        return replayed.filter(pa.array([place not in known for place in places], pa.bool_()))

    def _memory_before(self, files: TableFiles, layout: TableLayout, batch: Batch) -> Memory:
        """The memory after the commit before. What is returned is changed by this batch: it is kept again when that is
        committed."""
        known, self._memory = self._memory, None
        before = batch.before
        if known is not None and before is not None and known[0] == before.commit:
            return known[1]
        if before is not None and before.memory is not None:
            with files.open(before.memory) as stream:
                return read_memory(stream.read())
        if before is not None and before.records:
            raise _of_older_version(batch.topic)
        return first_memory(layout, batch.partitions)


def _of_older_version(topic: str) -> TableHalt:
    return TableHalt(
        "table-of-older-version",
        f"the table of {topic} was written by a version that kept what it remembers in columns (`__moved`, `__filled`,"
        " `__snapshot`, `__trace`); this version can't go on from them",
        "fill the table again: `distributary resume -c FILE TABLE --rebuild` (Kafka must still have its records, or the"
        " connector must send a snapshot); until then it stays as it is",
    )


def _with_rejected(batch: Batch) -> tuple[pa.Table, pa.Array | None]:
    """All events, each partition's by offset, and which of them are only known to be missing: rejected records of which
    the key and the place can be read. What they did is not known, and they may come back (rule 6.3)."""
    events, rejected = batch.events, batch.rejected
    if not rejected.num_rows or not batch.key:
        return events, None
    readable = pc.and_(pc.is_in(rejected["operation"], _CHANGES), pc.is_valid(rejected["position"]))
    readable = pc.and_(readable, pc.or_(pc.equal(rejected["operation"], "t"), _has_key(rejected)))
    waiting = rejected.filter(readable).select(events.column_names)
    mask = pa.array([False] * events.num_rows + [True] * waiting.num_rows, pa.bool_())
    both = pa.concat_tables([events, waiting]).append_column("rejected", mask).combine_chunks()
    both = both.take(np.lexsort((both["offset"].to_numpy(), both["partition"].to_numpy())))
    return both.drop_columns("rejected"), one_array(both["rejected"])


def _has_key(records: pa.Table) -> pa.Array:
    keys = one_array(records["key"])
    found = keys.is_valid()
    for part in keys.flatten():
        found = pc.and_(found, part.is_valid())
    return found


def arrow_struct(columns: Mapping[str, str]) -> pa.StructType:
    """The columns, name to Spark type, as a struct."""
    return pa.struct([(name, arrow_of(kind)) for name, kind in columns.items()])


def _nothing(_head: Head, _progress: Progress) -> None:
    raise AssertionError("nothing may be committed of a batch in which the source went back")


def _first_of_each(events: list[Event]) -> tuple[Event, ...]:
    first: dict[int, Event] = {}
    for event in events:
        known = first.get(event.partition)
        if known is None or event.offset < known.offset:
            first[event.partition] = event
    return tuple(first[partition] for partition in sorted(first))
