"""Timestamps: counts of milli-, micro- and nanoseconds since 1970, and ISO texts with and without an offset.

Those without a zone become TIMESTAMP_NTZ, `ZonedTimestamp` becomes TIMESTAMP. Digits below the microsecond are floored.
PostgreSQL's infinities (seen in recorded events of Debezium 3.6) become the last microsecond of the year 9999 and the
first of the year 1. A time that 64 bits of microseconds can't count is a bad value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from distributary.arrow_errors import DATA_ERRORS
from distributary.types.base import (
    KAFKA,
    TIME,
    ColumnType,
    Converted,
    TypeNote,
    convert_each,
    note,
    only_text,
    with_values,
)
from distributary.types.calendar import FIRST_INSTANT, LAST_INSTANT, read_instant
from distributary.types.numbers import BIGINT, whole_number

_NTZ = pa.timestamp("us")
_UTC = pa.timestamp("us", "UTC")
_Longs = npt.NDArray[np.int64]
_MOST_MILLIS = 9_223_372_036_854_774
_LEAST_NANOS = -9_223_372_036_854_775_000


def _of_millis(sent: _Longs) -> tuple[_Longs, _Longs]:
    last = (sent == 9_223_372_036_825_200) | (sent == _MOST_MILLIS + 1)
    first = sent == -9_223_372_036_832_400
    far = ((sent > _MOST_MILLIS) | (sent < -_MOST_MILLIS)) & ~last
    micros = np.where(far, 0, sent) * 1_000
    return _with_infinities(micros, last, first), np.flatnonzero(far)


def _of_micros(sent: _Longs) -> tuple[_Longs, _Longs]:
    last, first = sent == 9_223_372_036_825_200_000, sent == -9_223_372_036_832_400_000
    return _with_infinities(sent, last, first), np.zeros(0, np.int64)


def _of_nanos(sent: _Longs) -> tuple[_Longs, _Longs]:
    last, first = sent == 2**63 - 1, sent < _LEAST_NANOS
    return _with_infinities(sent // 1_000, last, first), np.zeros(0, np.int64)


def _with_infinities(micros: _Longs, last: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_]) -> _Longs:
    if last.any() or first.any():
        return np.where(last, LAST_INSTANT, np.where(first, FIRST_INSTANT, micros))
    return micros


def _counted(to_micros: Callable[[_Longs], tuple[_Longs, _Longs]]) -> ColumnType:
    def convert(values: Sequence[Any]) -> Converted:
        numbers, bad = BIGINT.convert(values)
        sent = np.asarray(numbers.fill_null(0)) if numbers.null_count else numbers.to_numpy()
        micros, far = to_micros(sent)
        array = with_values(numbers, _NTZ, np.ascontiguousarray(micros))
        if len(far):
            array = pc.replace_with_mask(array, _mask(len(array), far), pa.scalar(None, _NTZ))
        return Converted(array, sorted([*bad, *far.tolist()]))

    return ColumnType("timestamp_ntz", _NTZ, int, convert, whole_number)


def _mask(length: int, indexes: Any) -> pa.Array:
    mask = np.zeros(length, bool)
    mask[indexes] = True
    return pa.array(mask)


def _written(spark: str, arrow: pa.DataType, infinities: Mapping[str, int]) -> ColumnType:
    """The type of ISO texts. Arrow reads usual texts all at once; if it refuses one, they are read one by one."""

    def convert_value(text: str) -> int:
        return infinities[text] if text in infinities else read_instant(text)

    convert_values = convert_each(pa.int64(), convert_value)

    def convert(values: Sequence[Any]) -> Converted:
        try:
            return Converted(pa.array(values, pa.string()).cast(_UTC).view(pa.int64()).view(arrow), ())
        except DATA_ERRORS:
            micros, bad = convert_values(values)
            return Converted(micros.view(arrow), bad)

    return ColumnType(spark, arrow, str, convert, only_text, True)


NTZ_MILLIS = _counted(_of_millis)
NTZ_MICROS = _counted(_of_micros)
NTZ_NANOS = _counted(_of_nanos)
NTZ_TEXT = _written(
    "timestamp_ntz",
    _NTZ,
    {"+294247-01-10T04:00:25.2Z": LAST_INSTANT, "-290308-12-21T19:59:27.6Z": FIRST_INSTANT},
)
ZONED = _written("timestamp", _UTC, {"infinity": LAST_INSTANT, "-infinity": FIRST_INSTANT})

_INFINITE = (
    "infinity: 9999-12-31 23:59:59.999999, -infinity: 0001-01-01 00:00:00; any year that 64 bits of microseconds reach,"
    " beyond: quarantine"
)
_FLOORED = "digits below the microsecond are floored"
NOTES: tuple[TypeNote, ...] = (
    note(
        "int64", f"{TIME}.Timestamp", f"{KAFKA}.Timestamp", wire="a number of milliseconds since 1970", edges=_INFINITE
    ),
    note("int64", f"{TIME}.MicroTimestamp", wire="a number of microseconds since 1970", edges=_INFINITE),
    note(
        "int64",
        f"{TIME}.NanoTimestamp",
        wire="a number of nanoseconds since 1970",
        edges=f"{_FLOORED}; {_INFINITE}; `columns: {{c: bigint}}` keeps all nine",
    ),
    note("string", f"{TIME}.IsoTimestamp", wire="ISO 8601", edges=_INFINITE),
    note(
        "string",
        f"{TIME}.ZonedTimestamp",
        wire="ISO 8601 with an offset",
        edges=f"the instant; {_FLOORED}; {_INFINITE}; `columns: {{c: string}}` keeps the offset and all digits",
    ),
)
