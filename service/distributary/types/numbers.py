"""Numbers: `int8` to `int64` become smallint, int and bigint, `float32` float, `float64` double. Also `boolean`.

On the wire they are JSON numbers and true or false; NaN and the infinities are the texts that JsonConverter writes.
A fraction for a whole number, and a number that is too large, is a bad value; an infinity only where it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from distributary.types.base import (
    TIME,
    BadValue,
    ColumnType,
    Converted,
    TypeNote,
    convert_whole,
    note,
    text_of,
)
from distributary.types.connect_schema import ConnectType
from distributary.types.strict_json import Json, Number

_WHOLE = re.compile(r"[ \t\r\n]*([+-]?[0-9]{1,40})[ \t\r\n]*")
_NOT_FINITE = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity"), float("inf")),
    "-Infinity": float("-inf"),
}
_LITERAL = re.compile(r"[ \t\r\n]*([+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\r\n]*")
_LONGEST_LITERAL = 2_000
"""Characters of a number that is read with care."""


def whole_number(value: Json) -> int:
    """A whole number that is written as a JSON number or as text. Raises BadValue."""
    match = _WHOLE.fullmatch(text_of(value))
    if match is None:
        raise BadValue(value)
    return int(match[1])


def fraction(value: Json) -> float:
    """The nearest double of a number that is written as a JSON number or as text. Raises BadValue, also for one that is
    beyond all doubles."""
    if not isinstance(value, str) or len(value) > _LONGEST_LITERAL:
        raise BadValue(value)
    if not isinstance(value, Number) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    match = _LITERAL.fullmatch(value)
    number = float(match[1]) if match else float("inf")
    if number in (float("inf"), float("-inf")):
        raise BadValue(value)
    return number


def truth(value: Json) -> bool:
    """true or false, also as texts. Raises BadValue."""
    text = text_of(value)
    if text not in ("true", "false"):
        raise BadValue(value)
    return text == "true"


def _whole(spark: str, arrow: pa.DataType, bits: int) -> ColumnType:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def in_range(value: int) -> int:
        if not least <= value <= most:
            raise BadValue(value)
        return value

    return ColumnType(spark, arrow, int, convert_whole(arrow, in_range), whole_number)


def _convert_float(values: Sequence[Any]) -> Converted:
    """Doubles to the nearest float; one that is too large is no infinity."""
    doubles = pa.array(values, pa.float64())
    data = doubles.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        floats = data.astype(np.float32)
    bad = np.flatnonzero(np.isinf(floats) & ~np.isinf(data))
    null = np.asarray(doubles.is_null())
    null[bad] = True
    return Converted(pa.array(floats, pa.float32(), mask=null), bad.tolist())


def _unchanged(value: Any) -> Any:
    return value


TINYINT = _whole("tinyint", pa.int8(), 8)
SMALLINT = _whole("smallint", pa.int16(), 16)
INT = _whole("int", pa.int32(), 32)
BIGINT = _whole("bigint", pa.int64(), 64)
FLOAT = ColumnType("float", pa.float32(), float, _convert_float, fraction, may_be_unavailable=True)
DOUBLE = ColumnType("double", pa.float64(), float, convert_whole(pa.float64(), _unchanged), fraction)
BOOLEAN = ColumnType("boolean", pa.bool_(), bool, convert_whole(pa.bool_(), _unchanged), truth)

_NUMBER = "a number"
_WHOLE_EDGES = "a fraction, or a number that is too large: quarantine"
_FRACTION_EDGES = "NaN and infinities stay; a number that is too large: quarantine"
NOTES: tuple[TypeNote, ...] = (
    TypeNote((ConnectType("int8"), ConnectType("int16")), _NUMBER, _WHOLE_EDGES),
    TypeNote((ConnectType("int32"),), _NUMBER, _WHOLE_EDGES),
    TypeNote((ConnectType("int64"),), _NUMBER, _WHOLE_EDGES),
    TypeNote((ConnectType("float32"),), _NUMBER, _FRACTION_EDGES),
    TypeNote((ConnectType("float64"),), _NUMBER, _FRACTION_EDGES),
    TypeNote((ConnectType("boolean"),), "true or false"),
    note("int32", f"{TIME}.Year", wire="a number", edges=_WHOLE_EDGES),
    note("int64", f"{TIME}.MicroDuration", f"{TIME}.NanoDuration", wire="a number of micro- or nanoseconds"),
)
