"""Times of day: counts of milli-, micro- or nanoseconds become ISO texts with 3, 6 or 9 digits after the second.

MySQL's TIME may be negative, or longer than a day: the hours then have a sign, or more digits. `IsoTime` is text
already, but for a closing Z: the source's column has no zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import (
    KAFKA,
    TIME,
    ColumnType,
    Converted,
    TypeNote,
    convert_each,
    convert_whole,
    note,
    only_text,
)
from distributary.types.numbers import BIGINT, whole_number


def time_text(count: int, digits: int) -> str:
    """The time that so many units after midnight is, a unit being a second's 10th part, `digits` times over."""
    seconds, part = divmod(abs(count), 10**digits)
    sign = "-" if count < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{part:0{digits}d}"


def _counted(digits: int) -> ColumnType:
    unit = {3: pa.time32("ms"), 6: pa.time64("us"), 9: pa.time64("ns")}[digits]
    narrow = pa.int32() if digits == 3 else pa.int64()
    day = 86_400 * 10**digits
    convert_values = convert_each(pa.string(), lambda count: time_text(count, digits))

    def convert(values: Sequence[Any]) -> Converted:
        counts, bad = BIGINT.convert(values)
        known = np.asarray(counts.fill_null(0))
        if not len(known) or (known.min() >= 0 and known.max() < day):
            return Converted(counts.cast(narrow).view(unit).cast(pa.string()), bad)
        return Converted(convert_values(counts.to_pylist()).array, bad)

    return ColumnType("string", pa.string(), int, convert, whole_number)


def _without_zone(values: Sequence[Any]) -> Converted:
    texts, bad = convert_whole(pa.string(), str)(values)
    return Converted(pc.replace_substring_regex(texts, "Z$", ""), bad)


TIME_MILLIS = _counted(3)
TIME_MICROS = _counted(6)
TIME_NANOS = _counted(9)
TIME_TEXT = ColumnType("string", pa.string(), str, _without_zone, only_text, True)

_EDGES = "ISO 8601 with {} digits after the second; MySQL's may be negative, or longer than a day"
NOTES: tuple[TypeNote, ...] = (
    note("int32", f"{TIME}.Time", f"{KAFKA}.Time", wire="a number of milliseconds", edges=_EDGES.format(3)),
    note("int64", f"{TIME}.MicroTime", wire="a number of microseconds", edges=_EDGES.format(6)),
    note("int64", f"{TIME}.NanoTime", wire="a number of nanoseconds", edges=_EDGES.format(9)),
    note(
        "string",
        f"{TIME}.IsoTime",
        wire="text",
        edges="as it is, without the closing Z: the source's column has no zone",
    ),
)
