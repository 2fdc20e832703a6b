"""Makes the keys of records without a key from columns of their rows.

An update that changes these columns becomes two changes, as the connector would have sent for a record with a key: the
delete of the old key, and the create of the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.decode.columns import Columns, struct_array
from distributary.decode.envelope import MESSAGE, TOMBSTONE
from distributary.decode.wire_records import WireRecords, WireRows

_Flags = npt.NDArray[np.bool_]


class RowKeys:
    """The keys in the rows of a batch. `names` are the lake's names of the key's columns."""

    def __init__(self, batch: WireRecords, after: Columns, before: Columns, names: Sequence[str]) -> None:
        self._batch = batch
        self._after, self._before = after, before
        self._names = [name for name in names if name in after.arrays]
        self._is_whole = len(self._names) == len(names)
        self._of_after = self._usable(batch.after, after)
        self._of_before = self._usable(batch.before, before)
        operations = np.array([operation or "" for operation in batch.operations])
        self._is_delete = np.isin(operations, ("d", TOMBSTONE))
        self._is_split = (operations == "u") & self._of_before & self._of_after & self._differs()
        self._judge(operations)

    def _usable(self, side: WireRows, columns: Columns) -> _Flags:
        """Whether each row has a value in some column of the key, and none in these columns that its type can't
        hold."""
        has_value = np.zeros(self._batch.count, bool)
        for name in self._names:
            has_value |= np.asarray(columns.arrays[name].is_valid())
        for place, names in columns.bad.items():
            if not set(self._names).isdisjoint(names):
                has_value[place] = False
        there = np.array([row is not None for row in side.rows], bool)
        whole = {id(reader): self._has_key(reader) for reader in side.readers if reader is not None}
        known = np.array([reader is not None and whole[id(reader)] for reader in side.readers], bool)
        usable: _Flags = has_value & there & known
        return usable if self._is_whole else np.zeros(self._batch.count, bool)

    def _has_key(self, reader: Any) -> bool:
        lake = reader.shape.lake
        return set(self._names) <= {lake[name] for name in reader.types}

    def _differs(self) -> _Flags:
        differs = np.zeros(self._batch.count, bool)
        for name in self._names:
            one, other = self._before.arrays[name], self._after.arrays[name]
            equal = pc.fill_null(pc.equal(one, other), False)
            both_null = pc.and_(one.is_null(), other.is_null())
            differs |= ~np.asarray(pc.or_(equal, both_null))
        return differs

    def _judge(self, operations: npt.NDArray[np.str_]) -> None:
        needs_key = ~np.isin(operations, ("t", MESSAGE, ""))
        has_key = np.where(self._is_delete, self._of_before, self._of_after)
        for place in np.flatnonzero(needs_key & ~has_key).tolist():
            self._batch.faults.add(place, reasons.NO_KEY_COLUMNS)

    def columns(self) -> dict[str, pa.Array]:
        """The columns key, old_key, new_key, moved_in and moved_out, with one change per record."""
        from_before = pa.array(self._is_delete)
        arrays = {
            name: pc.if_else(from_before, self._before.arrays[name], self._after.arrays[name]) for name in self._names
        }
        has_key = np.where(self._is_delete, self._of_before, self._of_after)
        none = [False] * self._batch.count
        return {
            "moved_in": pa.array(none, pa.bool_()),
            "moved_out": pa.array(none, pa.bool_()),
            "key": struct_array(arrays, has_key.tolist()),
            "old_key": struct_array(arrays, none),
            "new_key": struct_array(arrays, none),
        }

    def split(self, events: pa.Table) -> pa.Table:
        """The events, with each update of a key as two changes."""
        if not self._is_split.any():
            return events
        count = self._batch.count
        order = np.repeat(np.arange(count), np.where(self._is_split, 2, 1))
        halved = self._is_split[order]
        second = np.zeros(len(order), bool)
        second[1:] = halved[1:] & (order[1:] == order[:-1])
        first = halved & ~second
        old, new = (self._keys(columns).take(pa.array(order)) for columns in (self._before, self._after))
        repeated = events.take(pa.array(order))
        deletes, creates = pa.array(first), pa.array(second)
        changed = {
            "operation": pc.if_else(deletes, "d", pc.if_else(creates, "c", repeated["operation"])),
            "moved_in": creates,
            "moved_out": deletes,
            "key": _chosen(first, old, _chosen(second, new, repeated["key"])),
            "old_key": _chosen(second, old, repeated["old_key"]),
            "new_key": _chosen(first, new, repeated["new_key"]),
            "row": _only(~first, repeated["row"]),
            "unavailable": _only(~first, repeated["unavailable"]),
        }
        if "before" in repeated.column_names:
            changed["before"] = _only(~second, repeated["before"])
        for name, column in changed.items():
            repeated = repeated.set_column(repeated.column_names.index(name), name, column)
        return repeated

    def _keys(self, columns: Columns) -> pa.Array:
        arrays = {name: columns.arrays[name] for name in self._names}
        return struct_array(arrays, [True] * self._batch.count)


def _chosen(choice: _Flags, one: Any, other: Any) -> pa.Array:
    """The values of `one` where the choice is true, else of `other`."""
    arrays = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in (one, other)]
    arrays = [pa.concat_arrays(part.chunks) if isinstance(part, pa.ChunkedArray) else part for part in arrays]
    place = np.arange(len(choice)) + np.where(choice, 0, len(choice))
    return pa.concat_arrays(arrays).take(pa.array(place))


def _only(there: _Flags, column: Any) -> Any:
    """The column with nulls where `there` is false."""
    return column.take(pa.array(np.arange(len(there)), mask=~there))
