"""Looks up the table's rows of a batch's keys, in the form that the rules need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import key_texts, keys_of
from distributary.apply.origin_columns import DELETED, ORIGIN, columns_of_end, row_of
from distributary.rules.columns import Bools, as_bools, one_array
from distributary.rules.event import ADOPTED, Pointer, Position
from distributary.rules.plain_keys import FoundKeys
from distributary.rules.position_text import read_position
from distributary.rules.state import Row, RuleSettings


class KeyLookup(Protocol):
    """Reads rows of the table. In `mode: history` it reads the newest version of each key, closed or not; in `mode:
    append` the newest streamed change of each key."""

    def read(self, keys: pa.StructArray, columns: Sequence[str]) -> pa.Table:
        """Those columns, and the key's, of the rows that have one of the keys; a row for each that exists."""
        ...

    def snapshot_positions(self, keys: pa.StructArray) -> Collection[str] | None:
        """Values of `__position` of rows that a snapshot read: those of the keys' rows, and maybe others. None if that
        is not known without reading the rows. For `mode: upsert`."""
        ...


class TableRows:
    """The table's rows by key. `keys` are the keys of the batch, each once: the first lookup reads the rows of all of
    them; rows of other keys are read one by one. `truncates` are the positions of remembered truncates."""

    def __init__(
        self, rules: RuleSettings, stored: KeyLookup, keys: pa.StructArray, truncates: Sequence[Position | None]
    ) -> None:
        self._connector, self._stored, self._keys, self._kind = rules.connector, stored, keys, keys.type
        self._truncates = truncates
        self._ends = columns_of_end(rules)
        self._columns = (*ORIGIN, *self._ends)

    @cached_property
    def _narrow_rows(self) -> pa.Table:
        """What find() needs of the rows. Most batches need no more, and positions and offsets are the largest
        columns."""
        return self._stored.read(self._keys, ("__op", "__partition", *self._ends)).combine_chunks()

    @cached_property
    def _rows(self) -> pa.Table:
        return self._read(self._keys)

    @cached_property
    def _texts(self) -> pa.Array:
        return self.texts_of(self._rows)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {text: index for index, text in enumerate(self._texts.to_pylist())}

    @cached_property
    def _known_keys(self) -> frozenset[str]:
        return frozenset(key_texts(self._keys).to_pylist())

    def _read(self, keys: pa.StructArray) -> pa.Table:
        return self._stored.read(keys, self._columns).combine_chunks()

    def texts_of(self, rows: pa.Table) -> pa.Array:
        """The keys of rows, as the rules name them."""
        names = [field.name for field in self._kind]
        arrays = [one_array(rows[name]).cast(self._kind.field(name).type) for name in names]
        return key_texts(pa.StructArray.from_arrays(arrays, fields=list(self._kind)))

    def find(self, keys: Any) -> FoundKeys:
        """See rules.plain_keys.Rows."""
        rows = self._narrow_rows
        places = pc.index_in(keys, self.texts_of(rows))

        def column(name: str) -> pa.Array:
            return one_array(rows[name]).take(places)

        exists = as_bools(places.is_valid())
        alive: Bools = exists & ~as_bools(column(DELETED)) if DELETED in self._ends else exists
        partition = column("__partition").fill_null(ADOPTED).to_numpy().astype(np.int64)
        return FoundKeys(exists, alive, partition, as_bools(pc.equal(column("__op"), "r")))

    def snapshot_positions(self) -> Collection[Position] | None:
        """See rules.plain_keys.Rows."""
        texts = self._stored.snapshot_positions(self._keys)
        positions = (read_position(self._connector, text) for text in texts or ())
        return None if texts is None else [position for position in positions if position is not None]

    def positions(self, keys: pa.Array) -> pa.Array:
        """See rules.plain_keys.Rows."""
        return one_array(self._rows["__position"]).take(pc.index_in(keys, self._texts))

    def row(self, key: str) -> Row | None:
        """See rules.plain_keys.Rows."""
        place = self._places.get(key)
        if place is not None:
            return self._row(self._rows, place)
        rows = self._rows.slice(0, 0) if key in self._known_keys else self._read(keys_of([key], self._kind))
        return self._row(rows, 0) if rows.num_rows else None

    def _row(self, rows: pa.Table, place: int) -> Row:
        return row_of(self._connector, {name: rows[name][place].as_py() for name in self._columns}, self._truncates)

    def keys_at(self, pointers: set[Pointer]) -> list[str]:
        """The keys whose rows were written by one of those records."""
        if not pointers or not self._rows.num_rows:
            return []
        offsets = pa.array([offset for _, offset in pointers], pa.int64())
        near = np.flatnonzero(as_bools(pc.is_in(one_array(self._rows["__offset"]).cast(pa.int64()), offsets)))
        partition, offset = self._rows["__partition"], self._rows["__offset"]
        return [
            self._texts[place].as_py()
            for place in near.tolist()
            if (partition[place].as_py(), offset[place].as_py()) in pointers
        ]

    def read_whole(self, keys: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """Those columns, and the key's, of the rows of some keys."""
        return self._stored.read(keys_of(keys, self._kind), columns)
