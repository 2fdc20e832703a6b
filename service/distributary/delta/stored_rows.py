"""Rows that were read, and where they are in the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.delta.key_index import FoundInFile

NO_KEY = -1
"""In place of a key's number: the row was found otherwise."""


@dataclass(frozen=True)
class StoredRows:
    """`rows` has the columns that were asked for, and row i the key number `keys[i]` (NO_KEY where it was not found by
    a key). `found` says where they are, in the same order."""

    keys: npt.NDArray[np.int64]
    rows: pa.Table
    found: tuple[FoundInFile, ...]

    def chosen(self, mask: npt.NDArray[np.bool_]) -> list[FoundInFile]:
        """Where those of the rows are for which the mask is true."""
        chosen, begin = [], 0
        for one in self.found:
            part = mask[begin : begin + len(one.rows)]
            begin += len(one.rows)
            if part.any():
                chosen.append(FoundInFile(one.file, one.keys[part], one.rows[part]))
        return chosen


def joined(found: Iterable[FoundInFile]) -> list[FoundInFile]:
    """Each file and each of its rows once; of several the first one counts."""
    by_file: dict[str, list[FoundInFile]] = {}
    for one in found:
        by_file.setdefault(one.file.path, []).append(one)
    whole = []
    for several in by_file.values():
        keys, rows = (np.concatenate([getattr(one, name) for one in several]) for name in ("keys", "rows"))
        _, first = np.unique(rows, return_index=True)
        whole.append(FoundInFile(several[0].file, keys[first], rows[first]))
    return whole
