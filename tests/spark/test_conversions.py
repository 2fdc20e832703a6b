"""Types that `columns` names over what a schema tells, in the JVM: exact, or no value at all."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.test_usual_values import VALUES, as_read
from tests.spark.test_values import connect_decimal, read
from tests.support.changes import DAY, INSTANT, TEXT, Row, decimal

from distributary.decode import numbers, strict
from distributary.decode.connect import parse_schema
from distributary.decode.conversions import codec_over
from distributary.decode.types import Codec

VARIABLE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []}
LAST_DAY = 2**31 - 1


def time(name: str, kind: str = "int64") -> Row:
    return {"type": kind, "name": f"io.debezium.time.{name}"}


def over(sent: Row, wanted: str) -> Codec:
    return codec_over(parse_schema(json.dumps(sent)), wanted, {})


def variable(text: str) -> str:
    """A VariableScaleDecimal as JSON."""
    number = Decimal(text).as_tuple()
    assert isinstance(number.exponent, int)
    unscaled = int(Decimal((number.sign, number.digits, 0)))
    data = base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
    return json.dumps({"scale": -number.exponent, "value": data})


MONEY: Sequence[tuple[int, str]] = ((1234, "12.34"), (-500, "-5.00"), (0, "0.00"), (10**11 + 1, "1000000000.01"))
"""Unscaled numbers of decimal(12,2), and what they are."""


@pytest.mark.parametrize("wanted", ["decimal(20,4)", "decimal(12,4)", "decimal(4,2)", "decimal(10,0)", "decimal(11,1)"])
def test_a_decimal_of_another_precision_and_scale(session: SparkSession, wanted: str) -> None:
    precision, scale = map(int, wanted[8:-1].split(","))

    def expected(text: str) -> Any:
        number = Decimal(text).quantize(Decimal(1).scaleb(-scale))
        fits = number == Decimal(text) and abs(number) < Decimal(10) ** (precision - scale)
        return number if fits else "bad"

    sent = [*(connect_decimal(unscaled) for unscaled, _ in MONEY), "null", '"?"', "12.34", "12.345"]
    found = [*(expected(text) for _, text in MONEY), None, "bad", expected("12.34"), "bad"]
    assert read(session, over(decimal(12, 2), wanted), sent) == found


@pytest.mark.parametrize(("wanted", "most"), [("tinyint", 127), ("smallint", 2**15 - 1), ("int", 2**31 - 1)])
def test_a_decimal_as_a_whole_number(session: SparkSession, wanted: str, most: int) -> None:
    given = [0, 5, -5, most, most + 1, -most - 1, -most - 2]
    expected = [n if -most - 1 <= n <= most else "bad" for n in given]
    sent = [*(connect_decimal(100 * n) for n in given), connect_decimal(250), "null"]
    assert read(session, over(decimal(12, 2), wanted), sent) == [*expected, "bad", None]
    sent = [*(connect_decimal(n) for n in given), "null"]
    assert read(session, over(decimal(12, 0), wanted), sent) == [*expected, None]


def test_a_decimal_as_bigint(session: SparkSession) -> None:
    given = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**37]
    expected = [2**63 - 1, "bad", -(2**63), "bad", "bad"]
    for sent in (decimal(38, 0), decimal(60, 0)):
        assert read(session, over(sent, "bigint"), [connect_decimal(n) for n in given]) == expected


def test_a_decimal_as_text_is_in_plain_notation(session: SparkSession) -> None:
    found = read(session, over(decimal(12, 2), "string"), [*(connect_decimal(n) for n, _ in MONEY), "1.5", "null"])
    assert found == [*(text for _, text in MONEY), "1.50", None]
    for scale in (0, 6, 7, 20, 38):
        given = [0, 1, -1, 10**37 + 1, -(10**38) + 1]
        texts = [f"{Decimal(f'{n}E-{scale}'):f}" for n in given]
        sent = [connect_decimal(n) for n in given]
        assert read(session, over(decimal(38, scale), "string"), sent) == texts, scale


def test_a_decimal_as_a_fraction_is_the_nearest_one(session: SparkSession) -> None:
    sent = [connect_decimal(n) for n in (1234, -500, 0)]
    assert read(session, over(decimal(12, 2), "double"), [*sent, "null", '"?"']) == [12.34, -5.0, 0.0, None, "bad"]
    assert read(session, over(decimal(12, 2), "float"), [connect_decimal(150)]) == [1.5]
    huge = connect_decimal(10**59 + 1)
    assert read(session, over(decimal(60, 20), "double"), [huge, connect_decimal(10**19)]) == [1e39, 0.1]
    assert read(session, over(decimal(60, 20), "float"), [huge]) == ["bad"]


def test_decimals_that_each_have_their_scale(session: SparkSession) -> None:
    texts = ["12.34", "-5", "5.000", "1E+3", "0.0000000001", "123456789012345678901234567890.5"]
    sent = [*map(variable, texts), "null", '{"scale":1,"value":"?"}']
    assert read(session, over(VARIABLE, "decimal(20,4)"), sent) == [
        *(Decimal(text) for text in ("12.3400", "-5.0000", "5.0000", "1000.0000")),
        *("bad", "bad", None, "bad"),
    ]
    assert read(session, over(VARIABLE, "decimal(38,1)"), sent[4:6]) == [
        "bad",
        Decimal("123456789012345678901234567890.5"),
    ]
    assert read(session, over(VARIABLE, "bigint"), sent) == ["bad", -5, 5, 1000, "bad", "bad", None, "bad"]
    assert read(session, over(VARIABLE, "double"), sent[:2]) == [12.34, -5.0]
    assert read(session, over(VARIABLE, "string"), sent[:5]) == ["12.34", "-5", "5.000", "1000", "0.0000000001"]


def test_decimals_inside_of_arrays_and_structs(session: SparkSession) -> None:
    one, two = connect_decimal(1234), connect_decimal(500)
    listed = {"type": "array", "items": decimal(12, 2)}
    assert read(session, over(listed, "array<decimal(20,4)>"), [f"[{one}, null]", "[]", "null", '["?"]']) == [
        [Decimal("12.3400"), None],
        [],
        None,
        "bad",
    ]
    assert read(session, over(listed, "array<int>"), [f"[{two}]", f"[{one}]"]) == [[5], "bad"]
    inside = {"type": "struct", "fields": [{**decimal(12, 2), "field": "a"}, {**INSTANT, "field": "b"}]}
    sent = [f'{{"a": {two}, "b": 1}}', f'{{"a": {one}, "b": 1}}']
    found = read(session, over(inside, "struct<a:int,b:timestamp_ms,c:int>"), sent)
    assert found == [{"a": 5, "b": datetime.fromisoformat("1970-01-01T00:00:00.000001"), "c": None}, "bad"]


NOON, MIDNIGHT = 1_700_049_600_000_000, 1_700_006_400_000_000
"""Microseconds: 2023-11-15 12:00 and 00:00."""


def told(found: Sequence[object]) -> list[object]:
    return [str(value) if isinstance(value, date) else value for value in found]


@pytest.mark.parametrize("wanted", ["timestamp_ms", "timestamp_ns", "timestamp_ntz"])
def test_a_time_is_in_the_unit_that_the_schema_tells(session: SparkSession, wanted: str) -> None:
    for sent, unit in ((time("Timestamp"), 1_000), (INSTANT, 1)):
        assert told(read(session, over(sent, wanted), [str(NOON // unit)])) == ["2023-11-15 12:00:00"]
    assert told(read(session, over(time("NanoTimestamp"), wanted), [str(NOON * 1_000)])) == ["2023-11-15 12:00:00"]


def test_days_and_times_become_each_other_where_they_are_the_same(session: SparkSession) -> None:
    assert told(read(session, over(INSTANT, "date"), [str(MIDNIGHT), str(NOON), "-86400000000", "-1", "null"])) == [
        *("2023-11-15", "bad", "1969-12-31", "bad", None)
    ]
    endless = ["9223372036825200000", "-9223372036832400000"]  # PostgreSQL's infinities
    assert told(read(session, over(INSTANT, "date"), endless)) == ["9999-12-31", "0001-01-01"]
    zoned = ['"2023-11-15T00:00:00Z"', '"2023-11-15T01:00:00+01:00"', '"2023-11-15T00:00:00+01:00"', '"?"']
    as_day = read(session, over(time("ZonedTimestamp", "string"), "date"), zoned)
    assert told(as_day) == ["2023-11-15", "2023-11-15", "bad", "bad"]
    as_utc = read(session, over(time("ZonedTimestamp", "string"), "timestamp_us"), zoned)
    assert told(as_utc) == ["2023-11-15 00:00:00", "2023-11-15 00:00:00", "2023-11-14 23:00:00", "bad"]
    for wanted, zone in (("timestamp_ntz", ""), ("timestamp", "+00:00")):
        sent = ["19676", "-1", "2932896", str(LAST_DAY), "null", '"x"']
        expected = ["2023-11-15 00:00:00", "1969-12-31 00:00:00", "9999-12-31 23:59:59.999999"]
        assert told(read(session, over(DAY, wanted), sent))[:3] == [f"{text}{zone}" for text in expected]
        assert read(session, over(DAY, wanted), sent)[3:] == ["bad", None, "bad"]
    as_instant = read(session, over(INSTANT, "timestamp"), [str(NOON), "null"])
    assert told(as_instant) == ["2023-11-15 12:00:00+00:00", None]


def as_text(codec: Codec) -> Codec:
    return Codec(codec.wire, "string", lambda x: f"CAST({codec.sql(x)} AS STRING)")


def test_the_first_and_last_moments_fail_no_conversion(session: SparkSession) -> None:
    """Python has no such values: they are read as text."""
    edges = [str(sign * 2**63 - (sign > 0)) for sign in (1, -1)]
    for sent, wanted in itertools.product((time("Timestamp"), INSTANT, time("NanoTimestamp")), ("date", "timestamp")):
        codec = over(sent, wanted)
        assert len(read(session, as_text(codec), edges)) == 2


def test_numbers_and_texts_that_a_schema_gives_no_meaning(session: SparkSession) -> None:
    """Text of digits would be Base64, too."""
    assert read(session, over(TEXT, "decimal(12,2)"), ['"1234"', '"12.34"', '"12.345"', '"x"', "null"]) == [
        *(Decimal("1234.00"), Decimal("12.34"), "bad", "bad", None)
    ]
    fraction = {"type": "double"}
    assert read(session, over(fraction, "decimal(12,2)"), ["12.34", '"Infinity"', "1.0E-7", "1.0E2"]) == [
        *(Decimal("12.34"), "bad", "bad", Decimal("100.00"))
    ]
    assert read(session, over(time("NanoTimestamp"), "bigint"), ["1700000000123456789"]) == [1700000000123456789]


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


def test_no_number_is_rounded_whatever_its_notation(session: SparkSession) -> None:
    decimals = (numbers.exact_decimal(f"'{text}'", 38, scale) for text, (scale, _) in EXACT.items())
    [row] = session.range(1).select(*map(F.expr, decimals)).collect()
    found = (None if value is None else f"{value:f}" for value in row)
    assert dict(zip(EXACT, found, strict=True)) == {text: expected for text, (_, expected) in EXACT.items()}


PAIRS = [
    *itertools.product(
        (decimal(6, 2), decimal(38, 10), decimal(50, 3)), ("decimal(20,4)", "bigint", "double", "string")
    ),
    *((decimal(18, 0), wanted) for wanted in ("decimal(6,0)", "int")),
    *((INSTANT, wanted) for wanted in ("date", "timestamp")),
    *((DAY, wanted) for wanted in ("timestamp_ntz", "timestamp")),
]


@pytest.mark.parametrize(("sent", "wanted"), PAIRS, ids=lambda given: given if isinstance(given, str) else "")
def test_what_from_json_reads_by_itself_is_converted_alike(session: SparkSession, sent: Row, wanted: str) -> None:
    """See test_usual_values."""
    codec = over(sent, wanted)
    assert codec.usual is not None
    of = {"careful": codec, "usual": codec.usual}
    given = [f'{{"op":"c","after":{{"v":{value}}}}}' for value in VALUES]
    framed = session.createDataFrame(pa.table({"v": given})).select(
        "v", *(strict.framed("v", f"op STRING, after STRUCT<v: {c.wire}>").alias(f"{n}_frame") for n, c in of.items())
    )
    rows = framed.select(*itertools.chain.from_iterable(as_read(c, n) for n, c in of.items())).collect()
    for value, row in zip(VALUES, rows, strict=True):
        assert row.usual_refused or row.usual == row.careful, value
    assert not all(row.usual_refused for row in rows)
