"""Gathers the rows that a table gets, and makes one Arrow table of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.origin_columns import DELETED
from distributary.apply.values import ValueSources, source_timestamps, values_of_events
from distributary.rules.columns import Ints, one_array
from distributary.rules.position_text import write_position
from distributary.rules.state import Row


class NewRows:
    """Rows of the columns `row` and the service's own. Values come from `sources`, by their place there."""

    def __init__(self, row: pa.StructType, topic: str, sources: ValueSources, *, marks_deleted: bool) -> None:
        self._row, self._topic, self._marks_deleted = row, topic, marks_deleted
        self._sources = sources
        self._plain = np.zeros(0, np.int64)
        self._places: list[int] = []
        self._origins: dict[str, list[tuple[int, int | None]]] = {}
        """By column: the rows without its value, and where that value is (None: nowhere)."""
        self._ends: list[tuple[str, str | None, int | None]] = []
        """For each row that add() did not add: how it was ended (empty: it was not), and the position and source time
        of the delete, if known."""

    def add(self, places: Ints) -> None:
        """Adds the rows at these places of the sources, unchanged."""
        self._plain = np.concatenate([self._plain, places])

    def add_deleted(self, place: int, delete: int) -> None:
        """Adds the row at `place`, deleted softly by the record at `delete`."""
        table = self._sources.table
        self._places.append(place)
        self._ends.append(("d", table["position"][delete].as_py(), table["source_time"][delete].as_py()))

    def add_row(self, connector: str, row: Row) -> None:
        """Adds a row as the rules describe it. Raises KeyError if its values are not among the sources."""
        number = len(self._places)
        self._places.append(self._sources.place_of(row.at))
        for column, origin in row.origins:
            self._origins.setdefault(column, []).append((number, self._sources.place_of_value(origin)))
        position = time = None
        if row.ended == "d" and row.highest_position is not None:
            position = write_position(connector, row.highest_position)
            time = row.highest_position.time // 1000 or None
        self._ends.append((row.ended, position, time))

    def table(self) -> pa.Table:
        """The rows, with `__op`, `__source_ts`, `__position`, `__topic`, `__partition`, `__offset` and, where they are
        marked, `__deleted`."""
        begin = len(self._plain)
        places = np.concatenate([self._plain, np.array(self._places, np.int64)]).astype(np.int64)
        sources = _rows_at(self._sources.table, places)
        row = one_array(sources["row"])
        values = dict(zip((field.name for field in self._row), row.flatten(), strict=True))
        for column, origins in self._origins.items():
            values[column] = self._with_origins(column, places, begin, origins)
        columns = {
            **values,
            "__op": _replaced(sources["op"], begin, [end or None for end, _, _ in self._ends]),
            "__source_ts": source_timestamps(
                _replaced(sources["source_time"], begin, [time for _, _, time in self._ends])
            ),
            "__position": _replaced(sources["position"], begin, [position for _, position, _ in self._ends]),
            "__topic": pa.repeat(self._topic, len(places)),
            "__partition": sources["partition"],
            "__offset": sources["offset"],
        }
        if self._marks_deleted:
            ended = pa.array([bool(end) for end, _, _ in self._ends], pa.bool_())
            columns[DELETED] = pa.concat_arrays([pa.repeat(pa.scalar(False), begin), ended])
        return pa.table(columns)

    def _with_origins(self, column: str, places: Ints, begin: int, origins: list[tuple[int, int | None]]) -> pa.Array:
        filled_places, is_missing = places.copy(), np.zeros(len(places), np.bool_)
        for number, lies in origins:
            filled_places[begin + number] = 0 if lies is None else lies
            is_missing[begin + number] = lies is None
        struct = one_array(self._sources.table["row"])
        column_values = struct.flatten()[self._row.get_field_index(column)]
        return column_values.take(pa.array(filled_places, mask=is_missing))


def inserted_rows(events: pa.Table, row: pa.StructType, topic: str, *, marks_deleted: bool) -> pa.Table:
    """The rows of the table that have the values of these events, in their order: each event is the only change of its
    key."""
    new = NewRows(row, topic, ValueSources([values_of_events(events)]), marks_deleted=marks_deleted)
    new.add(np.arange(events.num_rows))
    return new.table()


def _rows_at(table: pa.Table, places: Ints) -> pa.Table:
    """The rows at `places`. Does not copy if these are all rows in order, as in most batches of a first fill."""
    if len(places) == table.num_rows and bool((places == np.arange(len(places))).all()):
        return table
    return table.take(pa.array(places))


def _replaced(column: pa.ChunkedArray, begin: int, values: list[Any]) -> pa.Array:
    """The column with other values from row `begin` on, where there are some."""
    array = one_array(column)
    if not values:
        return array
    rest = pc.coalesce(pa.array(values, array.type), array[begin:])
    return pa.concat_arrays([array[:begin], rest])
