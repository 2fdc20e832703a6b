"""Fills a column in rows from before it was added: in the source these rows have the column's default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.decode.columns import Columns
from distributary.decode.wire_records import WireRecords
from distributary.rules.position_columns import precede
from distributary.types.column_default import ColumnDefault, array_of_text


def fill_older_rows(
    columns: Columns, batch: WireRecords, defaults: Mapping[str, ColumnDefault], connector: str
) -> None:
    """Puts defaults into the rows that lack a column which the source added later, by the connector's positions."""
    if not defaults:
        return
    positions = pa.array(batch.positions, pa.string())
    for name, default in defaults.items():
        array = columns.arrays.get(name)
        if array is None:
            continue
        is_missing = [
            row is not None and name not in has
            for row, has in zip(batch.after.rows, _names(batch.after.readers), strict=True)
        ]
        older = precede(connector, positions, default.before) & np.array(is_missing, np.bool_)
        if older.any():
            value = array_of_text(default.value, array.type)[0]
            columns.arrays[name] = pc.if_else(pa.array(older), value, array)


def _names(readers: Iterable[Any]) -> Iterator[frozenset[str]]:
    """The lake's names of the columns that each reader's records have."""
    known: dict[int, frozenset[str]] = {}
    for reader in readers:
        if id(reader) not in known:
            known[id(reader)] = frozenset() if reader is None else frozenset(reader.shape.lake.values())
        yield known[id(reader)]
