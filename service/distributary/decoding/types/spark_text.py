"""Values as the texts that Spark's CAST to STRING makes of them, and to_json of nested ones: hashes are made of
these."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from distributary.decoding.types.calendar import date_of_day

_DAY = 86_400_000_000


def spark_texts(array: pa.Array, spark: str) -> list[str | None]:
    """The text of each value of a column of that Spark type; None for null."""
    if spark in ("string", "variant"):
        return list(array.to_pylist())
    to_text = _text(array.type)
    return [None if value is None else to_text(value) for value in _plain(array)]


def _plain(array: pa.Array) -> list[Any]:
    """Values in which times are whole numbers."""
    kind = array.type
    if pa.types.is_date32(kind):
        return list(array.view(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind):
        return list(array.view(pa.int64()).to_pylist())
    if pa.types.is_list(kind):
        return [None if not item.is_valid else _plain(item.values) for item in array]
    if pa.types.is_map(kind):
        return [None if not item.is_valid else dict(zip(*map(_plain, _entries(item)), strict=True)) for item in array]
    if pa.types.is_struct(kind):
        columns = [_plain(array.field(place)) for place in range(kind.num_fields)]
        names = [field.name for field in kind]
        valid = array.is_valid().to_pylist()
        rows = zip(*columns, strict=True) if columns else [()] * len(array)
        return [dict(zip(names, row, strict=True)) if known else None for known, row in zip(valid, rows, strict=True)]
    return list(array.to_pylist())


def _entries(item: Any) -> tuple[pa.Array, pa.Array]:
    values = item.values
    return values.field(0), values.field(1)


def _text(kind: pa.DataType) -> Callable[[Any], str]:
    if pa.types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if pa.types.is_float32(kind):
        return lambda value: java_text(value, short=True)
    if pa.types.is_float64(kind):
        return java_text
    if pa.types.is_binary(kind):
        return lambda value: str(value.hex())
    if pa.types.is_decimal(kind):
        return lambda value: f"{value:f}"
    if pa.types.is_date32(kind):
        return date_of_day
    if pa.types.is_timestamp(kind):
        return _timestamp
    if pa.types.is_nested(kind):
        return lambda value: _json(value, kind)
    return str


def _timestamp(micros: int) -> str:
    day, rest = divmod(micros, _DAY)
    seconds, part = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    behind = f".{part:06d}".rstrip("0") if part else ""
    return f"{date_of_day(day)} {clock}{behind}"


def java_text(value: float, *, short: bool = False) -> str:
    """A number as Java's Double.toString (`short`: Float's) writes it: the fewest digits that tell it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    shown = Decimal(str(np.float32(value)) if short else repr(value))
    sign, digits, exponent = shown.as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    if 1e-3 <= abs(value) < 1e7:
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        behind = text[point:] if point > 0 else "0" * -point + text
        return f"{minus}{whole or '0'}.{behind or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _json(value: Any, kind: pa.DataType) -> str:
    """As to_json writes it: null fields of structs are left out."""
    if value is None:
        return "null"
    if pa.types.is_list(kind):
        return f"[{','.join(_json(item, kind.value_type) for item in value)}]"
    if pa.types.is_map(kind):
        parts = (
            f"{json.dumps(name, ensure_ascii=False)}:{_json(item, kind.item_type)}" for name, item in value.items()
        )
        return f"{{{','.join(parts)}}}"
    if pa.types.is_struct(kind):
        parts = (
            f"{json.dumps(field.name, ensure_ascii=False)}:{_json(value[field.name], field.type)}"
            for field in kind
            if value[field.name] is not None
        )
        return f"{{{','.join(parts)}}}"
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _text(kind)(value)
    if pa.types.is_floating(kind) and value - value == 0:
        return _text(kind)(value)
    return json.dumps(_text(kind)(value), ensure_ascii=False)
