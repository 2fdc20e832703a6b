"""Rows that were read, and where they are in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.delta.data_reader import DataReader
from distributary.delta.key_index import FoundInFile
from distributary.delta.live_file import LiveFile

NO_KEY = -1
"""In place of a key's number: the row was found otherwise."""


@dataclass(frozen=True)
class StoredRows:
    """`rows` has the requested columns; `keys[i]` is the number of the key of row i (NO_KEY if it was not found by a
    key). `locations` are their places in the table, in the same order."""

    keys: npt.NDArray[np.int64]
    rows: pa.Table
    locations: tuple[FoundInFile, ...]

    def chosen(self, mask: npt.NDArray[np.bool_]) -> list[FoundInFile]:
        """The locations of the rows for which the mask is true."""
        chosen, begin = [], 0
        for location in self.locations:
            part = mask[begin : begin + len(location.rows)]
            begin += len(location.rows)
            if part.any():
                chosen.append(FoundInFile(location.file, location.keys[part], location.rows[part]))
        return chosen


def chosen_rows(
    reader: DataReader,
    files: Iterable[tuple[LiveFile, npt.NDArray[np.int64]]],
    columns: Sequence[str],
    choose: Callable[[pa.Table], npt.NDArray[np.bool_]],
) -> StoredRows:
    """The rows of the files for which `choose` returns true; it gets the columns piece by piece. `files` has each file
    with its dead rows, which are left out."""
    locations, parts = [], [reader.schema_of(columns).empty_table()]
    for file, dead in files:
        begin, rows = 0, []
        for piece, is_live in reader.live_pieces(file, dead, columns):
            mask = choose(piece) & is_live
            rows.append(np.flatnonzero(mask) + begin)
            parts.append(piece.filter(pa.array(mask)))
            begin += piece.num_rows
        numbers = np.concatenate([np.empty(0, np.int64), *rows])
        if len(numbers):
            locations.append(FoundInFile(file, np.full(len(numbers), NO_KEY), numbers))
    whole = pa.concat_tables(parts)
    return StoredRows(np.full(whole.num_rows, NO_KEY), whole, tuple(locations))


def joined(locations: Iterable[FoundInFile]) -> list[FoundInFile]:
    """Each file and each of its rows once; of several the first one counts."""
    by_file: dict[str, list[FoundInFile]] = {}
    for location in locations:
        by_file.setdefault(location.file.path, []).append(location)
    whole = []
    for several in by_file.values():
        keys, rows = (np.concatenate([getattr(location, name) for location in several]) for name in ("keys", "rows"))
        _, first = np.unique(rows, return_index=True)
        whole.append(FoundInFile(several[0].file, keys[first], rows[first]))
    return whole
