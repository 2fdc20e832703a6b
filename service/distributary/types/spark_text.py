"""Values as text, as Spark's CAST to STRING and, for nested values, to_json write it. Hashes are made of these
texts."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from distributary.types.calendar import date_of_day
from distributary.types.java_numbers import double_text, float_text

_DAY = 86_400_000_000
_NAMED_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPES = str.maketrans({**{chr(code): f"\\u{code:04X}" for code in range(32)}, **_NAMED_ESCAPES})


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
        columns = [_plain(array.field(index)) for index in range(kind.num_fields)]
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
        return float_text
    if pa.types.is_float64(kind):
        return double_text
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


def _json(value: Any, kind: pa.DataType) -> str:
    """As to_json writes it: null fields of structs are left out, and some values have other texts than by CAST."""
    if value is None:
        return "null"
    if pa.types.is_list(kind):
        return f"[{','.join(_json(item, kind.value_type) for item in value)}]"
    if pa.types.is_map(kind):
        parts = (f"{_json_string(name)}:{_json(item, kind.item_type)}" for name, item in value.items())
        return f"{{{','.join(parts)}}}"
    if pa.types.is_struct(kind):
        parts = (
            f"{_json_string(field.name)}:{_json(value[field.name], field.type)}"
            for field in kind
            if value[field.name] is not None
        )
        return f"{{{','.join(parts)}}}"
    if pa.types.is_decimal(kind):
        return str(value)  # with an exponent where it is small, as BigDecimal.toString
    if pa.types.is_binary(kind):
        return _json_string(base64.b64encode(value).decode())
    if pa.types.is_timestamp(kind):
        return _json_string(_json_timestamp(value) + ("Z" if kind.tz else ""))
    text = _text(kind)(value)
    is_bare = pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    return text if is_bare or (pa.types.is_floating(kind) and value - value == 0) else _json_string(text)


def _json_timestamp(micros: int) -> str:
    """To the millisecond: finer digits are cut."""
    day, rest = divmod(micros, _DAY)
    seconds, part = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{date_of_day(day)}T{clock}.{part // 1000:03d}"


def _json_string(text: str) -> str:
    """As Jackson writes it: with capital letters in escapes."""
    return f'"{text.translate(_ESCAPES)}"'
