"""The rows of a batch that Spark's tasks wrote into data files, before the rules decided about them.

The events of these rows come without values. A file is used if each of its rows is the new row of its key. The rows of
all other files are read back into the events, as if no task had written them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.decoded_events import is_special
from distributary.rules.columns import Bools, Ints, as_bools, one_array
from distributary.rules.event import Pointer


@dataclass(frozen=True)
class RecordPlaces:
    """The records of a file's rows, in the file's order."""

    partitions: Ints
    offsets: Ints


@dataclass(frozen=True)
class WrittenRows:
    """Files that tasks wrote: the records of each, and what reads the source's columns of a file by its number, all
    rows in their order."""

    files: Sequence[RecordPlaces]
    read: Callable[[int], pa.Table]


def _no_file(_number: int) -> pa.Table:
    raise AssertionError("there is no file to read")


NO_FILES = WrittenRows((), _no_file)


@dataclass(frozen=True)
class UsedFile:
    """A file that becomes a part of the table: its number, and the keys of its rows in their order."""

    number: int
    keys: pa.StructArray


def only_inserts(events: pa.Table, row_key: Sequence[str]) -> Bools:
    """Which of the events are expected to be the only change of their key in the batch: rows of a snapshot, and creates
    if there is nothing but inserts. `row_key`: the names of the key's columns.

    A wrong guess costs time: the row is read back. If a column of the key is NULL in one of these rows, none is chosen.
    """
    arrays = {name: one_array(events[name]) for name in events.column_names}
    operations = arrays["operation"]
    inserts = as_bools(pc.is_in(operations, pa.array(["r", "c"])))
    chosen = inserts if inserts.all() else as_bools(pc.equal(operations, "r"))
    rows, keys = arrays["row"], arrays["key"]
    chosen &= as_bools(rows.is_valid()) & as_bools(keys.is_valid()) & ~as_bools(is_special(arrays))
    chosen_events = pa.array(chosen)
    if any(pc.struct_field(rows, name).filter(chosen_events).null_count for name in row_key):
        return np.zeros(len(chosen), np.bool_)
    return chosen


class TaskRows:
    """The rows of a batch that tasks wrote. `events`: its events, each partition's by offset. A row without an event is
    that of a record that was rejected afterwards; its file is never used."""

    def __init__(self, written: WrittenRows, events: pa.Table) -> None:
        self._events, self._read = events, written.read
        self._partitions = np.asarray(one_array(events["partition"])).astype(np.int64)
        self._offsets = np.asarray(one_array(events["offset"])).astype(np.int64)
        self._files = [self._places(file.partitions, file.offsets) for file in written.files]
        self._file_of = np.full(events.num_rows, -1, np.int64)
        for number, places in enumerate(self._files):
            self._file_of[places[places >= 0]] = number

    def _places(self, partitions: Ints, offsets: Ints) -> Ints:
        """The rows of `events` that have these records; -1 for none."""
        places = np.full(len(offsets), -1, np.int64)
        for partition in np.unique(partitions):
            start, end = np.searchsorted(self._partitions, [partition, partition + 1]).tolist()
            of_partition = np.flatnonzero(partitions == partition)
            wanted = offsets[of_partition]
            found = start + np.searchsorted(self._offsets[start:end], wanted)
            inside = np.minimum(found, max(end - 1, 0))
            is_there = (found < end) & (self._offsets[inside] == wanted) if end > start else np.zeros(len(wanted), bool)
            places[of_partition[is_there]] = found[is_there]
        return places

    @property
    def has_files(self) -> bool:
        """Whether any task wrote a file."""
        return bool(self._files)

    def places_of(self, pointers: Sequence[Pointer]) -> Ints:
        """The rows of `events` that have these records; -1 for records of other batches."""
        wanted = np.array(pointers, np.int64).reshape(-1, 2)
        return self._places(wanted[:, 0], wanted[:, 1])

    def used(self, new_rows: Ints) -> tuple[list[UsedFile], Bools]:
        """The files to use, and for each event whether its row is in one of them. `new_rows`: the events that are the
        new rows of their keys."""
        is_new_row = np.zeros(len(self._file_of), np.bool_)
        is_new_row[new_rows] = True
        counts = np.bincount(self._file_of[is_new_row & (self._file_of >= 0)], minlength=len(self._files))
        is_used = np.array([*(counts == [len(places) for places in self._files]), False])  # the last one: of no file
        keys = one_array(self._events["key"])
        numbers = np.flatnonzero(is_used).tolist()
        files = [UsedFile(number, keys.take(pa.array(self._files[number]))) for number in numbers]
        return files, is_used[self._file_of]

    def restored(self, places: Ints) -> pa.Table:
        """The events, with the values of all rows that share a file with the events at these places."""
        numbers = np.unique(self._file_of[places])
        numbers = numbers[numbers >= 0]
        if not len(numbers):
            return self._events
        number = self._events.schema.get_field_index("row")
        structs, sources, begin = [one_array(self._events["row"])], np.arange(self._events.num_rows), len(self._file_of)
        for file in numbers.tolist():
            has_event = self._files[file] >= 0
            structs.append(_as_structs(self._read(file), structs[0].type).filter(pa.array(has_event)))
            sources[self._files[file][has_event]] = begin + np.arange(len(structs[-1]))
            begin += len(structs[-1])
        return self._events.set_column(number, "row", pa.concat_arrays(structs).take(pa.array(sources)))


def _as_structs(rows: pa.Table, kind: pa.StructType) -> pa.StructArray:
    arrays = [one_array(rows[field.name]).cast(field.type) for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))
