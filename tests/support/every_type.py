"""Every type that a Connect schema can give a column, with values at its edges: on the wire, and as the lake must hold
them. Written from Debezium's and Kafka Connect's documentation, without any of the service's code.

Values are those of tests.support.comparable, types Arrow's.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.support.changes import VARIABLE_SCALE
from tests.support.comparable import Value, float32
from tests.support.instants import DAY, FIRST_DATE, FIRST_INSTANT, LAST_DATE, LAST_INSTANT, days, instant
from tests.support.source_type import NTZ, UTC

Schema = dict[str, Any]
_NTZ_LAST, _NTZ_FIRST = LAST_INSTANT, FIRST_INSTANT
_ALL_SCRIPTS = "ß漢字 \U0001d11e \u0000\u001f\u007f\u2028 '\"`\\ ${x}"


@dataclass(frozen=True)
class WireType:
    """A type: the column's name and Connect schema, the type that the lake's column must have, pairs of a value on the
    wire and in the lake, and values on the wire that the type can't hold (of JSON; Avro's bytes have no other type)."""

    name: str
    schema: Schema
    arrow: pa.DataType
    values: tuple[tuple[Any, Value], ...]
    bad: tuple[Any, ...] = ()


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unscaled(number: int) -> str:
    return _b64(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _named(kind: str, name: str, **parameters: str) -> Schema:
    return {"type": kind, "name": name, **({"parameters": parameters} if parameters else {})}


def _time(name: str, kind: str = "int64") -> Schema:
    return _named(kind, f"io.debezium.time.{name}")


def _connect(name: str, kind: str) -> Schema:
    return _named(kind, f"org.apache.kafka.connect.data.{name}")


def _data(name: str, kind: str = "string", **parameters: str) -> Schema:
    return _named(kind, f"io.debezium.data.{name}", **parameters)


def _decimal(precision: int | None, scale: int) -> Schema:
    found = {"connect.decimal.precision": str(precision)} if precision else {}
    return {**_connect("Decimal", "bytes"), "parameters": {"scale": str(scale), **found}}


def _optional(kind: str) -> Schema:
    return {"type": kind, "optional": True}


def _whole(bits: int) -> tuple[tuple[int, int], ...]:
    return tuple((n, n) for n in (0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))))


def _as_sent(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, text) for text in texts)


_NO_INT: tuple[Any, ...] = (1.5, "x", True, [], 2**63)
_POINT = {
    "type": "struct",
    "name": "io.debezium.data.geometry.Point",
    "fields": [
        {"type": "double", "field": "x"},
        {"type": "double", "field": "y"},
        {"type": "bytes", "optional": True, "field": "wkb"},
        {"type": "int32", "optional": True, "field": "srid"},
    ],
}
_POINT_ARROW = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int32())])
_MOST = 10**38 - 1
_NOON = 12 * 3600

EVERY_TYPE = (
    WireType("t_int8", {"type": "int8"}, pa.int16(), _whole(8), _NO_INT),
    WireType("t_int16", {"type": "int16"}, pa.int16(), _whole(16), (*_NO_INT, 2**15)),
    WireType("t_int32", {"type": "int32"}, pa.int32(), _whole(32), (*_NO_INT, -(2**31) - 1)),
    WireType("t_int64", {"type": "int64"}, pa.int64(), _whole(64), _NO_INT),
    WireType(
        "t_float",
        {"type": "float"},
        pa.float32(),
        tuple((n, float32(float(n))) for n in (1.5, -0.0, 3.4028234663852886e38, 1.401298464324817e-45, "NaN")),
        ("x", True),
    ),
    WireType(
        "t_double",
        {"type": "double"},
        pa.float64(),
        tuple((n, float(n)) for n in (0.1, -0.0, 1.7976931348623157e308, 5e-324, "Infinity", "-Infinity")),
        ("x", False),
    ),
    WireType("t_boolean", {"type": "boolean"}, pa.bool_(), ((True, True), (False, False)), ("yes", 1)),
    WireType("t_string", {"type": "string"}, pa.string(), _as_sent("", _ALL_SCRIPTS, "null", "x" * 100_000)),
    WireType(
        "t_bytes",
        {"type": "bytes"},
        pa.binary(),
        tuple((_b64(data), data) for data in (b"", bytes(range(256)))),
        ("?", "AQ=", 5),
    ),
    WireType(
        "t_array",
        {"type": "array", "items": _optional("string")},
        pa.list_(pa.string()),
        (([], []), (["", None, _ALL_SCRIPTS], ["", None, _ALL_SCRIPTS])),
        ("x", 1),
    ),
    WireType(
        "t_arrays",
        {"type": "array", "items": {"type": "array", "items": _optional("int32")}},
        pa.list_(pa.list_(pa.int32())),
        (([[1, None], []], [[1, None], []]),),
        ([["x"]],),
    ),
    WireType(
        "t_map",
        {"type": "map", "keys": {"type": "string"}, "values": _optional("int64")},
        pa.map_(pa.string(), pa.int64()),
        (({}, {}), ({"": None, "a b": 2**63 - 1}, {"": None, "a b": 2**63 - 1})),
        ({"a": "x"}, []),
    ),
    WireType(
        "t_map_of_numbers",
        {"type": "map", "keys": {"type": "int16"}, "values": _optional("double")},
        pa.map_(pa.int16(), pa.float64()),
        (([], {}), ([[7, -1.5], [-9, None]], {7: -1.5, -9: None})),
        ([[7, "x"]], [[7, 1], [7, 2]], {"7": 1}, 5),
    ),
    WireType(
        "t_point",
        _POINT,
        _POINT_ARROW,
        (
            (
                {"x": 1.5, "y": -2.0, "wkb": _b64(b"\x01"), "srid": None},
                {"x": 1.5, "y": -2.0, "wkb": b"\x01", "srid": None},
            ),
        ),
        ({"x": 1, "y": 2, "wkb": "?", "srid": 1},),
    ),
    WireType(
        "t_decimal",
        _decimal(12, 2),
        pa.decimal128(12, 2),
        tuple((_unscaled(n), Decimal(n).scaleb(-2)) for n in (0, 1, -1, 10**12 - 1, 1 - 10**12)),
        (_unscaled(10**12), "?", 1.005),
    ),
    WireType(
        "t_decimal38",
        _decimal(38, 38),
        pa.decimal128(38, 38),
        tuple((_unscaled(n), Decimal(f"{n}E-38")) for n in (1, _MOST, -_MOST)),
        (_unscaled(_MOST + 1), "?"),
    ),
    WireType(
        "t_no_precision",
        _decimal(None, 2),
        pa.decimal128(38, 2),
        ((_unscaled(-12345), Decimal("-123.45")),),
        (_unscaled(_MOST + 1),),
    ),
    WireType(
        "t_decimal65",
        _decimal(65, 30),
        pa.string(),
        ((_unscaled(10**64), "1" + "0" * 34 + "." + "0" * 30), (_unscaled(-1), "-0." + "0" * 29 + "1")),
        ("?",),
    ),
    WireType("t_negative_scale", _decimal(5, -2), pa.string(), ((_unscaled(123), "12300"),), ("?",)),
    WireType(
        "t_variable",
        VARIABLE_SCALE,
        pa.string(),
        (
            ({"scale": 3, "value": _unscaled(-1)}, "-0.001"),
            ({"scale": 0, "value": _unscaled(10**50)}, "1" + "0" * 50),
        ),
        ({"scale": 2, "value": "?"},),
    ),
    *(
        WireType(
            name,
            schema,
            pa.date32(),
            ((0, 0), (FIRST_DATE, FIRST_DATE), (LAST_DATE + 1, LAST_DATE + 1), (-2147472692, LAST_DATE)),
            (1.5, "x"),
        )
        for name, schema in (("t_date", _time("Date", "int32")), ("t_connect_date", _connect("Date", "int32")))
    ),
    WireType(
        "t_iso_date",
        _time("IsoDate", "string"),
        pa.date32(),
        (("2024-02-29Z", days("2024-02-29")), ("+10000-01-01Z", LAST_DATE + 1), ("+292269055-12-02Z", FIRST_DATE)),
        ("2023-02-29Z", "x", 5),
    ),
    *(
        WireType(
            name,
            schema,
            NTZ,
            ((-1, -1000), (1709210096789, instant("2024-02-29 12:34:56.789")), (9223372036825200, _NTZ_LAST)),
            (1.5, 2**62),
        )
        for name, schema in (
            ("t_timestamp", _time("Timestamp")),
            ("t_connect_timestamp", _connect("Timestamp", "int64")),
        )
    ),
    WireType(
        "t_micro_timestamp",
        _time("MicroTimestamp"),
        NTZ,
        ((-1, -1), (9223372036825200000, _NTZ_LAST), (-9223372036832400000, _NTZ_FIRST)),
        (0.5, 2**63),
    ),
    WireType(
        "t_nano_timestamp",
        _time("NanoTimestamp"),
        NTZ,
        ((-1, -1), (1999, 1), (2**63 - 1, _NTZ_LAST), (-(2**63), _NTZ_FIRST)),
        (0.5, "x"),
    ),
    WireType(
        "t_iso_timestamp",
        _time("IsoTimestamp", "string"),
        NTZ,
        (
            ("2024-02-29T12:34:56.789012Z", instant("2024-02-29 12:34:56.789012")),
            ("+294247-01-10T04:00:25.2Z", _NTZ_LAST),
        ),
        ("2024-02-30T00:00:00Z", "12:00:00Z"),
    ),
    WireType(
        "t_zoned_timestamp",
        _time("ZonedTimestamp", "string"),
        UTC,
        (
            ("2024-02-29T12:34:56.789012999+05:30", instant("2024-02-29 12:34:56.789012+05:30")),
            ("0001-01-01T00:00:00Z", FIRST_DATE * DAY),
            ("infinity", LAST_INSTANT),
        ),
        ("2024-02-30T00:00:00Z", "x"),
    ),
    *(
        WireType(name, schema, pa.string(), ((0, "00:00:00.000"), (86_400_000, "24:00:00.000")), (1.5, "x"))
        for name, schema in (("t_time", _time("Time", "int32")), ("t_connect_time", _connect("Time", "int32")))
    ),
    WireType(
        "t_micro_time",
        _time("MicroTime"),
        pa.string(),
        ((_NOON * 10**6 + 1, "12:00:00.000001"), (-3_020_399_000_000, "-838:59:59.000000")),
        (1.5,),
    ),
    WireType("t_nano_time", _time("NanoTime"), pa.string(), ((_NOON * 10**9 + 1, "12:00:00.000000001"),), (1.5,)),
    WireType(
        "t_iso_time",
        _time("IsoTime", "string"),
        pa.string(),
        (("12:34:56.789012Z", "12:34:56.789012"), ("00:00:00Z", "00:00:00")),
    ),
    WireType("t_zoned_time", _time("ZonedTime", "string"), pa.string(), _as_sent("06:30:00.5Z", "06:30:00+05:30")),
    WireType("t_year", _time("Year", "int32"), pa.int32(), ((0, 0), (9999, 9999)), ("x",)),
    WireType("t_micro_duration", _time("MicroDuration"), pa.int64(), _whole(64), (1.5,)),
    WireType("t_nano_duration", _time("NanoDuration"), pa.int64(), _whole(64), (1.5,)),
    WireType("t_interval", _time("Interval", "string"), pa.string(), _as_sent("P1Y2M3DT4H5M6.7S")),
    WireType("t_json", _data("Json"), pa.string(), _as_sent('{"a": [1.10, null]}', "null")),
    WireType("t_xml", _data("Xml"), pa.string(), _as_sent("<a b='c'>&lt;</a>")),
    WireType("t_uuid", _data("Uuid"), pa.string(), _as_sent("00000000-0000-0000-0000-00000000000f")),
    WireType("t_enum", _data("Enum", allowed="a,b"), pa.string(), _as_sent("a", "")),
    WireType("t_enum_set", _data("EnumSet", allowed="a,b"), pa.string(), _as_sent("a,b")),
    WireType("t_ltree", _data("Ltree"), pa.string(), _as_sent("Top.Science")),
    WireType("t_bits", _data("Bits", "bytes", length="16"), pa.binary(), ((_b64(b"\x01\x80"), b"\x01\x80"),), ("?",)),
)
