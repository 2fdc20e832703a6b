"""Checks all keys or values of a batch at once, before any of them is parsed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.decode.bad_utf8 import find_bad_utf8
from distributary.decode.options import DecodeOptions
from distributary.decode.wire_records import WireRecords


def within_limit(column: pa.ChunkedArray, batch: WireRecords, options: DecodeOptions) -> pa.ChunkedArray:
    """The keys or values, with null where they have more bytes than the options allow. Rejects these records."""
    limit = options.bounds.record_bytes
    return _without(
        column,
        pc.fill_null(pc.greater(pc.binary_length(column), limit), False),
        batch,
        reasons.BEYOND_LIMITS,
        f"more than {limit} bytes",
    )


def in_utf8(column: pa.ChunkedArray, batch: WireRecords) -> pa.ChunkedArray:
    """The keys or values, with null where they are not UTF-8. Rejects these records."""
    bad = np.zeros(len(column), bool)
    bad[find_bad_utf8(column)] = True
    return _without(column, pa.array(bad), batch, reasons.BAD_UTF8)


def _without(
    column: pa.ChunkedArray, bad: Any, batch: WireRecords, reason: reasons.Reason, detail: str = ""
) -> pa.ChunkedArray:
    indexes = np.flatnonzero(np.asarray(bad)).tolist()
    for index in indexes:
        batch.faults.add(index, reason, detail)
    return pc.if_else(bad, pa.scalar(None, column.type), column) if indexes else column
