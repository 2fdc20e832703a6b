"""Applies batches to a table: the rules decide, Arrow carries the values, one commit writes everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from distributary.apply.apply_events import apply_events
from distributary.apply.memory import TableSpec
from distributary.apply.origin_columns import DELETED
from distributary.apply.task_rows import NO_FILES, WrittenRows
from distributary.config.delta_properties import interval_seconds
from distributary.config.table import TableSettings
from distributary.delta.checkpoint import LogCheckpointer
from distributary.delta.commit import CommitPayload, concurrent_change
from distributary.delta.index_cache import IndexCache
from distributary.delta.log_reader import LogReader
from distributary.delta.storage import TableFiles
from distributary.delta.table_storage import table_files
from distributary.delta.table_view import TableView
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.ingest import task_writer
from distributary.ingest.applied_writer import AppliedWriter
from distributary.ingest.decoded_batch import (
    DecodedBatch,
    PreparedBatch,
    arrow_struct,
    known_defaults,
    lacks_first_copies,
    with_rejected,
    without_position,
)
from distributary.ingest.memory_store import MemoryStore
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.source_checks import check_scopes, truncate_halts
from distributary.ingest.task_files import why_driver_must_write
from distributary.ingest.task_writer import TaskWriter
from distributary.lake.layout import FILES_KEPT
from distributary.lake.table import LakeTable
from distributary.progress.record import APP_ID, Head, Progress
from distributary.reasons import CONTRADICTED_POSITION
from distributary.rules.columns import Bools, as_bools, one_array
from distributary.rules.event import Event, Pointer
from distributary.rules.passed_positions import add_partitions, note_caught_up, schedule_partition_change_end
from distributary.rules.quarantine_order import note_without_order
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema

_USUALLY_KEPT = "interval 7 days"
"""Delta's default of FILES_KEPT."""


class BatchWriter:
    """The writer of one table. Not safe for several threads."""

    def __init__(self, settings: TableSettings, index_cache: Callable[[], IndexCache]) -> None:
        self._settings = settings
        self._index_cache = index_cache
        self._memory = MemoryStore()
        self._writer: TableWriter | None = None
        self._key: list[str] = []
        self._filesystem: fs.FileSystem | None = None
        self._keeper: LogCheckpointer | None = None
        self._was_read_back = False
        """Whether most files that tasks wrote for a batch were of no use: at the end of a snapshot changes of its rows
        follow, and so they do from then on."""

    @property
    def service_columns(self) -> Mapping[str, str]:
        """The columns that the table has beside the source's: name to Spark type."""
        return service_columns_of(self._settings)

    def prepare(self, lake: LakeTable, batch: DecodedBatch, head: Head) -> PreparedBatch:
        """Applies a batch to the table's rows in memory, and prepares its commit. `head`: the commit that the batch
        continues from. Raises TableHalt, and TransientError, also if the table has a newer progress record than
        `head`."""
        settings = self._settings
        rules = RuleSettings(
            batch.connector,
            settings.mode,
            settings.deletes,
            settings.truncate,
            deletes_are_null=batch.unwrapped and not pc.any(pc.equal(batch.events["operation"], "d")).as_py(),
            keyless=not batch.key,
        )
        row, key = (arrow_struct(columns) for columns in (batch.columns, batch.key))
        spec = TableSpec(
            rules, batch.topic, row, key, known_defaults(batch.before), transactions=settings.has_transactions
        )
        files = table_files(lake.session, lake.path)
        writer = self._writer_of(lake, files, list(batch.key))
        sync_writer(writer, lake, head)
        memory = self._memory.load(files, spec, batch.before, batch.partitions)
        spec = replace(spec, rules=replace(rules, compacted=lacks_first_copies(batch, memory.state)))
        if batch.partitions > memory.state.partitions:
            add_partitions(batch.connector, memory.state, batch.partitions)
        notes = without_position(batch) if rules.mode != "append" else []
        forgotten = note_without_order(memory.state, notes) if notes else 0
        located = AppliedWriter(writer, spec)
        events, quarantined = with_rejected(batch)
        replayed = None if batch.replayed is None else self._without_existing(writer, batch.replayed)
        written = self._written_rows(batch, writer, lake.session.sparkContext.master)
        applied = apply_events(
            spec, memory, events, located, quarantined=quarantined, replayed=replayed, written=written
        )
        if applied.changes.halting:
            raise truncate_halts(batch.topic, applied.changes.halting[0])
        if applied.changes.is_refused:
            back = _first_of_each(applied.changes.went_back)
            contradicted = _places_before(back, applied.changes.contradicted)
            return PreparedBatch(_nothing, went_back=back, contradicted=contradicted)
        if written.files and not _has_contradicted(batch.rejected):
            self._was_read_back |= 2 * len(applied.files) < len(written.files)
        check_scopes(applied.truncates, list(batch.key), batch.topic, self._settings, partial(_knows, writer, events))
        if batch.partition_change_read:
            schedule_partition_change_end(batch.connector, memory.state)
        if batch.caught_up:
            note_caught_up(batch.connector, memory.state)

        rows: dict[str, int] = {}

        def write(_head: Head, progress: Progress) -> None:
            record = self._memory.put(files, memory, progress)
            text = CommitPayload(record.to_json(), APP_ID, record.sequence)
            if batch.written is None:
                done = located.write(applied, text)
            else:
                used = [file.number for file in applied.files]
                with batch.written.committing(used) as files_of_tasks:
                    done = located.write(applied, text, files_of_tasks)
            rows.update(inserted=done.inserted, updated=done.updated, deleted=done.deleted)
            self._memory.keep(record.commit, memory)

        changes = applied.changes
        return PreparedBatch(
            write,
            changes.ambiguous,
            changes.unknown,
            changes.forgotten_keys,
            changes.without_order,
            forgotten + changes.forgotten,
            changes.stale_snapshot_rows,
            rows=rows,
        )

    def task_writer(
        self, lake: LakeTable, schema: RecordSchema, topic: str, *, ahead: bool = False
    ) -> TaskWriter | str:
        """The writer for tasks that decode records with these columns, or why the driver has to write all rows. Reads
        the newest version of the table. `ahead`: another batch is committed before theirs."""
        if not schema.key:
            return "the table has no key"
        if self._was_read_back:
            return "most files that tasks wrote for an earlier batch had to be read back"
        files = table_files(lake.session, lake.path)
        # Not by self._writer: a change of the table's columns since the last commit is noticed by its next sync.
        table = LogReader(files).newest(None).snapshot
        master = lake.session.sparkContext.master
        if reason := why_driver_must_write(self._settings, table, files, master, ahead=ahead):
            return reason
        return TaskWriter(
            files,
            replace(table, files={}),
            tuple(schema.key),
            arrow_struct(schema.row),
            topic,
            marks_deleted=DELETED in self.service_columns,
            file_bytes=task_writer.FILE_BYTES,
            least_bytes=task_writer.LEAST_BYTES,
        )

    def _written_rows(self, batch: DecodedBatch, writer: TableWriter, master: str | None) -> WrittenRows:
        """The rows that tasks wrote. Raises ConcurrentChange if another writer has made the table one that can't have
        their files."""
        if batch.written is None or not batch.written.files:
            return NO_FILES
        table, files, tasks = writer.snapshot, batch.written.files, batch.written.writer
        if table.schema != tasks.table.schema or why_driver_must_write(self._settings, table, tasks.files, master):
            raise concurrent_change(tasks.files.root, table.version)
        columns = list(batch.columns)
        places = [file.places for file in files]
        return WrittenRows(places, lambda number: writer.read_file(files[number].file, columns))

    def find(
        self, lake: LakeTable, key: Sequence[str], columns: Sequence[str], choose: Callable[[pa.Table], Bools]
    ) -> pa.Table:
        """These columns of the table's rows for which `choose` is true; it is given pieces of the table."""
        return self.table_writer(lake, key).read_all(columns, choose).rows

    def view(self) -> TableView | None:
        """The table after its last commit; None before the first."""
        return None if self._writer is None else self._writer.view()

    def write_log_checkpoint_if_due(self, lake: LakeTable) -> None:
        """Writes a checkpoint of the table's log where one is due. To be called between commits."""
        if self._writer is None:
            return
        if self._keeper is None:
            self._keeper = LogCheckpointer(lake.session, lake.path, table_files(lake.session, lake.path))
        if self._keeper.is_due(self._writer.snapshot):
            self._keeper.checkpoint(self._writer.snapshot)

    def table_writer(self, lake: LakeTable, key: Sequence[str]) -> TableWriter:
        """The reader and writer of the table's rows, at the newest version."""
        writer = self._writer_of(lake, table_files(lake.session, lake.path), list(key))
        writer.sync()
        return writer

    def remove_old_memory(self, lake: LakeTable, progress: Progress) -> None:
        """Removes memory files that no restorable version of the table names. `progress`: its record."""
        writer = self.table_writer(lake, progress.key)
        retention_seconds = interval_seconds(writer.snapshot.properties.get(FILES_KEPT, _USUALLY_KEPT))
        if retention_seconds is not None:
            self._memory.remove_old(table_files(lake.session, lake.path), retention_seconds, progress.memory)

    def _writer_of(self, lake: LakeTable, files: TableFiles, key: list[str]) -> TableWriter:
        # A table of truncates alone has no key yet, and keys of an object store may be renewed.
        known = (self._key, self._filesystem)
        if self._writer is None or known != (key, files.filesystem):
            committer = DeltaCommitter(lake.session, lake.path, files)
            layout = removal_layout(self._settings)
            self._writer, self._key = TableWriter(files, key, committer, self._index_cache(), layout=layout), key
            self._filesystem, self._keeper = files.filesystem, None
        return self._writer

    def _without_existing(self, writer: TableWriter, replayed: pa.Table) -> pa.Table:
        """The events that a table of changes does not have. They are replayed twice if the service ended before they
        were marked as applied."""
        if self._settings.mode != "append":
            return replayed
        # By position, too: a topic that was created again has other records at the same offsets.
        names = ["__partition", "__offset", "__op", "__position"]
        of_events = ["partition", "offset", "operation", "position"]
        offsets = pc.unique(replayed["offset"])
        rows = writer.read_all(names, lambda rows: as_bools(pc.is_in(rows["__offset"], offsets))).rows
        known = set(zip(*(rows[name].to_pylist() for name in names), strict=True))
        places = zip(*(replayed[name].to_pylist() for name in of_events), strict=True)
        return replayed.filter(pa.array([place not in known for place in places], pa.bool_()))


def sync_writer(writer: TableWriter, lake: LakeTable, head: Head) -> None:
    """Brings the writer to the newest version. Others may have compacted the table or changed its properties since
    `head`. Raises ConcurrentChange if it has other columns, or another record and so other rows, than the batch is
    for."""
    before = writer.column_names
    version = writer.sync()
    if version == head.version:
        return
    if before not in (None, writer.column_names):  # the batch was decoded for the columns from before
        raise concurrent_change(lake.path, head.version)
    now = lake.head(head)
    known = None if head.progress is None else head.progress.commit
    commit = None if now is None or now.progress is None else now.progress.commit
    if now is None or now.version != version or commit != known:
        raise concurrent_change(lake.path, head.version)


def _knows(writer: TableWriter, events: pa.Table, column: str, name: str) -> bool:
    """Whether a change among the events, or a row of the table, has that name in that column of the key."""
    of_changes = one_array(events.filter(pc.not_equal(events["operation"], "t"))["key"])
    if pc.any(pc.equal(pc.struct_field(of_changes, column), name)).as_py():
        return True
    return bool(writer.read_all([column], lambda rows: as_bools(pc.equal(rows[column], name))).rows.num_rows)


def _nothing(_head: Head, _progress: Progress) -> None:
    raise AssertionError("nothing may be committed of a batch that was refused")


def _has_contradicted(rejected: pa.Table) -> bool:
    """Whether a record was rejected only after a task wrote its row: that says nothing of the next batches."""
    return bool(pc.any(pc.equal(rejected["reason"], CONTRADICTED_POSITION.code)).as_py())


def _places_before(back: Sequence[Event], events: Iterable[Event]) -> frozenset[Pointer]:
    """The places of the events before the first one of their partition that went back. Those behind it are not decided
    yet: a higher `epoch` may apply to them."""
    ends = {event.partition: event.offset for event in back}
    return frozenset(event.at for event in events if event.offset < ends.get(event.partition, event.offset + 1))


def _first_of_each(events: list[Event]) -> tuple[Event, ...]:
    first: dict[int, Event] = {}
    for event in events:
        known = first.get(event.partition)
        if known is None or event.offset < known.offset:
            first[event.partition] = event
    return tuple(first[partition] for partition in sorted(first))
