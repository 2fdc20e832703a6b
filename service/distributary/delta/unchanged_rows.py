"""Rows that a write would replace by the very same ones: left alone, readers of the change data feed see no change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.arrow_errors import DATA_ERRORS
from distributary.delta.key_index import FoundInFile
from distributary.delta.stored_rows import StoredRows

_Mask = npt.NDArray[np.bool_]


def without_unchanged(upserts: pa.Table, old: StoredRows) -> tuple[pa.Table, list[FoundInFile]]:
    """Drops upserts that equal the stored row of their key. Returns the others, and the locations of the rows to
    remove. Key number i is that of row i of the given `upserts`; in the result, of row i of the returned ones."""
    count = upserts.num_rows
    replaced = np.flatnonzero((old.keys >= 0) & (old.keys < count))
    numbers = old.keys[replaced]
    new = _signatures(upserts.take(pa.array(numbers, pa.int64())))
    before = _signatures(old.rows.take(pa.array(replaced, pa.int64())))
    if new is None or before is None:
        return upserts, list(old.locations)
    times = np.bincount(numbers, minlength=count)  # others may have written several rows of one key
    pairs = zip(numbers.tolist(), new, before, strict=True)
    same = [number for number, one, other in pairs if one == other and times[number] == 1]
    if not same:
        return upserts, list(old.locations)
    changes = np.ones(count, np.bool_)
    changes[same] = False
    place = np.cumsum(changes) - 1

    def renumbered(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        renumbered_keys = np.where(keys >= count, keys - len(same), keys)
        is_upsert = (keys >= 0) & (keys < count)
        renumbered_keys[is_upsert] = place[keys[is_upsert]]
        return renumbered_keys

    goes = old.chosen(~np.isin(old.keys, same))
    return upserts.filter(pa.array(changes)), [FoundInFile(one.file, renumbered(one.keys), one.rows) for one in goes]


def without_same(rows: pa.Table, old: StoredRows) -> tuple[pa.Table, list[FoundInFile]]:
    """As without_unchanged, for rows without keys: each old row that is also among the new rows stays."""
    new, before = _signatures(rows), _signatures(old.rows)
    if new is None or before is None:
        return rows, list(old.locations)
    stay = Counter(new) & Counter(before)
    if not stay:
        return rows, list(old.locations)
    return rows.filter(pa.array(_but(new, stay))), old.chosen(_but(before, stay))


def _but(signatures: list[str], stay: Counter[str]) -> _Mask:
    """False for as many rows of each signature as stay."""
    remaining = Counter(stay)
    mask = np.ones(len(signatures), np.bool_)
    for index, signature in enumerate(signatures):
        if remaining[signature]:
            remaining[signature] -= 1
            mask[index] = False
    return mask


def _signatures(rows: pa.Table) -> list[str] | None:
    """A text for each row, equal for equal rows; None where a value has no Python form."""
    try:
        columns = [column.cast(_countable(column.type)).to_pylist() for column in rows.columns]
    except (*DATA_ERRORS, OverflowError, ValueError):
        return None
    return [repr(values) for values in zip(*columns, strict=True)] if columns else []


def _countable(kind: pa.DataType) -> Any:
    """Dates and times as the numbers that count them: Python's end at the year 9999."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_countable(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_countable(field.type)) for field in kind])
    return kind
