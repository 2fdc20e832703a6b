"""A batch of events as columns, so that plain keys are settled without a Python object for each.

| column | type | what it holds |
| --- | --- | --- |
| partition, offset | int | where the record is |
| timestamp, time | int64 | Kafka's and the source's time |
| operation | string | as Event.op |
| key | string | as Event.key |
| level, sub_position | any that sorts | as in Position; both null if the source names no position, level if unknown |
| series | any | equal where level and sub_position may be compared: epoch and binlog server |
| snapshot_identity | string | as Event.snapshot_identity |
| content | string | as Event.content |
| special | bool | must be processed as a single event: a key change, unavailable values, quarantine |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.event import TOMBSTONE, Event

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

LETTERS = ("c", "u", "r", "d", "t", TOMBSTONE)
"""The operations by their numbers."""

CREATE, UPDATE, SNAPSHOT_ROW, DELETE, TRUNCATE, TOMBSTONE_CODE = range(len(LETTERS))


@dataclass(frozen=True)
class EventColumns:
    """`table` has the columns above, each partition's events by offset. `event` makes the event at an index; it is
    called for special keys, and a few times for each partition."""

    table: pa.Table
    event: Callable[[int], Event]
    partition: Ints = field(init=False)
    operation: Ints = field(init=False)
    key_numbers: Ints = field(init=False)
    """For each event the number of its key; -1 for an event without a key."""
    keys: pa.Array = field(init=False)
    """The keys by their numbers."""
    _arrays: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "partition", self.ints("partition"))
        operation_numbers = pc.index_in(self.column("operation"), pa.array(LETTERS))
        put(self, "operation", np.asarray(operation_numbers).astype(np.int64))
        keys = self.column("key")
        if not pa.types.is_dictionary(keys.type):
            keys = keys.dictionary_encode()
        indices = keys.indices.fill_null(-1) if keys.indices.null_count else keys.indices
        put(self, "key_numbers", np.asarray(indices).astype(np.int64))
        put(self, "keys", keys.dictionary)

    @property
    def count(self) -> int:
        """The number of events."""
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        """One Arrow array."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = one_array(self.table[name])
        return array

    def ints(self, name: str) -> Ints:
        """A column of numbers without nulls."""
        return np.asarray(self.column(name)).astype(np.int64)

    def bools(self, name: str) -> Bools:
        """A column of truth values without nulls."""
        return as_bools(self.column(name))

    @property
    def is_uniform(self) -> bool:
        """Whether all positions may be compared by level and sub_position."""
        return len(pc.unique(self.column("series").drop_null())) <= 1

    def key_numbers_of(self, keys: Any) -> Ints:
        """The numbers of those of the keys that are in the batch, in ascending order."""
        wanted = pa.array(list(keys), self.keys.type)
        if not len(wanted):  # a search would prepare all names for it
            return np.zeros(0, np.int64)
        codes: Ints = np.flatnonzero(as_bools(pc.is_in(self.keys, wanted)))
        return codes


def one_array(column: Any) -> Any:
    """A column as one array; not copied if it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def as_bools(array: Any) -> Bools:
    """An Arrow array of truth values; null is false."""
    array = one_array(array)
    if array.null_count:
        array = array.fill_null(False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def compare_events(columns: EventColumns, indexes: Ints) -> tuple[Bools, Bools, Bools]:
    """Compares the events at these indexes, each but the first with the one before it: whether its position is later,
    whether it is the same, and whether its `sub_position` is higher. False if a position is unknown."""
    indices = pa.array(indexes)
    level, sub_position = columns.column("level").take(indices), columns.column("sub_position").take(indices)
    same_level = as_bools(pc.equal(level[1:], level[:-1]))
    higher_level = as_bools(pc.greater(level[1:], level[:-1]))
    same_sub_position = as_bools(pc.equal(sub_position[1:], sub_position[:-1]))
    higher_sub_position = as_bools(pc.greater(sub_position[1:], sub_position[:-1]))
    return higher_level | (same_level & higher_sub_position), same_level & same_sub_position, higher_sub_position
