"""Values as the comparison uses them: plain Python, nothing rounded, nothing out of range.

| Arrow type | comparable value |
| --- | --- |
| date | days since 1970-01-01 (int): Python's dates end at the year 9999 and begin at 1 |
| timestamp, with and without zone | microseconds since 1970-01-01 (int) |
| list, map, struct | list, dict, dict of comparable values |
| all others | as Arrow gives them: int, float, bool, str, bytes, Decimal |
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

Value = Any
"""A comparable value, or None."""


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without Arrow's storage variants: large and view types become the plain ones."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    return kind


def column_values(column: pa.ChunkedArray) -> list[Value]:
    """A column's values. Raises ValueError for a timestamp that does not count microseconds."""
    return [_value(scalar) for scalar in column]


def identical(one: Value, other: Value) -> bool:
    """Equal in type and value: 1 is not True, 1.0 is not 1.00, -0.0 is not 0.0; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return hashable(one) == hashable(other)
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
    if isinstance(one, list):
        return len(one) == len(other) and all(identical(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(item, other[name]) for name, item in one.items())
    return bool(one == other)


def hashable(value: Value) -> object:
    """A hashable form of a value for sets and dicts: equal exactly if `identical` is true."""
    if isinstance(value, list):
        return tuple(hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, hashable(item)) for name, item in value.items()))
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, Decimal):
        return ("decimal", str(value))
    return (type(value).__name__, value)


def float32(number: float) -> float:
    """The nearest number that four bytes hold, infinite where they hold none."""
    if math.isnan(number) or math.isinf(number):
        return number
    try:
        (rounded,) = struct.unpack(">f", struct.pack(">f", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def _value(scalar: pa.Scalar) -> Value:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "us":
            raise ValueError(f"a timestamp in {kind.unit}, but tables hold microseconds")
        return scalar.value
    if pa.types.is_date32(kind):
        return scalar.value
    if pa.types.is_map(kind):
        return {_value(entry["key"]): _value(entry["value"]) for entry in scalar.values}
    if pa.types.is_struct(kind):
        return {field.name: _value(scalar[position]) for position, field in enumerate(kind)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(item) for item in scalar.values]
    return scalar.as_py()
