"""Types by the names that people and tables give them, as codecs: for values that carry no schema."""

from __future__ import annotations

import re
from collections.abc import Mapping

from distributary.decode import numbers
from distributary.decode.types import (
    BINARY_BASE64,
    BOOLEAN,
    DATE_DAYS,
    DATE_TEXT,
    DECIMAL,
    NTZ_MICROS,
    NTZ_MILLIS,
    NTZ_NANOS,
    NTZ_TEXT,
    SEMANTIC,
    STRING,
    TIME_MICROS,
    TIME_MILLIS,
    TIME_NANOS,
    VARIABLE,
    VARIABLE_DECIMAL,
    ZONED,
    Codec,
    array_of,
    cast,
    decimal,
    map_of,
    struct_of,
    variant_text,
)


class UnknownColumnType(ValueError):
    """A type name that the config's `columns` can't take."""


_UNITS: Mapping[str, Codec] = {
    "timestamp_ms": NTZ_MILLIS,
    "timestamp_us": NTZ_MICROS,
    "timestamp_ns": NTZ_NANOS,
    "time_ms": TIME_MILLIS,
    "time_us": TIME_MICROS,
    "time_ns": TIME_NANOS,
}
_BITS = "io.debezium.data.Bits"
# As Debezium's schemas have them: their bytes are Base64, whatever binary.handling.mode says of the columns' own.
_SHAPE = {"wkb": BINARY_BASE64, "srid": cast("int")}
_GEOMETRIES: Mapping[str, Codec] = {
    "io.debezium.data.geometry.Geometry": struct_of(_SHAPE),
    "io.debezium.data.geometry.Geography": struct_of(_SHAPE),
    "io.debezium.data.geometry.Point": struct_of({"x": cast("double"), "y": cast("double"), **_SHAPE}),
}
_TEXT_SEMANTIC = re.compile(r"io\.debezium\.(data|time)\.[A-Za-z]+")


def codec_named(type_name: str, properties: Mapping[str, str]) -> Codec:
    """The codec of a type named in the config (`columns`) or of an existing table's column.

    For values that carry no schema (else see conversions.py). Names are those of config.column_types and Spark's own.
    How text stands for a decimal or for bytes follows the connector's own `decimal.handling.mode` and
    `binary.handling.mode` in `properties`. Raises UnknownColumnType.
    """
    given = type_name.strip()
    if given in _UNITS:
        return _UNITS[given]
    if given in SEMANTIC:
        return SEMANTIC[given]
    if given in _GEOMETRIES:
        return _GEOMETRIES[given]
    if _TEXT_SEMANTIC.fullmatch(given):
        return {VARIABLE_DECIMAL: VARIABLE, _BITS: BINARY_BASE64}.get(given, STRING)
    lowered = given.lower()
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", lowered):
        return _named_decimal(int(match[1]), int(match[2]), properties)
    if match := re.fullmatch(rf"{re.escape(DECIMAL)}\((\d+),(\d+)\)", given):
        return decimal(int(match[1]), int(match[2]))
    if (element := element_named(given)) is not None:
        return array_of(codec_named(element, properties))
    if (value := value_named(given)) is not None:
        return map_of(codec_named(value, properties))
    if (fields := fields_named(given)) is not None:
        return struct_of({name: codec_named(kind, properties) for name, kind in fields})
    if codec := _NAMED.get(lowered):
        return codec
    if lowered == "binary":
        return _binary(properties.get("binary.handling.mode", "bytes"))
    raise UnknownColumnType(type_name)


_NAMED: Mapping[str, Codec] = {
    **{t: cast(t) for t in ("tinyint", "smallint", "int", "bigint", "float", "double")},
    "boolean": BOOLEAN,
    "string": STRING,
    "date": Codec(
        "STRING",
        "date",
        lambda x: f"CASE WHEN {x} RLIKE '^-?[0-9]+$' THEN {DATE_DAYS.sql(x)} ELSE {DATE_TEXT.sql(x)} END",
    ),
    "timestamp": ZONED,
    "timestamp_ntz": NTZ_TEXT,
    "variant": Codec("STRING", "variant", lambda x: f"try_parse_json({x})"),
}


def _named_decimal(precision: int, scale: int, properties: Mapping[str, str]) -> Codec:
    if properties.get("decimal.handling.mode", "precise") == "precise":
        return decimal(precision, scale)
    return Codec(
        "VARIANT",
        f"decimal({precision},{scale})",
        lambda x: numbers.exact_decimal(variant_text(x), precision, scale),
    )


def _binary(mode: str) -> Codec:
    if mode == "hex":
        # Of an odd number of digits Spark would take the first one for a whole byte.
        return Codec("STRING", "binary", lambda x: f"CASE WHEN length({x}) % 2 = 0 THEN try_to_binary({x}, 'hex') END")
    if mode == "base64-url-safe":
        return Codec("STRING", "binary", lambda x: f"try_to_binary(translate({x}, '-_', '+/'), 'base64')")
    return BINARY_BASE64


def element_named(given: str) -> str | None:
    """The type of an array's elements, as its name has it; None of what is no array."""
    match = re.fullmatch(r"array<(.+)>", given, re.IGNORECASE | re.DOTALL)
    return match[1] if match else None


def value_named(given: str) -> str | None:
    """The same of a map's values."""
    match = re.fullmatch(r"map<\s*string\s*,(.+)>", given, re.IGNORECASE | re.DOTALL)
    return match[1] if match else None


def fields_named(given: str) -> list[tuple[str, str]] | None:
    """The same of a struct's fields, with their names."""
    match = re.fullmatch(r"struct<(.*)>", given, re.IGNORECASE | re.DOTALL)
    return _struct_fields(match[1]) if match else None


def _struct_fields(inside: str) -> list[tuple[str, str]]:
    """`a: int, b: array<int>` into names and types; commas inside brackets or backticks do not part fields."""
    fields, depth, quoted, start = [], 0, False, 0
    for at, character in enumerate(inside + ","):
        if character == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            fields.append(inside[start:at].strip())
            start = at + 1
    pairs = []
    for item in filter(None, fields):
        match = re.fullmatch(r"(`(?:[^`]|``)+`|[^:\s]+)\s*:?\s*(.+)", item, re.DOTALL)
        if not match:
            raise UnknownColumnType(inside)
        name = match[1]
        pairs.append((name[1:-1].replace("``", "`") if name.startswith("`") else name, match[2]))
    return pairs
