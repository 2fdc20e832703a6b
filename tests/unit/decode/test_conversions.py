"""Conversion to a type under `columns`: exact, a rejected value, or a refused type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from tests.support.changes import DAY, INSTANT, INT, LONG, TEXT, VARIABLE_SCALE, Row, decimal
from tests.support.decoding import (
    SQLSERVER_SOURCE,
    base64_number,
    decode_all,
    read_values,
    struct_schema,
    type_converted,
    type_named,
    type_of_connect,
    variable_scale,
    with_schema,
)
from tests.support.instants import FIRST_INSTANT, LAST_INSTANT, days, instant
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.base import ColumnType
from distributary.types.conversions import NoConversion

BYTES = {"type": "bytes"}
MONEY, WIDE = decimal(12, 2), decimal(60, 20)
NUMBERS = ("decimal(20,4)", "decimal(8,0)", "tinyint", "smallint", "int", "bigint", "float", "double")
NOON, MIDNIGHT = 1_700_049_600_000_000, 1_700_006_400_000_000
"""Microseconds: 2023-11-15 12:00 and 00:00."""


def time(name: str, kind: str = "int64") -> Row:
    return {"type": kind, "name": f"io.debezium.time.{name}"}


def listed(of: Row) -> Row:
    return {"type": "array", "items": of}


def is_read_as(kind: ColumnType, other: ColumnType, values: Sequence[str]) -> bool:
    """Whether both are one type, and make the same of the values."""
    return kind.spark == other.spark and read_values(kind, values) == read_values(other, values)


@pytest.mark.parametrize("sent", [MONEY, decimal(38, 0), WIDE, VARIABLE_SCALE], ids=str)
@pytest.mark.parametrize("wanted", [*NUMBERS, "string", "io.debezium.data.VariableScaleDecimal"])
def test_a_decimal_is_read_as_its_schema_says_whatever_type_is_wanted(sent: Row, wanted: str) -> None:
    """Base64 of the schema's scale, and of no other."""
    kind, scale = type_converted(sent, wanted), int(sent.get("parameters", {"scale": "2"})["scale"])
    seven = variable_scale("7.00") if sent is VARIABLE_SCALE else base64_number(7 * 10**scale)
    [found] = read_values(kind, [seven])
    assert kind.spark == type_named(wanted).spark
    assert Decimal(str(found)) == 7


@pytest.mark.parametrize("mode", ["precise", "string", "double"])
def test_a_connectors_setting_does_not_say_how_a_schemas_decimal_is_read(mode: str) -> None:
    kind = type_converted(MONEY, "decimal(12,2)", decimal_handling_mode=mode)
    assert is_read_as(kind, type_of_connect(MONEY), [base64_number(1234), '"12.34"', "12.34", "null"])


def test_a_decimal_as_bigint() -> None:
    given = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**37]
    expected = [2**63 - 1, "bad", -(2**63), "bad", "bad"]
    for sent in (decimal(38, 0), decimal(60, 0)):
        assert read_values(type_converted(sent, "bigint"), list(map(base64_number, given))) == expected
    assert read_values(type_converted(MONEY, "bigint"), [base64_number(250), "null"]) == ["bad", None]


def test_a_decimal_as_text_is_in_plain_notation() -> None:
    sent = [*map(base64_number, (1234, -500, 0, 10**11 + 1)), "1.5", "null"]
    expected = ["12.34", "-5.00", "0.00", "1000000000.01", "1.50", None]
    assert read_values(type_converted(MONEY, "string"), sent) == expected


def test_a_decimal_as_a_fraction_is_the_nearest_one() -> None:
    sent = [*map(base64_number, (1234, -500, 0)), "null", '"?"']
    assert read_values(type_converted(MONEY, "double"), sent) == [12.34, -5.0, 0.0, None, "bad"]
    assert read_values(type_converted(MONEY, "float"), [base64_number(150)]) == [1.5]
    huge = base64_number(10**59 + 1)
    assert read_values(type_converted(WIDE, "double"), [huge, base64_number(10**19)]) == [1e39, 0.1]
    assert read_values(type_converted(WIDE, "float"), [huge]) == ["bad"]


def test_decimals_that_each_have_their_scale() -> None:
    texts = ["12.34", "-5", "5.000", "1E+3", "0.0000000001", "123456789012345678901234567890.5"]
    sent = [*map(variable_scale, texts), "null", '{"scale":1,"value":"?"}']
    assert read_values(type_converted(VARIABLE_SCALE, "decimal(20,4)"), sent) == [
        *(Decimal(text) for text in ("12.3400", "-5.0000", "5.0000", "1000.0000")),
        *("bad", "bad", None, "bad"),
    ]
    assert read_values(type_converted(VARIABLE_SCALE, "decimal(38,1)"), sent[4:6]) == ["bad", Decimal(texts[5])]
    assert read_values(type_converted(VARIABLE_SCALE, "bigint"), sent) == [
        "bad",
        -5,
        5,
        1000,
        "bad",
        "bad",
        None,
        "bad",
    ]
    assert read_values(type_converted(VARIABLE_SCALE, "double"), sent[:2]) == [12.34, -5.0]
    plain = ["12.34", "-5", "5.000", "1000", "0.0000000001"]
    assert read_values(type_converted(VARIABLE_SCALE, "string"), sent[:5]) == plain


def test_what_is_inside_of_arrays_maps_and_structs_is_read_as_the_schema_defines_too() -> None:
    one, two = base64_number(1234), base64_number(500)
    assert read_values(type_converted(listed(MONEY), "array<decimal(20,4)>"), [f"[{one}, null]", "[]", "null"]) == [
        *([Decimal("12.3400"), None], [], None)
    ]
    assert read_values(type_converted(listed(MONEY), "array<int>"), [f"[{two}]", f"[{one}]", '["?"]']) == [
        *([5], "bad", "bad")
    ]
    assert read_values(type_converted(listed(MONEY), "array<string>"), [f"[{one}]"]) == [["12.34"]]
    paired = {"type": "map", "keys": {"type": "string"}, "values": MONEY}
    assert read_values(type_converted(paired, "map<string,bigint>"), [f'{{"a":{two}}}', f'{{"a":{one}}}']) == [
        *({"a": 5}, "bad")
    ]
    inside = {"type": "struct", "fields": [{**MONEY, "field": "a"}, {**INSTANT, "field": "b"}, {**TEXT, "field": "d"}]}
    sent = [f'{{"a": {two}, "b": 1, "d": "left out"}}', f'{{"a": {one}, "b": 1}}']
    found = read_values(type_converted(inside, "struct<a:int,b:timestamp_ms,c:int>"), sent)
    assert found == [{"a": 5, "b": 1, "c": None}, "bad"]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        *((INSTANT, wanted) for wanted in ("timestamp_ms", "timestamp_ns", "timestamp_ntz")),
        (INSTANT, "io.debezium.time.Timestamp"),
        (DAY, "io.debezium.time.IsoDate"),
        (DAY, "date"),
    ],
)
def test_a_time_is_in_the_unit_of_the_schema(sent: Row, wanted: str) -> None:
    values = [str(NOON), "19676", "-1", "9223372036825200000", "-2147472692", "null", '"?"']
    assert is_read_as(type_converted(sent, wanted), type_of_connect(sent), values)


def test_text_of_times_is_read_as_the_schema_defines() -> None:
    iso = type_converted(time("IsoTimestamp", "string"), "timestamp_us")
    assert read_values(iso, ['"2023-11-15T12:00:00Z"', "null", '"?"']) == [NOON, None, "bad"]
    zoned = ['"2023-11-15T00:00:00Z"', '"2023-11-15T01:00:00+01:00"', '"2023-11-15T00:00:00+01:00"', '"?"']
    day = days("2023-11-15")
    assert read_values(type_converted(time("ZonedTimestamp", "string"), "date"), zoned) == [day, day, "bad", "bad"]
    as_utc = read_values(type_converted(time("ZonedTimestamp", "string"), "timestamp_us"), zoned)
    assert as_utc == [MIDNIGHT, MIDNIGHT, instant("2023-11-14 23:00:00"), "bad"]


def test_days_and_moments_become_each_other_where_they_are_the_same() -> None:
    endless = ["9223372036825200000", "-9223372036832400000"]  # PostgreSQL's infinities
    assert read_values(type_converted(INSTANT, "date"), endless) == [days("9999-12-31"), days("0001-01-01")]
    for wanted in ("timestamp_ntz", "timestamp"):
        sent = ["19676", "-1", "2932896", str(2**31 - 1), "null", '"x"']
        expected = [MIDNIGHT, instant("1969-12-31 00:00:00"), LAST_INSTANT, "bad", None, "bad"]
        assert read_values(type_converted(DAY, wanted), sent) == expected
    assert read_values(type_converted(DAY, "timestamp"), [str(days("0001-01-01"))]) == [FIRST_INSTANT]
    assert read_values(type_converted(INSTANT, "timestamp"), [str(NOON), "null"]) == [NOON, None]


@pytest.mark.parametrize("wanted", ["date", "timestamp"])
@pytest.mark.parametrize("sent", [time("Timestamp"), INSTANT, time("NanoTimestamp")], ids=str)
def test_the_first_and_last_moments_fail_no_conversion(sent: Row, wanted: str) -> None:
    edges = [str(sign * 2**63 - (sign > 0)) for sign in (1, -1)]
    assert len(read_values(type_converted(sent, wanted), edges)) == 2


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        *((INSTANT, wanted) for wanted in ("bigint", "string", "double", "decimal(19,0)")),
        (time("NanoTimestamp"), "bigint"),
        (time("ZonedTimestamp", "string"), "string"),
        (DAY, "int"),
        (time("MicroTime"), "bigint"),
        (time("Year", "int32"), "string"),
        (TEXT, "int"),
        (TEXT, "timestamp"),
        (TEXT, "variant"),
        (LONG, "timestamp_us"),
        (INT, "date"),
        (BYTES, "string"),
        (VARIABLE_SCALE, "struct<scale:int,value:binary>"),
        (listed(DAY), "string"),
        *((sent, "decimal(12,2)") for sent in (TEXT, LONG, {"type": "double"})),
    ],
)
def test_numbers_and_texts_are_taken_as_they_are_on_the_wire(sent: Row, wanted: str) -> None:
    """A text of digits would be taken for Base64, too."""
    values = ["1700000000123456789", "12", '"2023-11-15T00:00:00+01:00"', '"1234"', '"AQ=="', "null", "[1,2]", "true"]
    values += ["12.5", '"12.34"', '{"scale":1,"value":"AQ=="}', '"{}"']
    expected = type_named(wanted, decimal_handling_mode="string")
    assert is_read_as(type_converted(sent, wanted), expected, values)


def test_only_what_a_schema_calls_bytes_is_an_unscaled_number() -> None:
    kind = type_converted(BYTES, "decimal(12,2)")
    assert is_read_as(kind, type_named("decimal(12,2)"), ['"1234"', '"AQ=="', "12.34", '"12.34"', "null"])


def test_durations_become_times_of_their_own_unit() -> None:
    for wanted in ("time_ms", "time_us", "time_ns"):
        assert read_values(type_converted(time("MicroDuration"), wanted), ["1000000"]) == ["00:00:01.000000"]
        assert read_values(type_converted(time("NanoDuration"), wanted), ["1000000"]) == ["00:00:00.001000000"]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        *((MONEY, wanted) for wanted in ("date", "timestamp", "timestamp_ms", "time_ms", "boolean", "binary")),
        *((MONEY, wanted) for wanted in ("variant", "array<decimal(12,2)>", "struct<scale:int,value:binary>")),
        *((VARIABLE_SCALE, wanted) for wanted in ("date", "time_us", "binary", "io.debezium.time.IsoTime")),
        *((INSTANT, wanted) for wanted in ("boolean", "binary", "variant", "time_us", "array<timestamp_us>")),
        *((time("ZonedTimestamp", "string"), wanted) for wanted in ("bigint", "double", "decimal(20,0)")),
        *((time("MicroTime"), wanted) for wanted in ("timestamp_us", "timestamp", "date")),
        *((time("ZonedTime", "string"), wanted) for wanted in ("timestamp", "int")),
        *((time("Year", "int32"), wanted) for wanted in ("date", "timestamp_ntz", "time_ms")),
        *((time("MicroDuration"), wanted) for wanted in ("timestamp_us", "date")),
        (listed(MONEY), "array<date>"),
    ],
)
def test_what_makes_no_sense_is_refused(sent: Row, wanted: str) -> None:
    with pytest.raises(NoConversion):
        type_converted(sent, wanted)


EXACT = {
    "1.2501": (2, None),
    "1.2500": (2, "1.25"),
    "1.00000000000000000000000000000000000000001": (2, None),
    "1.25E0": (1, None),
    "1.2500000E0": (2, "1.25"),
    "12.50E-1": (2, "1.25"),
    "12.51E-1": (2, None),
    "1230E-1": (0, "123"),
    "1.5e3": (0, "1500"),
    "1e+2": (0, "100"),
    "1E-400": (2, None),
    "1E400": (2, None),
    "1E99999999999999999999": (2, None),
    "-0.0E-99": (2, "0.00"),
    " 5 ": (0, "5"),
    "-.50": (1, "-0.5"),
    "": (0, None),
    "E5": (0, None),
    "true": (0, None),
    "NaN": (0, None),
}


@pytest.mark.parametrize("text", EXACT)
def test_no_number_is_rounded_whatever_its_notation(text: str) -> None:
    scale, expected = EXACT[text]
    [found] = read_values(type_named(f"decimal(38,{scale})", decimal_handling_mode="string"), [json.dumps(text)])
    assert found == "bad" if expected is None else f"{found:f}" == expected


def decoded_by(columns: dict[str, str], **more: Any) -> tuple[Decoded, dict[str, str], dict[str, str]]:
    """A record of id (the key), c and at, and the columns of its row and its key."""
    row = {"id": MONEY, "c": MONEY, "at": INSTANT}
    envelope = {
        "type": "struct",
        "fields": [
            struct_schema(row, field="after"),
            struct_schema({"connector": TEXT}, field="source"),
            {**TEXT, "field": "op"},
        ],
    }
    hundred = base64_number(10_000)
    after = f'{{"id":{hundred},"c":{hundred},"at":1}}'
    payload = f'{{"op":"c","after":{after},"source":{json.dumps(SQLSERVER_SOURCE)}}}'
    key = with_schema(struct_schema({"id": MONEY}), f'{{"id":{hundred}}}')
    options = DecodeOptions("sqlserver", types=TypeSources(configured=columns), **more)
    decoded, schema = decode_all([Record("t", 0, 0, 0, key, with_schema(envelope, payload), ())], options)
    return decoded, dict(schema.row), dict(schema.key)


def test_keys_and_rows_are_converted_alike() -> None:
    decoded, row, key = decoded_by({"id": "decimal(10,0)", "c": "decimal(20,4)", "at": "timestamp_ms"})
    assert row == {"id": "decimal(10,0)", "c": "decimal(20,4)", "at": "timestamp_ntz"}
    assert key == {"id": "decimal(10,0)"}
    [found] = decoded.events.to_pylist()
    assert found["key"]["id"] == found["row"]["id"] == Decimal(100)
    assert str(found["row"]["at"]) == "1970-01-01 00:00:00.000001"


def test_a_mask_is_over_the_converted_value() -> None:
    masks = Masks({"c": "hash"}, "salt")
    decoded, _, _ = decoded_by({"c": "decimal(20,4)"}, masks=masks)
    kind = masks.over("c", type_named("decimal(20,4)"))
    assert decoded.observed[0].marks["c"] == kind.mark
    [found] = decoded.events["row"].to_pylist()
    assert found["c"] == kind.convert([b"\x0f\x42\x40"]).array[0].as_py()  # 100.0000


def test_a_type_that_nothing_makes_of_a_column_halts_the_table_unless_it_is_left_out() -> None:
    halt = decoded_by({"c": "date"})[0].conflict
    assert halt is not None
    assert halt.code == "no-conversion"
    for word in ("'c'", "date", "org.apache.kafka.connect.data.Decimal"):
        assert word in halt.message
    assert halt.fix
    assert "c" not in decoded_by({"c": "date"}, exclude=frozenset("c"))[1]
