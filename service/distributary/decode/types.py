"""Which Spark type a value gets and how it is read off the wire: one Codec per type.

A codec's `wire` is the type that from_json reads a JSON value as (mostly STRING: the text of the value, so that
nothing is rounded or turned to NULL before it was looked at; VARIANT where a number and a text must be told apart).
`sql` turns an expression of the wire type into one of the target type. It gives NULL for a value that the target
type can't hold: a value that was there and comes out NULL is a fault of the record, never stored.

Nearly all values come as their connector writes them, and then from_json can make the number or the bytes itself, which
takes less time: a codec's `usual` is the one for that. What from_json refuses to read so says nothing about the
record; it is to be read again by the codec itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distributary.decode import numbers, sql, times
from distributary.decode.connect import ConnectType

MAX_PRECISION = 38
_DIGITS_BEYOND_BIGINT = 19
"""The fewest of a number that BIGINT can't hold."""


@dataclass(frozen=True)
class Codec:
    """How one type is read: `wire` (from_json's type), `target` (Spark's simple string) and the SQL between.

    `usual`: another one, of the same target, that makes the same of all values that from_json reads as its wire. Where
    from_json is too lenient for that, `written` is SQL of the wire that gives the text which stands for such a value.
    `mark`: how its values are masked, None where they are not (see masks.py).
    """

    wire: str
    target: str
    sql: Callable[[str], str]
    usual: Codec | None = None
    written: Callable[[str], str] | None = None
    mark: str | None = None

    def there(self, x: str) -> str:
        """BOOLEAN: the wire has a value; a JSON null read as VARIANT is not SQL's NULL."""
        return f"({x} IS NOT NULL AND NOT is_variant_null({x}))" if self.wire == "VARIANT" else f"{x} IS NOT NULL"

    def lost(self, x: str) -> str:
        """BOOLEAN: the wire has a value that the target type can't hold."""
        return f"({self.there(x)} AND ({self.sql(x)}) IS NULL)"

    def doubt(self, x: str, name: str, text: str) -> str | None:
        """BOOLEAN: the JSON `text` does not have the value under that name, in any of its objects, as it is usually
        written; None where that does not matter."""
        if self.written is None:
            return None
        field, value = json.dumps(name, ensure_ascii=False), self.written(x)
        there = " OR ".join(
            f"contains({text}, concat({sql.text(field + colon)}, {value}, '\"'))" for colon in (':"', ': "')
        )
        return f"({x} IS NOT NULL AND NOT ({there}))"

    def reads_like(self, other: Codec) -> bool:
        """Whether both make the same of every value."""
        return (self.wire, self.target, self.sql("x_")) == (other.wire, other.target, other.sql("x_"))


def _same(expression: str) -> str:
    return expression


def _number(kind: str, target: str, then: Callable[[str], str]) -> Codec:
    """Of a JSON number of that type, and what stands for it."""
    return Codec("STRING", target, lambda x: then(f"try_cast({x} AS {kind})"), Codec(kind, target, then))


def cast(spark_type: str) -> Codec:
    if spark_type in _FRACTIONS:
        return _FRACTIONS[spark_type]

    def read(x: str) -> str:
        return f"try_cast({x} AS {spark_type})"

    if spark_type == "tinyint":  # from_json cuts a number short that is too large for it
        return Codec("STRING", spark_type, read, Codec("SMALLINT", spark_type, read))
    usual = Codec(spark_type.upper(), spark_type, _same) if spark_type in ("smallint", "int", "bigint") else None
    return Codec("STRING", spark_type, read, usual)


def _fraction(kind: str) -> Callable[[str], str]:
    """Of a number that is too large Spark makes infinity; JsonConverter writes infinities as texts."""
    return lambda x: (
        f"CASE WHEN NOT (abs(try_cast({x} AS {kind})) = double('Infinity') AND {x} RLIKE '^[ +-]*[.0-9]')"
        f" THEN try_cast({x} AS {kind}) END"
    )


_FRACTIONS: Mapping[str, Codec] = {
    # from_json would round it twice, by way of a DOUBLE.
    "float": Codec("STRING", "float", _fraction("float")),
    "double": Codec(
        "STRING",
        "double",
        _fraction("double"),
        Codec("DOUBLE", "double", lambda x: f"CASE WHEN abs({x}) < double('Infinity') THEN {x} END"),
    ),
}
STRING = Codec("STRING", "string", _same)
BOOLEAN = Codec(
    "STRING",
    "boolean",
    lambda x: f"CASE {x} WHEN 'true' THEN true WHEN 'false' THEN false END",
    Codec("BOOLEAN", "boolean", _same),
)
BINARY_BASE64 = Codec("STRING", "binary", lambda x: f"try_to_binary({x}, 'base64')")
DATE_DAYS = _number("INT", "date", times.date_of_days)
DATE_TEXT = Codec("STRING", "date", times.date_of_text)
NTZ_MILLIS = _number("BIGINT", "timestamp_ntz", times.ntz_of_millis)
NTZ_MICROS = _number("BIGINT", "timestamp_ntz", times.ntz_of_micros)
NTZ_NANOS = _number("BIGINT", "timestamp_ntz", times.ntz_of_nanos)
NTZ_TEXT = Codec("STRING", "timestamp_ntz", times.ntz_of_text)
ZONED = Codec("STRING", "timestamp", times.timestamp_of_text)
TIME_MILLIS = _number("BIGINT", "string", lambda n: times.time_of(n, 3))
TIME_MICROS = _number("BIGINT", "string", lambda n: times.time_of(n, 6))
TIME_NANOS = _number("BIGINT", "string", lambda n: times.time_of(n, 9))
TIME_TEXT = Codec("STRING", "string", times.time_of_text)

# JsonConverter writes Connect's FLOAT32 and FLOAT64 as `float` and `double`.
_PRIMITIVES: Mapping[str, Codec] = {
    "int8": cast("smallint"),
    "int16": cast("smallint"),
    "int32": cast("int"),
    "int64": cast("bigint"),
    "float": cast("float"),
    "double": cast("double"),
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
    "io.debezium.time.IsoTime": TIME_TEXT,
    "io.debezium.time.ZonedTime": STRING,
    "io.debezium.time.Year": cast("int"),
    "io.debezium.time.MicroDuration": cast("bigint"),
    "io.debezium.time.NanoDuration": cast("bigint"),
}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"


def codec_of(connect: ConnectType) -> Codec:
    """The codec of a Connect type with its semantic name."""
    if connect.name == DECIMAL:
        scale = int(connect.parameter("scale") or 0)
        precision = connect.parameter("connect.decimal.precision")
        return decimal(int(precision) if precision else MAX_PRECISION, scale)
    if connect.name == VARIABLE_DECIMAL:
        return VARIABLE
    if connect.name is not None and connect.name in SEMANTIC:
        return SEMANTIC[connect.name]
    if connect.kind == "array" and connect.items:
        return array_of(codec_of(connect.items))
    if connect.kind == "map" and connect.items and connect.keys and connect.keys.kind == "string":
        return map_of(codec_of(connect.items))
    if connect.kind == "struct":
        return struct_of({f.name: codec_of(f.type) for f in connect.fields})
    return _PRIMITIVES.get(connect.kind, STRING)


def decimal(precision: int, scale: int) -> Codec:
    """Base64 or a JSON number, as DECIMAL where DECIMAL can have that precision and scale, else as exact STRING.

    Of a number with an exponent, and of one of more than 38 digits, a VARIANT has the nearest DOUBLE. Where that shows
    more than 15 digits it may be another number: it is no value then.
    """
    fits = 0 < precision <= MAX_PRECISION and 0 <= scale <= precision
    # 18 digits fit in eight bytes; a number of more bytes is one that the type can't hold.
    bytes_needed = 8 if fits and precision <= 18 else None

    target = f"decimal({precision},{scale})" if fits else "string"

    def coded(binary: str) -> str:
        digits = numbers.unscaled(binary, bytes_needed)
        return numbers.to_decimal(digits, precision, scale) if fits else numbers.to_plain(digits, str(scale))

    def read(x: str) -> str:
        shown = variant_text(x)
        number = numbers.exact_decimal(shown, precision, scale) if fits else numbers.plain_number(shown)
        text = coded(f"try_to_binary({shown}, 'base64')")
        return (
            f"CASE WHEN schema_of_variant({x}) = 'STRING' THEN {text}"
            f" WHEN schema_of_variant({x}) = 'DOUBLE' AND {numbers.has_more_than_15_digits(shown)} THEN NULL"
            f" WHEN {x} IS NOT NULL AND NOT is_variant_null({x}) THEN {number} END"
        )

    # from_json takes what comes after the padding, too.
    return Codec("VARIANT", target, read, Codec("BINARY", target, coded, written=lambda x: f"base64({x})"))


def variant_text(x: str) -> str:
    return f"variant_get({x}, '$', 'string')"


def _read_variable(x: str) -> str:
    digits = numbers.unscaled(f"try_to_binary({x}.value, 'base64')")
    return numbers.to_plain(digits, f"try_cast({x}.scale AS INT)")


VARIABLE = Codec("STRUCT<scale: STRING, value: STRING>", "string", _read_variable)


def array_of(element: Codec) -> Codec:
    if element is STRING:
        return Codec("ARRAY<STRING>", "array<string>", _same)

    def read(x: str) -> str:
        bad = f"exists({x}, element_ -> {element.lost('element_')})"
        return f"CASE WHEN NOT {bad} THEN transform({x}, element_ -> {element.sql('element_')}) END"

    return Codec(f"ARRAY<{element.wire}>", f"array<{element.target}>", read)


def map_of(value: Codec) -> Codec:
    if value is STRING:
        return Codec("MAP<STRING, STRING>", "map<string,string>", _same)

    def read(x: str) -> str:
        bad = f"exists(map_values({x}), item_ -> {value.lost('item_')})"
        return f"CASE WHEN NOT {bad} THEN transform_values({x}, (key_, item_) -> {value.sql('item_')}) END"

    return Codec(f"MAP<STRING, {value.wire}>", f"map<string,{value.target}>", read)


def struct_of(fields: Mapping[str, Codec]) -> Codec:
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


def by_value(variant_schema: str) -> str | None:
    """The type that a value without schema gives its column: integers BIGINT, fractions DOUBLE, BOOLEAN, else STRING;
    STRING too for integers that BIGINT can't hold: a DOUBLE would make one number of several.

    `variant_schema` is what schema_of_variant says of the value; None for a JSON null, which tells nothing.
    """
    if variant_schema == "VOID":
        return None
    if variant_schema == "BIGINT":
        return "bigint"
    if variant_schema == "BOOLEAN":
        return "boolean"
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", variant_schema):
        return "string" if found[2] == "0" and int(found[1]) >= _DIGITS_BEYOND_BIGINT else "double"
    return "double" if variant_schema == "DOUBLE" else "string"
