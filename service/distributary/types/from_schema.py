"""Finds the column's type for a Connect type with its semantic name. A new type of a schema is added here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from distributary.types.base import ColumnType
from distributary.types.bounds import Bounds
from distributary.types.connect_schema import ConnectType, NotAConnectSchema
from distributary.types.days import DATE, DATE_TEXT
from distributary.types.decimals import MAX_PRECISION, decimal, variable_decimal
from distributary.types.instants import NTZ_MICROS, NTZ_MILLIS, NTZ_NANOS, NTZ_TEXT, ZONED
from distributary.types.nested import array_of, map_of, struct_of
from distributary.types.numbers import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT
from distributary.types.text import BINARY, STRING
from distributary.types.times_of_day import TIME_MICROS, TIME_MILLIS, TIME_NANOS, TIME_TEXT

DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_WHOLE = re.compile(r"-?[0-9]{1,10}")

# JsonConverter writes Connect's FLOAT32 and FLOAT64 as `float` and `double`.
PRIMITIVES: Mapping[str, ColumnType] = {
    "int8": SMALLINT,
    "int16": SMALLINT,
    "int32": INT,
    "int64": BIGINT,
    "float": FLOAT,
    "float32": FLOAT,
    "double": DOUBLE,
    "float64": DOUBLE,
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BINARY,
}
SEMANTIC: Mapping[str, ColumnType] = {
    "org.apache.kafka.connect.data.Date": DATE,
    "org.apache.kafka.connect.data.Time": TIME_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": NTZ_MILLIS,
    "io.debezium.time.Date": DATE,
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
    "io.debezium.time.Year": INT,
    "io.debezium.time.MicroDuration": BIGINT,
    "io.debezium.time.NanoDuration": BIGINT,
}
"""Semantic names of Kafka Connect and of Debezium 1.0 to 3.x that determine how a value is read."""


def type_of_schema(connect: ConnectType, bounds: Bounds) -> ColumnType:
    """The type of a column with that schema. Raises NotAConnectSchema for a decimal beyond the bounds, and for schemas
    that no connector writes."""
    if connect.name == DECIMAL:
        precision = _parameter(connect, "connect.decimal.precision", MAX_PRECISION)
        scale = _parameter(connect, "scale", 0)
        if abs(scale) > bounds.decimal_scale:
            raise NotAConnectSchema(f"a decimal of scale {scale}")
        return decimal(precision, scale, bounds)
    if connect.name == VARIABLE_DECIMAL:
        return variable_decimal(bounds)
    if connect.name is not None and connect.name in SEMANTIC:
        return SEMANTIC[connect.name]
    if connect.kind == "array" and connect.items:
        return array_of(type_of_schema(connect.items, bounds))
    if connect.kind == "map" and connect.items and connect.keys:
        is_object = connect.keys.kind == "string" and not connect.has_entries
        keys = None if is_object else type_of_schema(connect.keys, bounds)
        return map_of(type_of_schema(connect.items, bounds), keys)
    if connect.kind == "struct":
        return struct_of({field.name: type_of_schema(field.type, bounds) for field in connect.fields})
    if connect.kind in PRIMITIVES:
        return PRIMITIVES[connect.kind]
    raise NotAConnectSchema(f"the type {connect.kind}")


def _parameter(connect: ConnectType, name: str, otherwise: int) -> int:
    text = connect.parameters.get(name)
    if not text:
        return otherwise
    if not _WHOLE.fullmatch(text):
        raise NotAConnectSchema(f"{name} of a decimal")
    return int(text)
