"""Values of each type with special cases: exact, or rejected."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from tests.support.changes import DAY, INSTANT, TEXT, VARIABLE_SCALE, Row, decimal
from tests.support.decoding import (
    base64_number,
    read_values,
    type_converted,
    type_named,
    type_of_connect,
    variable_scale,
)
from tests.support.instants import FIRST_INSTANT, LAST_INSTANT, days, instant

from distributary.types.base import ColumnType
from distributary.types.calendar import date_of_day, day_number
from distributary.types.conversions import NoConversion
from distributary.types.decimals import digits_of
from distributary.types.from_name import UnknownColumnType


def time(name: str, kind: str = "int64") -> Row:
    return {"type": kind, "name": f"io.debezium.time.{name}"}


@pytest.mark.parametrize("precision", [18, 19, 38])
def test_decimals_of_every_length_are_exact(precision: int) -> None:
    chance = random.Random(3)
    edges = [s * (10**d + e) for d in range(38) for s in (1, -1) for e in (-1, 0, 1)]
    powers = [s * 2**b + e for b in (7, 8, 31, 32, 63, 64, 65, 96, 120) for s in (1, -1) for e in (-1, 0, 1)]
    unscaled = [*edges, *powers, *(chance.randrange(-(10**38), 10**38) for _ in range(100)), 10**38, -(10**38), 2**127]
    found = read_values(type_of_connect(decimal(precision, 4)), [base64_number(n) for n in unscaled])
    assert found == [Decimal(f"{n}E-4") if abs(n) < 10**precision else "bad" for n in unscaled]


def test_decimals_that_do_not_fit_are_bad_and_never_rounded() -> None:
    values = [base64_number(10**6), base64_number(999_999), '""', '"!"', "1.25", "1.255", "12345", "null"]
    expected = ["bad", Decimal("9999.99"), "bad", "bad", Decimal("1.25"), "bad", "bad", None]
    assert read_values(type_of_connect(decimal(6, 2)), values) == expected


def test_decimals_that_no_decimal_of_the_lake_holds_are_exact_text() -> None:
    huge = -(7**150)
    sent = [
        base64_number(huge),
        base64_number(1),
        base64_number(-(10**40) - 1),
        "null",
        "1.5E-10",
        "1.5e3",
        "true",
        '""',
    ]
    expected = [f"{Decimal(f'{huge}E-20'):f}", "0.00000000000000000001"]
    expected += ["-100000000000000000000.00000000000000000001"]
    assert read_values(type_of_connect(decimal(60, 20)), sent) == [
        *expected,
        None,
        "0.00000000015",
        "1500",
        "bad",
        "bad",
    ]
    assert digits_of(7**10_000 + 0) == "".join(map(str, Decimal(7**10_000).as_tuple().digits))


@pytest.mark.parametrize("text", ["12.34", "-5", "5.000", "1E+3", "0.0000000001", "0", "-0.1"])
def test_decimals_that_each_have_their_scale(text: str) -> None:
    assert read_values(type_of_connect(VARIABLE_SCALE), [variable_scale(text)]) == [f"{Decimal(text):f}"]
    fits = Decimal(text) == Decimal(text).quantize(Decimal("0.0001"))
    assert read_values(type_converted(VARIABLE_SCALE, "decimal(20,4)"), [variable_scale(text)]) == [
        Decimal(text).quantize(Decimal("0.0001")) if fits else "bad"
    ]
    assert read_values(type_of_connect(VARIABLE_SCALE), ['{"scale":1,"value":"?"}', '{"scale":1}', "null"]) == [
        "bad",
        "bad",
        None,
    ]


def test_infinities_and_days_beyond() -> None:
    sent = ["-2147472692", "-625821272", "0", '"x"', str(2**31 - 1), str(2**31)]
    assert read_values(type_of_connect(DAY), sent) == [
        days("9999-12-31"),
        days("0001-01-01"),
        0,
        "bad",
        2**31 - 1,
        "bad",
    ]
    texts = ["+292278994-08-16Z", "-5877611-06-21Z", "+292269055-12-02Z", "-5877611-06-22Z", "-4712-01-01Z", "x"]
    found = read_values(type_of_connect(time("IsoDate", "string")), [f'"{text}"' for text in texts])
    assert found == [2932896, 2932896, -719162, -719162, -2440550, "bad"]
    micros = ["9223372036825200000", "-9223372036832400000", "-1", "99999999999999999999"]
    assert read_values(type_of_connect(INSTANT), micros) == [LAST_INSTANT, FIRST_INSTANT, -1, "bad"]
    assert read_values(type_of_connect(time("NanoTimestamp")), ["-1", "1999", str(2**63 - 1)]) == [-1, 1, LAST_INSTANT]
    millis = ["9223372036825200", "-9223372036832400", "1", "9223372036854776", "null"]
    assert read_values(type_of_connect(time("Timestamp")), millis) == [LAST_INSTANT, FIRST_INSTANT, 1000, "bad", None]


@pytest.mark.parametrize(
    ("text", "day", "moment"),
    [
        ("2024-02-29", True, "2024-02-29 00:00:00"),
        (" 2024-2-29 ", True, "2024-02-29 00:00:00"),
        ("2024-02-29T00:00:00Z", True, "2024-02-29 00:00:00"),
        ("2024-02-29 00:00:00.000", True, "2024-02-29 00:00:00"),
        ("2024-02-29T05:30:00+05:30", True, "2024-02-29 00:00:00"),
        ("2024-02-29T00:00:00+05:30", False, "2024-02-28 18:30:00"),
        ("2024-02-29T23:30:00Z", False, "2024-02-29 23:30:00"),
        ("2024-02-29 23:30", False, "2024-02-29 23:30:00"),
        ("2024-02-29T23:30:00-0100", False, "2024-03-01 00:30:00"),
        ("2024-02-29T23:30:00.1234567Z", False, "2024-02-29 23:30:00.123456"),
        *((text, None, None) for text in ("2024-02-29Tgarbage", "2024-02-29 x", "2024-02-30", "2024-02-29/")),
        *(
            (text, None, None)
            for text in ("2024-02", "24-02-29", "12:00:00-05:00", "today", "", "2024-02-29T24:00:00Z")
        ),
    ],
)
def test_a_text_that_is_read_as_a_time_is_all_of_it_or_a_bad_value(
    text: str, day: bool | None, moment: str | None
) -> None:
    sent = [json.dumps(text)]
    for name in ("timestamp_ntz", "timestamp"):
        assert read_values(type_named(name), sent) == ["bad" if moment is None else instant(moment)]
    assert read_values(type_named("date"), sent) == [days("2024-02-29") if day else "bad"]


def test_days_are_counted_in_every_year() -> None:
    for day in [*range(-800_000, 3_000_000, 997), -(2**31), 2**31 - 1]:
        year, month, number = map(int, date_of_day(day).rsplit("-", 2))
        assert day_number(year, month, number) == day


def test_times_of_day_negative_ones_and_long_ones() -> None:
    found = read_values(type_named("time_us"), ["0", "86400000000", "-1000000", "3020399000000", "1", "null"])
    assert found == [
        "00:00:00.000000",
        "24:00:00.000000",
        "-00:00:01.000000",
        "838:59:59.000000",
        "00:00:00.000001",
        None,
    ]
    sent = ['"12:34:56.789012Z"', '"00:00:00Z"', '"12:34:56.5"', "null"]
    expected = ["12:34:56.789012", "00:00:00", "12:34:56.5", None]
    assert read_values(type_named("io.debezium.time.IsoTime"), sent) == expected
    assert read_values(type_named("array<io.debezium.time.IsoTime>"), [f"[{', '.join(sent)}]"]) == [expected]


@pytest.mark.parametrize(
    ("mode", "sent", "bad"),
    [("bytes", "+/8=", "-_8="), ("base64", "+/8=", "-_8="), ("base64-url-safe", "-_8=", "?"), ("hex", "FBff", "FBf")],
)
def test_bytes_without_schema_as_the_connector_writes_them(mode: str, sent: str, bad: str) -> None:
    kind = type_named("binary", binary_handling_mode=mode)
    assert read_values(kind, [json.dumps(sent), '""', json.dumps(bad)]) == [b"\xfb\xff", b"", "bad"]


def test_decimals_as_json_numbers_and_texts() -> None:
    sent = ["12.34", "-0.5", "1e2", "12.345", "12345678901.23", "null"]
    expected = [Decimal("12.34"), Decimal("-0.50"), Decimal("100.00"), "bad", "bad", None]
    assert read_values(type_named("decimal(12,2)"), sent) == expected
    as_text = type_named("decimal(12,2)", decimal_handling_mode="string")
    assert read_values(as_text, [*sent, '"12.3"', '"x"', "[]"]) == [*expected, Decimal("12.30"), "bad", "bad"]
    long = "12345678901234567890.123456789012345678"
    assert read_values(type_named("decimal(38,18)"), [long, "1.2345678901234567E-4"]) == [Decimal(long), "bad"]


def test_geometries_without_a_schema_are_the_structs_of_a_schema() -> None:
    sent = ['{"x":1.5,"y":2,"wkb":"AQI=","srid":4326}', '{"x":0,"y":0,"wkb":null,"srid":null}', '{"x":"?"}']
    points: list[Any] = [{"x": 1.5, "y": 2.0, "wkb": b"\x01\x02", "srid": 4326}]
    points += [{"x": 0.0, "y": 0.0, "wkb": None, "srid": None}, "bad"]
    assert read_values(type_named("io.debezium.data.geometry.Point"), sent) == points


def test_arrays_maps_and_structs_of_anything() -> None:
    kind = type_named("array<struct<a:int,b:map<string,decimal(12,2)>,`c d`:timestamp_us>>")
    assert kind.spark == "array<struct<a:int,b:map<string,decimal(12,2)>,`c d`:timestamp_ntz>>"
    good = '[{"a":1,"b":{"x":"BOI=","y":null},"c d":7},null]'
    read = [{"a": 1, "b": {"x": Decimal("12.50"), "y": None}, "c d": 7}, None]
    bad = ['[{"a":3000000000}]', '[{"b":{"x":""}}]']
    assert read_values(kind, [good, "null", "[]", *bad, good]) == [read, None, [], "bad", "bad", read]
    assert read_values(type_named("map<string,int>"), ['{"a":1}', "null", "{}", '{"a":5000000000}', '{"b":2}']) == [
        *({"a": 1}, None, {}, "bad", {"b": 2})
    ]


def map_schema(keys: Row, values: Row) -> Row:
    return {"type": "map", "keys": keys, "values": values}


def test_maps_with_keys_of_any_type() -> None:
    numbers = type_of_connect(map_schema({"type": "int64"}, {"type": "float"}))
    assert numbers.spark == "map<bigint,float>"
    sent = [
        "[[7,-1.5],[9,null]]",
        "[]",
        "null",
        "[[7,1],[7,2]]",
        "[[null,1]]",
        "[[7]]",
        "[[3000000000,1]]",
        "[[1,2,3]]",
    ]
    read = [{7: -1.5, 9: None}, {}, None, "bad", "bad", "bad", {3_000_000_000: 1.0}, "bad"]
    assert read_values(numbers, sent) == read
    days = type_of_connect(map_schema(DAY, decimal(6, 2)))
    assert days.spark == "map<date,decimal(6,2)>"
    sent = ['[[20000,"BOI="]]', '[["?","BOI="]]', '[[1,"?"]]']
    assert read_values(days, sent) == [{20_000: Decimal("12.50")}, "bad", "bad"]
    # A table's own name of the type is read as the schema's.
    for kind in (numbers, days):
        assert type_named(kind.spark).arrow == kind.arrow
    within = type_of_connect({"type": "array", "items": map_schema({"type": "int16"}, map_schema(TEXT, TEXT))})
    assert read_values(within, ['[[[1,{"a":"b"}]],null]']) == [[{1: {"a": "b"}}, None]]
    assert read_values(type_converted(map_schema({"type": "int16"}, TEXT), "string"), ['[[1,"a"]]']) == ['[[1,"a"]]']


@pytest.mark.parametrize("wanted", ["decimal(20,4)", "decimal(12,4)", "decimal(4,2)", "decimal(10,0)", "decimal(11,1)"])
def test_a_decimal_of_another_precision_and_scale(wanted: str) -> None:
    precision, scale = map(int, wanted[8:-1].split(","))

    def expected(text: str) -> Any:
        number = Decimal(text).quantize(Decimal(1).scaleb(-scale))
        fits = number == Decimal(text) and abs(number) < Decimal(10) ** (precision - scale)
        return number if fits else "bad"

    texts = {1234: "12.34", -500: "-5.00", 0: "0.00", 10**11 + 1: "1000000000.01"}
    sent = [*map(base64_number, texts), "null", '"?"', "12.34", "12.345"]
    found = [*map(expected, texts.values()), None, "bad", expected("12.34"), "bad"]
    assert read_values(type_converted(decimal(12, 2), wanted), sent) == found


@pytest.mark.parametrize(("wanted", "most"), [("tinyint", 127), ("smallint", 2**15 - 1), ("int", 2**31 - 1)])
def test_a_decimal_as_a_whole_number(wanted: str, most: int) -> None:
    given = [0, 5, -5, most, most + 1, -most - 1, -most - 2]
    expected = [n if -most - 1 <= n <= most else "bad" for n in given]
    assert read_values(
        type_converted(decimal(12, 2), wanted), [*(base64_number(100 * n) for n in given), base64_number(250)]
    ) == [
        *expected,
        "bad",
    ]


def test_a_decimal_as_text_and_as_a_fraction() -> None:
    for scale in (0, 6, 7, 20, 38):
        given = [0, 1, -1, 10**37 + 1, -(10**38) + 1]
        texts = [f"{Decimal(f'{n}E-{scale}'):f}" for n in given]
        assert read_values(type_converted(decimal(38, scale), "string"), [base64_number(n) for n in given]) == texts
    assert read_values(type_converted(decimal(12, 2), "double"), [base64_number(1234), "null", '"?"']) == [
        12.34,
        None,
        "bad",
    ]
    assert read_values(type_converted(decimal(60, 20), "float"), [base64_number(10**59 + 1)]) == ["bad"]
    assert read_values(type_converted(decimal(38, 0), "bigint"), [base64_number(2**63 - 1), base64_number(2**63)]) == [
        2**63 - 1,
        "bad",
    ]


def test_days_and_times_become_each_other_where_they_are_the_same() -> None:
    noon, midnight = 1_700_049_600_000_000, 1_700_006_400_000_000
    for wanted in ("timestamp_ms", "timestamp_ns", "timestamp_ntz"):
        for sent, text in ((time("Timestamp"), noon // 1000), (INSTANT, noon), (time("NanoTimestamp"), noon * 1000)):
            assert read_values(type_converted(sent, wanted), [str(text)]) == [noon]
    assert read_values(type_converted(INSTANT, "date"), [str(midnight), str(noon), "-86400000000", "-1", "null"]) == [
        *(days("2023-11-15"), "bad", -1, "bad", None)
    ]
    assert read_values(type_converted(INSTANT, "date"), ["9223372036825200000"]) == [days("9999-12-31")]
    assert read_values(type_converted(DAY, "timestamp"), ["19676", "2932896", str(2**31 - 1), "null"]) == [
        *(midnight, LAST_INSTANT, "bad", None)
    ]
    assert read_values(type_converted(time("MicroDuration"), "time_us"), ["1000000"]) == ["00:00:01.000000"]
    assert read_values(type_converted(time("NanoTimestamp"), "bigint"), ["1700000000123456789"]) == [
        1700000000123456789
    ]


def test_numbers_and_texts_that_a_schema_gives_no_meaning() -> None:
    sent = ['"1234"', '"12.34"', '"12.345"', '"x"', "null"]
    assert read_values(type_converted(TEXT, "decimal(12,2)"), sent) == [
        Decimal("1234.00"),
        Decimal("12.34"),
        "bad",
        "bad",
        None,
    ]
    fractions = ["12.34", '"Infinity"', "1.0E-7", "1.0E2"]
    assert read_values(type_converted({"type": "double"}, "decimal(12,2)"), fractions) == [
        *(Decimal("12.34"), "bad", "bad", Decimal("100.00"))
    ]
    assert read_values(type_converted(TEXT, "variant"), ['"{\\"a\\":1}"', '"{"', "null"]) == ['{"a":1}', "bad", None]


@pytest.mark.parametrize(
    ("sent", "wanted"), [(decimal(12, 2), "date"), (DAY, "time_us"), (DAY, "boolean"), (time("Time", "int32"), "date")]
)
def test_what_nothing_makes_is_no_conversion(sent: Row, wanted: str) -> None:
    with pytest.raises(NoConversion):
        type_converted(sent, wanted)


@pytest.mark.parametrize("name", ["", "integer", "decimal", "array<>", "struct<a>", "map<int>", "list<int>"])
def test_what_is_no_type_has_no_type(name: str) -> None:
    with pytest.raises(UnknownColumnType):
        type_named(name)


LONG = "1" + "2345678901" * 4
"""A number of 41 digits; of its fraction a DECIMAL could hold 38."""


def test_no_digit_of_a_json_number_is_lost_on_the_way_to_a_decimal() -> None:
    exact = ["12345678901234567890.123456789012345678", "1.23456789012345E-4", "-1E-18", "1.5e3", "0E-5"]
    lost = ["1.2345678901234567E-4", "-1.234567890123456E-4", f"0.{LONG}", "1e400", "1E-19", "true", "{}", "[1]"]
    assert read_values(type_named("decimal(38,18)"), [*exact, *lost]) == [*map(Decimal, exact), *["bad"] * len(lost)]


def test_a_json_number_that_is_kept_as_text_is_in_plain_notation() -> None:
    sent = {
        "12345678901234567890.123456789012345678": "12345678901234567890.123456789012345678",
        "-12345678901234567890123456789012345678": "-12345678901234567890123456789012345678",
        "1.5E-10": "0.00000000015",
        "-1E-30": "-0.000000000000000000000000000001",
        "0.0000000000000000000125": "0.0000000000000000000125",
        "1e25": "10000000000000000000000000",
        "1.5e3": "1500",
        "1e400": "1" + "0" * 400,
        LONG: LONG,
        f"0.{LONG}": f"0.{LONG}",
        "1.2345678901234567E-4": "0.00012345678901234567",
        "null": None,
    }
    assert read_values(type_of_connect(decimal(65, 30)), list(sent)) == list(sent.values())
    lost = ["true", "{}", '{"a":1}', "[1]"]
    assert read_values(type_of_connect(decimal(65, 30)), lost) == ["bad"] * len(lost)


@pytest.mark.parametrize(
    ("kind", "around"),
    [
        *((type_of_connect(decimal(precision, 2)), "{}") for precision in (10, 38, 60)),
        (type_named("io.debezium.data.VariableScaleDecimal"), '{{"scale": 2, "value": {}}}'),
    ],
    ids=["10 digits", "38 digits", "60 digits", "variable scale"],
)
def test_5_2_what_is_no_base64_is_no_decimal(kind: ColumnType, around: str) -> None:
    sent = ["AQ==", "?", "", "AQ=", "A", "AQ==AQ==", "!!!!", "AQ%="]
    found = read_values(kind, [around.format(json.dumps(text)) for text in sent])
    assert [str(value) for value in found] == ["0.01", *["bad"] * 7]


def test_a_number_with_a_fraction_is_no_whole_number() -> None:
    found = read_values(type_named("int"), ["12", "12.5", "3000000000", '"abc"', "true", "null"])
    assert found == [12, "bad", "bad", "bad", "bad", None]


def test_a_number_is_a_day_and_no_year_of_a_timestamp() -> None:
    assert read_values(type_named("date"), ["2024", "-1", "1.5"]) == [2024, -1, "bad"]
    for kind in ("timestamp_ntz", "timestamp"):
        assert read_values(type_named(kind), ["-1000", "2024", "20240229"]) == ["bad"] * 3


def test_the_bytes_of_a_geometry_are_base64_whatever_those_of_columns_are() -> None:
    kind = type_named("array<io.debezium.data.geometry.Geometry>", binary_handling_mode="hex")
    assert read_values(kind, ['[{"wkb":"AQI="}]']) == [[{"wkb": b"\x01\x02", "srid": None}]]


def structured(name: str, **parts: str) -> Row:
    """The schema of a date or a time as a struct of its parts."""
    fields = [{"type": kind, "optional": True, "field": field} for field, kind in parts.items()]
    return {"type": "struct", "name": f"io.debezium.time.Structured{name}", "optional": True, "fields": fields}


_OF_DAY = {"year": "int32", "month": "int8", "day": "int8"}
_OF_TIME = {"hour": "int8", "minute": "int8", "second": "int8", "nanos": "int32"}


def test_dates_and_times_of_parts_become_what_the_config_wants() -> None:
    def read(name: str, wanted: str, schema: Row, *sent: Row) -> list[Any]:
        kind = type_converted(structured(name, **schema), wanted)
        assert kind.spark == wanted
        return read_values(kind, [*map(json.dumps, sent), "null"])

    def day(year: int, month: int, day: int) -> Row:
        return {"year": year, "month": month, "day": day, "specialValue": None}

    special = [{"specialValue": "POSITIVE_INFINITY"}, {"specialValue": "NEGATIVE_INFINITY"}, {"specialValue": "?"}]
    of_date = {**_OF_DAY, "specialValue": "string"}
    dates = read("Date", "date", of_date, day(2024, 2, 29), day(2023, 2, 29), day(-4712, 1, 1), *special, {"year": 1})
    first, last = day_number(1, 1, 1), day_number(9999, 12, 31)
    assert dates == [day_number(2024, 2, 29), "bad", day_number(-4712, 1, 1), last, first, "bad", "bad", None]
    assert read("Date", "date", of_date, day(2**31 - 1, 1, 1)) == ["bad", None]

    at = {"hour": 23, "minute": 59, "second": 58, "nanos": 123_456_789}
    of_instant = {**_OF_DAY, **_OF_TIME, "specialValue": "string", "precision": "int32"}
    micros = 86_398_123_456
    for wanted in ("timestamp_ntz", "timestamp"):
        found = read("Timestamp", wanted, of_instant, {**day(1970, 1, 2), **at}, {**day(1969, 12, 31), **at}, *special)
        assert found == [86_400_000_000 + micros, micros - 86_400_000_000, LAST_INSTANT, FIRST_INSTANT, "bad", None]
    far = {**day(300_000, 1, 1), **at}
    assert read("Timestamp", "timestamp_ntz", of_instant, far, {**day(1, 1, 1), **at, "hour": 24}) == [
        "bad",
        "bad",
        None,
    ]

    of_zoned = {**of_instant, "offsetSeconds": "int32", "zoneId": "string"}
    here = {**day(1970, 1, 2), **at}
    zones: list[dict[str, Any]] = [
        {"offsetSeconds": 3600},
        *({"zoneId": zone} for zone in ("Europe/Berlin", "No/Where", "Europe")),
        {},
    ]
    sent = [{**here, **zone} for zone in zones]
    later = 86_400_000_000 + micros - 3_600_000_000
    assert read("ZonedTimestamp", "timestamp", of_zoned, *sent) == [later, later, "bad", "bad", "bad", None]

    of_time = {**_OF_TIME, "precision": "int32"}
    times = [
        {**at, "precision": 6},
        {**at, "nanos": 120_000_000, "precision": 2},
        {**at, "nanos": 0, "hour": 24},
        {**at, "hour": 25},
    ]
    assert read("Time", "string", of_time, *times) == [
        "23:59:58.123456789",
        "23:59:58.120",
        "24:59:58.000000000",
        "bad",
        None,
    ]
    # Of itself it stays a struct of its parts.
    assert type_of_connect(structured("Date", **of_date)).spark.startswith("struct<year:int,")
