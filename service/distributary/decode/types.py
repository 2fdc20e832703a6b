"""Which Spark type a value gets and how it is read off the wire: one Codec per type.

A codec's `wire` is the type that from_json reads a JSON value as (mostly STRING: the text of the value, so that
nothing is rounded or turned to NULL before it was looked at; VARIANT where a number and a text must be told apart).
`sql` turns an expression of the wire type into one of the target type. It gives NULL for a value that the target
type can't hold: a value that was there and comes out NULL is a fault of the record, never stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distributary.decode import numbers, sql, times
from distributary.decode.connect import ConnectType

MAX_PRECISION = 38


@dataclass(frozen=True)
class Codec:
    """How one type is read: `wire` (from_json's type), `target` (Spark's simple string) and the SQL between."""

    wire: str
    target: str
    sql: Callable[[str], str]

    def there(self, x: str) -> str:
        """BOOLEAN: the wire has a value; a JSON null read as VARIANT is not SQL's NULL."""
        return f"({x} IS NOT NULL AND NOT is_variant_null({x}))" if self.wire == "VARIANT" else f"{x} IS NOT NULL"

    def lost(self, x: str) -> str:
        """BOOLEAN: the wire has a value that the target type can't hold."""
        return f"({self.there(x)} AND ({self.sql(x)}) IS NULL)"

    def reads_like(self, other: Codec) -> bool:
        """Whether both make the same of every value."""
        return (self.wire, self.target, self.sql("x_")) == (other.wire, other.target, other.sql("x_"))


def _same(expression: str) -> str:
    return expression


def _long(then: Callable[[str], str]) -> Callable[[str], str]:
    return lambda x: then(f"try_cast({x} AS BIGINT)")


def _cast(spark_type: str) -> Codec:
    return Codec("STRING", spark_type, lambda x: f"try_cast({x} AS {spark_type})")


STRING = Codec("STRING", "string", _same)
BOOLEAN = Codec("STRING", "boolean", lambda x: f"CASE {x} WHEN 'true' THEN true WHEN 'false' THEN false END")
BINARY_BASE64 = Codec("STRING", "binary", lambda x: f"try_to_binary({x}, 'base64')")
DATE_DAYS = Codec("STRING", "date", lambda x: times.date_of_days(f"try_cast({x} AS INT)"))
DATE_TEXT = Codec("STRING", "date", times.date_of_text)
NTZ_MILLIS = Codec("STRING", "timestamp_ntz", _long(times.ntz_of_millis))
NTZ_MICROS = Codec("STRING", "timestamp_ntz", _long(times.ntz_of_micros))
NTZ_NANOS = Codec("STRING", "timestamp_ntz", _long(times.ntz_of_nanos))
NTZ_TEXT = Codec("STRING", "timestamp_ntz", times.ntz_of_text)
ZONED = Codec("STRING", "timestamp", times.timestamp_of_text)
TIME_MILLIS = Codec("STRING", "string", _long(lambda n: times.time_of(n, 3)))
TIME_MICROS = Codec("STRING", "string", _long(lambda n: times.time_of(n, 6)))
TIME_NANOS = Codec("STRING", "string", _long(lambda n: times.time_of(n, 9)))

# JsonConverter writes Connect's FLOAT32 and FLOAT64 as `float` and `double`.
_PRIMITIVES: Mapping[str, Codec] = {
    "int8": _cast("smallint"),
    "int16": _cast("smallint"),
    "int32": _cast("int"),
    "int64": _cast("bigint"),
    "float": _cast("float"),
    "double": _cast("double"),
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BINARY_BASE64,
}

# Semantic names of Kafka Connect and of Debezium 1.0 to 3.x.
SEMANTIC: Mapping[str, Codec] = {
    "org.apache.kafka.connect.data.Date": DATE_DAYS,
    "org.apache.kafka.connect.data.Time": TIME_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": NTZ_MILLIS,
    "io.debezium.time.Date": DATE_DAYS,
    "io.debezium.time.IsoDate": DATE_TEXT,
    "io.debezium.time.Timestamp": NTZ_MILLIS,
    "io.debezium.time.MicroTimestamp": NTZ_MICROS,
    "io.debezium.time.NanoTimestamp": NTZ_NANOS,
    "io.debezium.time.IsoTimestamp": NTZ_TEXT,
    "io.debezium.time.ZonedTimestamp": ZONED,
    "io.debezium.time.Time": TIME_MILLIS,
    "io.debezium.time.MicroTime": TIME_MICROS,
    "io.debezium.time.NanoTime": TIME_NANOS,
    "io.debezium.time.IsoTime": STRING,
    "io.debezium.time.ZonedTime": STRING,
    "io.debezium.time.Year": _cast("int"),
    "io.debezium.time.MicroDuration": _cast("bigint"),
    "io.debezium.time.NanoDuration": _cast("bigint"),
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_BITS = "io.debezium.data.Bits"


def codec_of(connect: ConnectType) -> Codec:
    """The codec of a Connect type with its semantic name."""
    if connect.name == _DECIMAL:
        scale = int(connect.parameter("scale") or 0)
        precision = connect.parameter("connect.decimal.precision")
        return decimal(int(precision) if precision else MAX_PRECISION, scale)
    if connect.name == _VARIABLE_DECIMAL:
        return _VARIABLE
    if connect.name is not None and connect.name in SEMANTIC:
        return SEMANTIC[connect.name]
    if connect.kind == "array" and connect.items:
        return _array(codec_of(connect.items))
    if connect.kind == "map" and connect.items and connect.keys and connect.keys.kind == "string":
        return _map(codec_of(connect.items))
    if connect.kind == "struct":
        return _struct({f.name: codec_of(f.type) for f in connect.fields})
    return _PRIMITIVES.get(connect.kind, STRING)


def decimal(precision: int, scale: int) -> Codec:
    """Base64 or a JSON number, as DECIMAL where DECIMAL can have that precision and scale, else as exact STRING."""
    fits = 0 < precision <= MAX_PRECISION and 0 <= scale <= precision
    # 18 digits fit in eight bytes; a number of more bytes is one that the type can't hold.
    bytes_needed = 8 if fits and precision <= 18 else None

    def read(x: str) -> str:
        digits = numbers.unscaled(f"try_to_binary({_variant_text('value_')}, 'base64')", bytes_needed)
        if fits:
            number = numbers.exact_decimal(_variant_text("value_"), precision, scale)
            coded = numbers.to_decimal(digits, precision, scale)
        else:
            number, coded = _variant_text("value_"), numbers.to_plain(digits, str(scale))
        typed = (
            f"CASE WHEN schema_of_variant(value_) = 'STRING' THEN {coded}"
            f" WHEN NOT is_variant_null(value_) THEN {number} END"
        )
        return sql.let("value_", x, typed)

    return Codec("VARIANT", f"decimal({precision},{scale})" if fits else "string", read)


def _variant_text(x: str) -> str:
    return f"variant_get({x}, '$', 'string')"


def _read_variable(x: str) -> str:
    digits = numbers.unscaled(f"try_to_binary({x}.value, 'base64')")
    return numbers.to_plain(digits, f"try_cast({x}.scale AS INT)")


_VARIABLE = Codec("STRUCT<scale: STRING, value: STRING>", "string", _read_variable)


def _array(element: Codec) -> Codec:
    if element is STRING:
        return Codec("ARRAY<STRING>", "array<string>", _same)

    def read(x: str) -> str:
        bad = f"exists({x}, element_ -> {element.lost('element_')})"
        return f"CASE WHEN NOT {bad} THEN transform({x}, element_ -> {element.sql('element_')}) END"

    return Codec(f"ARRAY<{element.wire}>", f"array<{element.target}>", read)


def _map(value: Codec) -> Codec:
    if value is STRING:
        return Codec("MAP<STRING, STRING>", "map<string,string>", _same)

    def read(x: str) -> str:
        bad = f"exists(map_values({x}), item_ -> {value.lost('item_')})"
        return f"CASE WHEN NOT {bad} THEN transform_values({x}, (key_, item_) -> {value.sql('item_')}) END"

    return Codec(f"MAP<STRING, {value.wire}>", f"map<string,{value.target}>", read)


def _struct(fields: Mapping[str, Codec]) -> Codec:
    def read(x: str) -> str:
        at = {name: f"{x}.{sql.name(name)}" for name in fields}
        bad = " OR ".join(c.lost(at[n]) for n, c in fields.items()) or "false"
        values = ", ".join(f"{sql.text(n)}, {c.sql(at[n])}" for n, c in fields.items())
        return f"CASE WHEN {x} IS NOT NULL AND NOT ({bad}) THEN named_struct({values}) END"

    wire = ", ".join(f"{sql.name(n)}: {c.wire}" for n, c in fields.items())
    target = ",".join(f"{_plain_or_quoted(n)}:{c.target}" for n, c in fields.items())
    return Codec(f"STRUCT<{wire}>", f"struct<{target}>", read)


def _plain_or_quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else sql.name(name)


class UnknownColumnType(ValueError):
    """A type name that the config's `columns` can't take."""


_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal(10,0)", "numeric": "decimal(10,0)", "decimal": "decimal(10,0)",
}  # fmt: skip
_UNITS: Mapping[str, Codec] = {
    "timestamp_ms": NTZ_MILLIS,
    "timestamp_us": NTZ_MICROS,
    "timestamp_ns": NTZ_NANOS,
    "time_ms": TIME_MILLIS,
    "time_us": TIME_MICROS,
    "time_ns": TIME_NANOS,
}
_TEXT_SEMANTIC = re.compile(r"io\.debezium\.(data|time)\.[A-Za-z]+")


def codec_named(type_name: str, properties: Mapping[str, str]) -> Codec:
    """The codec of a type named in the config (`columns`) or of an existing table's column.

    For values that carry no schema. How text stands for a decimal or for bytes follows the connector's own
    `decimal.handling.mode` and `binary.handling.mode` in `properties`.
    Raises UnknownColumnType.
    """
    given = type_name.strip()
    if given in _UNITS:
        return _UNITS[given]
    if given in SEMANTIC:
        return SEMANTIC[given]
    if _TEXT_SEMANTIC.fullmatch(given):
        return {_VARIABLE_DECIMAL: _VARIABLE, _BITS: BINARY_BASE64}.get(given, STRING)
    lowered = given.lower()
    lowered = _ALIASES.get(lowered, lowered)
    if match := re.fullmatch(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", lowered):
        return _named_decimal(int(match[1]), int(match[2] or 0), properties)
    if match := re.fullmatch(r"array<(.+)>", given, re.IGNORECASE | re.DOTALL):
        return _array(codec_named(match[1], properties))
    if match := re.fullmatch(r"map<\s*string\s*,(.+)>", given, re.IGNORECASE | re.DOTALL):
        return _map(codec_named(match[1], properties))
    if match := re.fullmatch(r"struct<(.*)>", given, re.IGNORECASE | re.DOTALL):
        return _struct({n: codec_named(t, properties) for n, t in _struct_fields(match[1])})
    if codec := _NAMED.get(lowered):
        return codec
    if lowered == "binary":
        return _binary(properties.get("binary.handling.mode", "bytes"))
    raise UnknownColumnType(type_name)


_NAMED: Mapping[str, Codec] = {
    **{t: _cast(t) for t in ("tinyint", "smallint", "int", "bigint", "float", "double")},
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
        lambda x: numbers.exact_decimal(_variant_text(x), precision, scale),
    )


def _binary(mode: str) -> Codec:
    if mode == "hex":
        return Codec("STRING", "binary", lambda x: f"try_to_binary({x}, 'hex')")
    if mode == "base64-url-safe":
        return Codec("STRING", "binary", lambda x: f"try_to_binary(translate({x}, '-_', '+/'), 'base64')")
    return BINARY_BASE64


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


def by_value(variant_schema: str) -> str | None:
    """The type that a value without schema gives its column: integers BIGINT, fractions DOUBLE, BOOLEAN, else STRING.

    `variant_schema` is what schema_of_variant says of the value; None for a JSON null, which tells nothing.
    """
    if variant_schema == "VOID":
        return None
    if variant_schema == "BIGINT":
        return "bigint"
    if variant_schema == "BOOLEAN":
        return "boolean"
    if variant_schema == "DOUBLE" or variant_schema.startswith("DECIMAL"):
        return "double"
    return "string"
