"""Types by the names that the config, the source's schema-change topic and tables give them: for values without a
schema."""

from __future__ import annotations

import re
from collections.abc import Mapping

from distributary.types.base import ColumnType
from distributary.types.bounds import Bounds
from distributary.types.days import DATE_NAMED
from distributary.types.decimals import decimal, decimal_of_text, variable_decimal
from distributary.types.from_schema import DECIMAL, SEMANTIC, VARIABLE_DECIMAL
from distributary.types.instants import NTZ_MICROS, NTZ_MILLIS, NTZ_NANOS, NTZ_TEXT, ZONED
from distributary.types.nested import array_of, map_of, struct_of
from distributary.types.numbers import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT, TINYINT
from distributary.types.text import BINARY, BINARY_HEX, BINARY_URL_SAFE, STRING, VARIANT
from distributary.types.times_of_day import TIME_MICROS, TIME_MILLIS, TIME_NANOS


class UnknownColumnType(ValueError):
    """A type name that the config's `columns` can't take."""


_UNITS: Mapping[str, ColumnType] = {
    "timestamp_ms": NTZ_MILLIS,
    "timestamp_us": NTZ_MICROS,
    "timestamp_ns": NTZ_NANOS,
    "time_ms": TIME_MILLIS,
    "time_us": TIME_MICROS,
    "time_ns": TIME_NANOS,
}
_PLAIN: Mapping[str, ColumnType] = {
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "string": STRING,
    "date": DATE_NAMED,
    "timestamp": ZONED,
    "timestamp_ntz": NTZ_TEXT,
    "variant": VARIANT,
}
_BINARY = {"hex": BINARY_HEX, "base64-url-safe": BINARY_URL_SAFE}
# As in Debezium's schemas: their bytes are Base64 in every binary.handling.mode.
_SHAPE = {"wkb": BINARY, "srid": INT}
_GEOMETRIES: Mapping[str, ColumnType] = {
    "io.debezium.data.geometry.Geometry": struct_of(_SHAPE),
    "io.debezium.data.geometry.Geography": struct_of(_SHAPE),
    "io.debezium.data.geometry.Point": struct_of({"x": DOUBLE, "y": DOUBLE, **_SHAPE}),
}
_TEXT_SEMANTIC = re.compile(r"io\.debezium\.(data|time)\.[A-Za-z]+")
_BITS = "io.debezium.data.Bits"
_DIGITS = r"\(([0-9]{1,9}),([0-9]{1,9})\)"


def type_of_name(name: str, properties: Mapping[str, str], bounds: Bounds) -> ColumnType:
    """The type with this name in the config (`columns`), or in a table (Spark's simple strings). The text form of
    decimals and bytes follows the connector's `decimal.handling.mode` and `binary.handling.mode` in `properties`.
    Raises UnknownColumnType.
    """
    given = name.strip()
    lowered = given.lower()
    for known, key in ((_UNITS, given), (SEMANTIC, given), (_GEOMETRIES, given), (_PLAIN, lowered)):
        if key in known:
            return known[key]
    if given == VARIABLE_DECIMAL:
        return variable_decimal(bounds)
    if given == _BITS:
        return BINARY
    if _TEXT_SEMANTIC.fullmatch(given):
        return STRING
    if match := re.fullmatch(rf"decimal{_DIGITS}", lowered):
        precision, scale = int(match[1]), int(match[2])
        is_precise = properties.get("decimal.handling.mode", "precise") == "precise"
        return decimal(precision, scale, bounds) if is_precise else decimal_of_text(precision, scale)
    if match := re.fullmatch(rf"{re.escape(DECIMAL)}{_DIGITS}", given):
        return decimal(int(match[1]), int(match[2]), bounds)
    if (element := element_of_name(given)) is not None:
        return array_of(type_of_name(element, properties, bounds))
    if (parts := parts_of_map(given)) is not None:
        key, item = parts
        keys = None if key.lower() == "string" else type_of_name(key, properties, bounds)
        return map_of(type_of_name(item, properties, bounds), keys)
    if (fields := fields_of_name(given)) is not None:
        return struct_of({field: type_of_name(kind, properties, bounds) for field, kind in fields})
    if lowered == "binary":
        return _BINARY.get(properties.get("binary.handling.mode", "bytes"), BINARY)
    raise UnknownColumnType(name)


def element_of_name(given: str) -> str | None:
    """The name of the type of an array's elements; None for a type that is no array."""
    match = re.fullmatch(r"array<(.+)>", given, re.IGNORECASE | re.DOTALL)
    return match[1] if match else None


def parts_of_map(given: str) -> tuple[str, str] | None:
    """The types of a map's keys and of its values, likewise."""
    match = re.fullmatch(r"map<(.+)>", given, re.IGNORECASE | re.DOTALL)
    parts = _split_fields(match[1]) if match else []
    return (parts[0], parts[1]) if len(parts) == 2 else None


def fields_of_name(given: str) -> list[tuple[str, str]] | None:
    """The names and types of a struct's fields, likewise. Raises UnknownColumnType."""
    match = re.fullmatch(r"struct<(.*)>", given, re.IGNORECASE | re.DOTALL)
    if match is None:
        return None
    fields = []
    for item in filter(None, _split_fields(match[1])):
        field = re.fullmatch(r"(`(?:[^`]|``)+`|[^:\s]+)\s*:?\s*(.+)", item, re.DOTALL)
        if field is None:
            raise UnknownColumnType(given)
        name = field[1]
        fields.append((name[1:-1].replace("``", "`") if name.startswith("`") else name, field[2]))
    return fields


def _split_fields(inside: str) -> list[str]:
    """Cut at commas that are outside of brackets and backticks."""
    fields, depth, quoted, start = [], 0, False, 0
    for index, character in enumerate(inside + ","):
        if character == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            fields.append(inside[start:index].strip())
            start = index + 1
    return fields
