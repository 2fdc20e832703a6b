"""Writes rows in the tasks that decode them, so that they do not pass through the driver.

A task can't know whether a row is the last one of its key. It writes rows that are expected to be so: those of a
snapshot, and those of creates among inserts alone. The driver then decides by the events (see apply.task_rows).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from distributary.apply.new_rows import inserted_rows
from distributary.apply.task_rows import RecordPlaces, only_inserts
from distributary.delta.data_file import FileOptions, fitted, write_files
from distributary.delta.live_file import LiveFile
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles
from distributary.errors import DistributaryError

FILE_BYTES = 64 * 2**20
"""Bytes of events in memory whose rows make a file. This bounds the memory of a task."""
LEAST_BYTES = 8 * 2**20
"""Bytes of events in memory whose rows are worth a file: smaller ones would soon be compacted, which costs more than
rows that pass through the driver."""
_ONE_FILE = FileOptions(target_bytes=sys.maxsize, thread_bytes=sys.maxsize)
_ADD = b"add"


@dataclass(frozen=True)
class TaskFile:
    """A data file that no version of the table has yet, and the records of its rows."""

    file: LiveFile
    places: RecordPlaces

    def as_table(self) -> pa.Table:
        """The form in which a task returns it."""
        columns = {"partition": pa.array(self.places.partitions), "offset": pa.array(self.places.offsets)}
        return pa.table(columns).replace_schema_metadata({_ADD: json.dumps(self.file.action)})

    @staticmethod
    def from_table(table: pa.Table) -> TaskFile:
        """The reverse of as_table()."""
        places = RecordPlaces(table["partition"].to_numpy(), table["offset"].to_numpy())
        return TaskFile(LiveFile(json.loads(table.schema.metadata[_ADD])), places)


@dataclass(frozen=True)
class TaskWriter:
    """Writes rows of one table's `topic` into data files, in a task.

    `table`: the table's columns and properties, without its data files. `row`: the columns of the source. See
    FILE_BYTES and LEAST_BYTES for the other two.
    """

    files: TableFiles
    table: DeltaSnapshot
    key: tuple[str, ...]
    row: pa.StructType
    topic: str
    marks_deleted: bool
    file_bytes: int
    least_bytes: int

    def write(self, events: pa.Table) -> TaskFile | None:
        """Writes the rows of events. Returns None if that fails: the driver writes them then, and meets the fault."""
        rows = inserted_rows(events, self.row, self.topic, marks_deleted=self.marks_deleted)
        try:
            (new,) = write_files(self.files, self.table, fitted(rows, self.table.schema), self.key, _ONE_FILE)
        except (DistributaryError, OSError, ValueError, pa.ArrowException):
            return None
        places = RecordPlaces(new.rows["__partition"].to_numpy(), new.rows["__offset"].to_numpy())
        return TaskFile(new.file, places)


class PendingRows:
    """The events of one task whose rows wait to be written."""

    def __init__(self, writer: TaskWriter) -> None:
        self._writer = writer
        self._pending: list[pa.Table] = []
        self._bytes = 0

    def add_inserts(self, events: pa.Table) -> pa.Table:
        """Takes the events whose rows are to be written. Returns all others."""
        mask = only_inserts(events, self._writer.key)
        if not mask.any():
            return events
        chosen = events if mask.all() else events.filter(pa.array(mask))
        self._pending.append(chosen)
        self._bytes += chosen.nbytes
        return events.filter(pa.array(~mask))

    def flush(self, *, at_end: bool = False) -> Iterator[TaskFile | pa.Table]:
        """Writes the rows that make a file; `at_end` all of them. Returns files, and events: those of the files' rows
        without values, and those of rows that were not written with them."""
        wanted_bytes = self._writer.least_bytes if at_end else self._writer.file_bytes
        if not self._pending or (self._bytes < wanted_bytes and not at_end):
            return
        events = pa.concat_tables(self._pending).combine_chunks()
        file = self._writer.write(events) if self._bytes >= wanted_bytes else None
        self._pending, self._bytes = [], 0
        if file is not None:
            yield file
            events = events.drop_columns(["row"])
        yield events
