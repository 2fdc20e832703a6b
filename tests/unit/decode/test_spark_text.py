"""Texts that hashes are made of. What is expected was written by Java 17 and by Spark 4.2 in the zone UTC: CAST to
STRING, and to_json of nested values."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from distributary.types.java_numbers import double_text, float_text
from distributary.types.spark_text import spark_texts

DOUBLES = {
    "0000000000000000": "0.0",
    "8000000000000000": "-0.0",
    "7ff0000000000000": "Infinity",
    "fff0000000000000": "-Infinity",
    "7ff8000000000000": "NaN",
    "0000000000000001": "4.9E-324",
    "0010000000000000": "2.2250738585072014E-308",
    "7fefffffffffffff": "1.7976931348623157E308",
    "3fb999999999999a": "0.1",
    "bf73a92a30553261": "-0.0048",
    "3f50624dd2f1a9fc": "0.001",
    "416312cfe0000000": "9999999.0",
    "416312d000000000": "1.0E7",
    "4234d44060d00000": "8.94603348E10",
    "ec9921fd830aab54": "-1.353746530647304E215",
    "9382ec80d14b5d1d": "-1.0978989796880358E-214",
    # Not the fewest digits that identify the number, and not the nearest of so many.
    "44b52d02c7e14af6": "9.999999999999999E22",
    "43b0000000000000": "1.15292150460684698E18",
    "4372cf684b5d4b65": "8.4713542859929168E16",
    "438e6fe8176224ce": "2.74153341335148992E17",
    "43d187881c3dacd7": "5.0525115015036508E18",
    "c36d29e1276e64e4": "-6.5670570644285216E16",
    "4b40000000000000": "3.0649910817317777E54",
    "43c9c6ab93e0995f": "3.7147210959071964E18",
}
FLOATS = {
    "00000001": "1.4E-45",
    "7f7fffff": "3.4028235E38",
    "3f8ccccd": "1.1",
    "44c878fc": "1603.7808",
    "489af880": "317380.0",
    "a1fce720": "-1.7137362E-18",
    "6a345d24": "5.4511622E25",
    "4eef7e98": "2.00902554E9",
    "52309b19": "1.89629088E11",
    "d8168024": "-6.6190842E14",
    "5a5e97ca": "1.56635847E16",
    "57f8ffab": "5.47553939E14",
    "7fc00000": "NaN",
}


@pytest.mark.parametrize(("bits", "text"), DOUBLES.items())
def test_a_double_has_the_text_that_java_17_makes_of_it(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert double_text(number) == text


@pytest.mark.parametrize(("bits", "text"), FLOATS.items())
def test_a_float_likewise(bits: str, text: str) -> None:
    (number,) = struct.unpack(">f", bytes.fromhex(bits))
    assert float_text(number) == text
    assert spark_texts(pa.array([number], pa.float32()), "float") == [text]


DECIMALS = ["0E-10", "1E-10", "-0.0000001234", "12.5", "0.0000010000", "0.0000001000"]
DAYS = [0, -1, 2_932_896, 2_932_897, -719_162, -719_163, -719_529, 2**31 - 1, -(2**31)]
INSTANTS = [-1, 999_999, 253_402_300_800_000_000, -62_167_219_200_000_001, 2**63 - 1, -(2**63), 1_700_000_000_123_450]


def of_int(numbers: list[int], kind: pa.DataType) -> pa.Array:
    return pa.array(numbers, pa.int32() if pa.types.is_date32(kind) else pa.int64()).view(kind)


def nested(array: pa.Array) -> pa.Array:
    """Each value in a list of its own."""
    return pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)


DATES = [
    *("1970-01-01", "1969-12-31", "9999-12-31", "+10000-01-01", "0001-01-01", "0000-12-31", "-0001-12-31"),
    *("+5881580-07-11", "-5877641-06-23"),
]
TIMESTAMPS = [
    *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.999999", "+10000-01-01 00:00:00"),
    *("-0001-12-31 23:59:59.999999", "+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:05.224192"),
    "2023-11-14 22:13:20.12345",
]
IN_JSON = [
    *("1969-12-31T23:59:59.999", "1970-01-01T00:00:00.999", "+10000-01-01T00:00:00.000", "-0001-12-31T23:59:59.999"),
    *("+294247-01-10T04:00:54.775", "-290308-12-21T19:59:05.224", "2023-11-14T22:13:20.123"),
]
DECIMAL = pa.array(list(map(Decimal, DECIMALS)), pa.decimal128(20, 10))
PLAIN = ["0.0000000000", "0.0000000001", "-0.0000001234", "12.5000000000", "0.0000010000", "0.0000001000"]
SCIENTIFIC = ["0E-10", "1E-10", "-1.234E-7", "12.5000000000", "0.0000010000", "1.000E-7"]
CONTROLS = '\n\t\r\b\f\x01\x1f\x7f"\\/'
STRUCT = pa.struct({"a": pa.int32(), "b c": pa.string(), "d": pa.float64()})
ROWS = [{"a": 1, "d": 1e22}, {}, {"b c": "ä\u2028😀"}, None]
CASES: list[tuple[str, pa.Array, list[Any]]] = [
    ("decimal(20,10)", DECIMAL, PLAIN),
    ("decimal(38,38)", pa.array([Decimal("1E-38")], pa.decimal128(38, 38)), [f"0.{'0' * 37}1"]),
    ("date", of_int(DAYS, pa.date32()), DATES),
    ("timestamp", of_int(INSTANTS, pa.timestamp("us", "UTC")), TIMESTAMPS),
    ("timestamp_ntz", of_int(INSTANTS, pa.timestamp("us")), TIMESTAMPS),
    ("binary", pa.array([b"", b"\x00\xff"], pa.binary()), ["", "00ff"]),
    ("boolean", pa.array([True, False, None]), ["true", "false", None]),
    ("string", pa.array([CONTROLS, None]), [CONTROLS, None]),
    ("array<decimal(20,10)>", nested(DECIMAL), [f"[{text}]" for text in SCIENTIFIC]),
    ("array<date>", nested(of_int(DAYS, pa.date32())), [f'["{text}"]' for text in DATES]),
    ("array<timestamp>", nested(of_int(INSTANTS, pa.timestamp("us", "UTC"))), [f'["{text}Z"]' for text in IN_JSON]),
    ("array<timestamp_ntz>", nested(of_int(INSTANTS, pa.timestamp("us"))), [f'["{text}"]' for text in IN_JSON]),
    ("array<binary>", nested(pa.array([b"", b"\x00\xff"], pa.binary())), ['[""]', '["AP8="]']),
    ("array<double>", nested(pa.array([float("nan"), 5e-324, 1e7])), ['["NaN"]', "[4.9E-324]", "[1.0E7]"]),
    ("array<string>", nested(pa.array([CONTROLS])), ['["\\n\\t\\r\\b\\f\\u0001\\u001F\x7f\\"\\\\/"]']),
    ("array<string>", pa.array([[None, "a"], [], None], pa.list_(pa.string())), ['[null,"a"]', "[]", None]),
    (
        "map<string,double>",
        pa.array([[('k"\n', 1e7), ("z", None)], []], pa.map_(pa.string(), pa.float64())),
        ['{"k\\"\\n":1.0E7,"z":null}', "{}"],
    ),
    (
        "struct<a:int,`b c`:string,d:double>",
        pa.array(ROWS, STRUCT),
        ['{"a":1,"d":1.0E22}', "{}", '{"b c":"ä\u2028😀"}', None],
    ),
]


@pytest.mark.parametrize(("kind", "array", "texts"), CASES, ids=[case[0] for case in CASES])
def test_other_values_have_the_text_that_spark_makes_of_them(kind: str, array: pa.Array, texts: list[Any]) -> None:
    assert spark_texts(array, kind) == texts
