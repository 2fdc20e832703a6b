"""Compares a record's key with the columns of the key in its row, and fills those that the row lacks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.decode.columns import Columns
from distributary.decode.envelope import KEPT_ROW
from distributary.decode.wire_records import WireRecords


def fill_from_key(rows: Columns, keys: Columns) -> None:
    """Fills columns of the key that rows lack: a transform added the field to the key, or a filter took the column out
    of the value."""
    for name, array in keys.arrays.items():
        if name in rows.arrays and rows.arrays[name].null_count:
            rows.arrays[name] = pc.coalesce(rows.arrays[name], array.cast(rows.arrays[name].type))


def reject_other_keys(batch: WireRecords, after: Columns, keys: Columns) -> None:
    """Rejects records whose rows have other values in the key's columns than their keys: such a row would replace that
    of another key."""
    for name, array in keys.arrays.items():
        if name in after.arrays:
            for index in np.flatnonzero(differ(after.arrays[name], array.cast(after.arrays[name].type))).tolist():
                if batch.operations[index] in KEPT_ROW:
                    batch.faults.add(index, reasons.OTHER_KEY, name)


def differ(values: pa.Array, others: pa.Array) -> pa.Array:
    """Whether two values are there and differ; NaN equals NaN."""
    unequal = pc.not_equal(values, others)
    if pa.types.is_floating(values.type):
        unequal = pc.and_(unequal, pc.invert(pc.and_(pc.is_nan(values), pc.is_nan(others))))
    return pc.fill_null(unequal, False)
