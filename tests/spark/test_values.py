"""Values off the wire, in the JVM, against Python's own arithmetic."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary.decode import numbers
from distributary.decode.envelope import source_fields
from distributary.decode.position import is_later, position_sql
from distributary.decode.type_names import codec_named
from distributary.decode.types import DATE_TEXT, Codec, decimal


def read(session: SparkSession, codec: Codec, values: Sequence[str | None]) -> list[object]:
    """JSON values (as text; None for a JSON null) read as the decoder reads a column; bad ones come out as "bad"."""
    rows = [json.dumps(n) + ": " + (v if v is not None else "null") for n, v in enumerate(values)]
    texts = [f'{{"n": {n}, "v": {row.split(": ", 1)[1]}}}' for n, row in enumerate(rows)]
    frame = session.createDataFrame(pa.table({"j": texts}))
    parsed = frame.select(F.from_json("j", f"n INT, v {codec.wire}").alias("w"))
    out = parsed.select("w.n", F.expr(codec.sql("w.v")).alias("v"), F.expr(codec.lost("w.v")).alias("lost"))
    table = out.orderBy("n").toArrow()
    columns = (table.column(name).to_pylist() for name in ("v", "lost"))
    return ["bad" if lost else v for v, lost in zip(*columns, strict=True)]


def connect_decimal(unscaled: int) -> str:
    length = (unscaled.bit_length() // 8) + 1
    return json.dumps(base64.b64encode(unscaled.to_bytes(length, "big", signed=True)).decode())


def test_base64_decimals_of_every_length_are_exact(session: SparkSession) -> None:
    chance = random.Random(3)
    edges = [s * (10**d + e) for d in range(38) for s in (1, -1) for e in (-1, 0, 1)]
    powers = [s * 2**b + e for b in (7, 8, 31, 32, 63, 64, 65, 96, 120) for s in (1, -1) for e in (-1, 0, 1)]
    unscaled = [
        n for n in [*edges, *powers, *(chance.randrange(-(10**38), 10**38) for _ in range(100))] if abs(n) < 10**38
    ]
    found = read(session, decimal(38, 4), [connect_decimal(n) for n in unscaled])
    assert found == [Decimal(f"{n}E-4") for n in unscaled]


def test_decimals_that_do_not_fit_are_bad_and_never_rounded(session: SparkSession) -> None:
    values = [connect_decimal(10**6), connect_decimal(999_999), '""', '"!"', "1.25", "1.255", "12345", "null"]
    expected = ["bad", Decimal("9999.99"), "bad", "bad", Decimal("1.25"), "bad", "bad", None]
    assert read(session, decimal(6, 2), values) == expected


def test_geometries_without_a_schema_are_the_structs_that_a_schema_tells(session: SparkSession) -> None:
    wkb = base64.b64encode(b"\x01\x02").decode()
    sent = [f'{{"x":1.5,"y":2,"wkb":"{wkb}","srid":4326}}', '{"x":0,"y":0,"wkb":null,"srid":null}', '{"x":"?"}']
    points = [
        {"x": 1.5, "y": 2.0, "wkb": b"\x01\x02", "srid": 4326},
        {"x": 0.0, "y": 0.0, "wkb": None, "srid": None},
        "bad",
    ]
    assert read(session, codec_named("io.debezium.data.geometry.Point", {}), sent) == points
    shape = {"wkb": b"\x01\x02", "srid": None}
    listed = codec_named("array<io.debezium.data.geometry.Geometry>", {"binary.handling.mode": "hex"})
    assert read(session, listed, [f'[{{"wkb":"{wkb}"}}]']) == [[shape]]


def test_decimals_larger_than_delta_has_are_exact_text(session: SparkSession) -> None:
    huge = -(7**150)
    assert read(session, decimal(60, 20), [connect_decimal(huge)]) == [f"{Decimal(f'{huge}E-20'):f}"]
    texts = session.range(1).select(
        *(
            F.expr(numbers.to_plain(f"'{digits}'", str(scale)))
            for digits, scale in (("0", 3), ("-5", 3), ("12", -2), ("-120", 1), ("0", -2))
        )
    )
    assert list(texts.collect()[0]) == ["0.000", "-0.005", "1200", "-12.0", "0"]


def test_infinities_and_days_beyond(session: SparkSession) -> None:
    dates = read(session, codec_named("io.debezium.time.Date", {}), ["-2147472692", "-625821272", "0", '"x"'])
    assert [str(d) for d in dates] == ["9999-12-31", "0001-01-01", "1970-01-01", "bad"]
    texts = ["+292278994-08-16Z", "-5877611-06-21Z", "+292269055-12-02Z", "-5877611-06-22Z", "-4712-01-01Z", "x"]
    found = read(session, Codec("STRING", "int", lambda x: f"unix_date({DATE_TEXT.sql(x)})"), [f'"{t}"' for t in texts])
    assert found == [2932896, 2932896, -719162, -719162, -2440550, "bad"]
    micros = read(
        session,
        codec_named("timestamp_us", {}),
        ["9223372036825200000", "-9223372036832400000", "-1", "99999999999999999999"],
    )
    expected = ["9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "bad"]
    assert [str(t) for t in micros] == expected
    nanos = read(session, codec_named("timestamp_ns", {}), ["-1", "1999"])
    assert [str(t) for t in nanos] == ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001"]


DAY, MIDNIGHT, INSTANT = "2024-02-29", "2024-02-29 00:00:00", "2024-02-29 00:00:00+00:00"
# Texts, and what a date, a timestamp_ntz and a timestamp make of them.
MOMENTS: tuple[tuple[str, str, str, str], ...] = (
    ("2024-02-29", DAY, MIDNIGHT, INSTANT),
    (" 2024-2-29 ", DAY, MIDNIGHT, INSTANT),
    ("2024-02-29T00:00:00Z", DAY, MIDNIGHT, INSTANT),
    ("2024-02-29 00:00:00.000", DAY, MIDNIGHT, INSTANT),
    ("2024-02-29T05:30:00+05:30", DAY, MIDNIGHT, INSTANT),
    ("2024-02-29T00:00:00+05:30", "bad", "2024-02-28 18:30:00", "2024-02-28 18:30:00+00:00"),
    ("2024-02-29T23:30:00Z", "bad", "2024-02-29 23:30:00", "2024-02-29 23:30:00+00:00"),
    ("2024-02-29 23:30", "bad", "2024-02-29 23:30:00", "2024-02-29 23:30:00+00:00"),
    ("2024-02-29T23:30:00-0100", "bad", "2024-03-01 00:30:00", "2024-03-01 00:30:00+00:00"),
)
NO_MOMENTS = (
    *("2024-02-29Tgarbage", "2024-02-29 x", "2024-02-30", "2024-02-29/", "2024-02", "24-02-29"),
    *("12:00:00-05:00", "T12:00:00-05:00", "today", ""),
)


@pytest.mark.parametrize(("kind", "place"), [("date", 1), ("timestamp_ntz", 2), ("timestamp", 3)])
def test_a_text_that_is_read_as_a_time_is_all_of_it_or_a_bad_value(
    session: SparkSession, kind: str, place: int
) -> None:
    found = read(session, codec_named(kind, {}), [json.dumps(moment[0]) for moment in MOMENTS])
    assert [str(value) for value in found] == [moment[place] for moment in MOMENTS]
    assert read(session, codec_named(kind, {}), [json.dumps(text) for text in NO_MOMENTS]) == ["bad"] * len(NO_MOMENTS)


def test_a_number_is_a_day_and_no_year_of_a_timestamp(session: SparkSession) -> None:
    days = read(session, codec_named("date", {}), ["2024", "-1", "1.5"])
    assert [str(day) for day in days] == ["1975-07-18", "1969-12-31", "bad"]
    for kind in ("timestamp_ntz", "timestamp"):
        assert read(session, codec_named(kind, {}), ["-1000", "2024", "20240229"]) == ["bad"] * 3


def test_times_of_day_negative_ones_and_long_ones(session: SparkSession) -> None:
    found = read(session, codec_named("time_us", {}), ["0", "86400000000", "-1000000", "3020399000000"])
    assert found == ["00:00:00.000000", "24:00:00.000000", "-00:00:01.000000", "838:59:59.000000"]


def test_a_time_as_text_loses_the_zone_that_its_column_does_not_have(session: SparkSession) -> None:
    sent = ['"12:34:56.789012Z"', '"00:00:00Z"', '"12:34:56.5"', "null"]
    expected = ["12:34:56.789012", "00:00:00", "12:34:56.5", None]
    assert read(session, codec_named("io.debezium.time.IsoTime", {}), sent) == expected
    elements = read(session, codec_named("array<io.debezium.time.IsoTime>", {}), [f"[{', '.join(sent)}]"])
    assert elements == [expected]


def test_decimals_that_no_decimal_of_the_lake_holds_are_exact_text(session: SparkSession) -> None:
    wide = codec_named("org.apache.kafka.connect.data.Decimal(60,20)", {})
    found = read(session, wide, [connect_decimal(1), connect_decimal(-(10**40) - 1), "null"])
    assert found == ["0.00000000000000000001", "-100000000000000000000.00000000000000000001", None]


@pytest.mark.parametrize(
    ("mode", "sent", "bad"),
    [
        ("bytes", "+/8=", "-_8="),
        ("base64", "+/8=", "-_8="),
        ("base64-url-safe", "-_8=", "?"),
        ("hex", "FBff", "FBf"),
    ],
)
def test_bytes_without_schema_as_the_connector_writes_them(
    session: SparkSession, mode: str, sent: str, bad: str
) -> None:
    codec = codec_named("binary", {"binary.handling.mode": mode})
    assert read(session, codec, [json.dumps(sent), '""', json.dumps(bad)]) == [b"\xfb\xff", b"", "bad"]


def test_decimals_as_json_numbers(session: SparkSession) -> None:
    sent = ["12.34", "-0.5", "1e2", "12.345", "12345678901.23", "null"]
    found = read(session, decimal(12, 2), sent)
    assert found == [Decimal("12.34"), Decimal("-0.50"), Decimal("100.00"), "bad", "bad", None]


LONG = "1" + "2345678901" * 4
"""A number of 41 digits; of its fraction a DECIMAL could hold 38."""


def test_no_digit_of_a_json_number_is_lost_on_the_way_to_a_decimal(session: SparkSession) -> None:
    """What a DOUBLE may have rounded is no value: numbers with an exponent, or of more digits than DECIMAL has."""
    exact = ["12345678901234567890.123456789012345678", "1.23456789012345E-4", "-1E-18", "1.5e3", "0E-5"]
    lost = ["1.2345678901234567E-4", "-1.234567890123456E-4", f"0.{LONG}", "1e400", "1E-19", "true", "{}", "[1]"]
    found = read(session, decimal(38, 18), [*exact, *lost])
    assert found == [*map(Decimal, exact), *["bad"] * len(lost)]


def test_a_json_number_that_is_kept_as_text_is_in_plain_notation(session: SparkSession) -> None:
    sent = {
        "12345678901234567890.123456789012345678": "12345678901234567890.123456789012345678",
        "-12345678901234567890123456789012345678": "-12345678901234567890123456789012345678",
        "1.5E-10": "0.00000000015",
        "-1E-30": "-0.000000000000000000000000000001",
        "0.0000000000000000000125": "0.0000000000000000000125",
        "1e25": "10000000000000000000000000",
        "1.5e3": "1500",
        "null": None,
    }
    assert read(session, decimal(65, 30), list(sent)) == list(sent.values())
    lost = ["true", "{}", '{"a":1}', "[1]", "1e400", LONG, f"0.{LONG}", "1.2345678901234567E-4"]
    assert read(session, decimal(65, 30), lost) == ["bad"] * len(lost)


@pytest.mark.parametrize(
    ("codec", "around"),
    [
        *((decimal(precision, 2), "{}") for precision in (10, 38, 60)),
        (codec_named("io.debezium.data.VariableScaleDecimal", {}), '{{"scale": 2, "value": {}}}'),
    ],
    ids=lambda given: given.target if isinstance(given, Codec) else "",
)
def test_5_2_what_is_no_base64_is_no_decimal(session: SparkSession, codec: Codec, around: str) -> None:
    sent = ["AQ==", "?", "", "AQ=", "A", "AQ==AQ==", "!!!!", "AQ%="]
    found = read(session, codec, [around.format(json.dumps(text)) for text in sent])
    assert [str(value) for value in found] == ["0.01", *["bad"] * 7]


def test_a_number_with_a_fraction_is_no_whole_number(session: SparkSession) -> None:
    found = read(session, codec_named("int", {}), ["12", "12.5", "3000000000", '"abc"', "true", "null"])
    assert found == [12, "bad", "bad", "bad", "bad", None]


def test_2_1_positions_sort_as_the_sources_order(session: SparkSession) -> None:
    def ordered(connector: str, sources: list[dict[str, object]], op: str = "u") -> list[str]:
        texts = [
            json.dumps({"op": op, "source": {k: None if v is None else str(v) for k, v in s.items()}}) for s in sources
        ]
        ddl = f"op STRING, source STRUCT<{', '.join(f'{n}: STRING' for n in source_fields(connector))}>"
        frame = session.createDataFrame(pa.table({"j": texts})).select(F.from_json("j", ddl).alias("p"))
        found = frame.select(F.expr(position_sql(connector, "p.source", "p.op", 0)).alias("pos")).toArrow()
        positions: list[str] = found.column("pos").to_pylist()
        return positions

    sqlserver = ordered(
        "sqlserver",
        [
            {"commit_lsn": "00000027:00000758:0003"},
            {"commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0001", "event_serial_no": 9},
            {"commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0001", "event_serial_no": 10},
            {"commit_lsn": "00000027:00000758:000A", "change_lsn": "00000027:00000757:0001"},
        ],
    )
    assert sqlserver == sorted(sqlserver)
    assert len(set(sqlserver)) == 4
    binlog = ordered(
        "mysql", [{"file": f"b.{f}", "pos": p, "row": r} for f, p, r in ((9, 99, 0), (10, 4, 0), (10, 4, 1))]
    )
    assert binlog == sorted(binlog)
    known = ordered(
        "postgresql", [{"sequence": '["9","100"]'}, {"sequence": '["10","50"]'}, {"sequence": '["10","60"]'}]
    )
    assert known == sorted(known)
    # The commit level of a connector's first transaction is unknown, not lowest: its lsn decides.
    (unknown,) = ordered("postgresql", [{"sequence": '[null,"55"]'}])
    later = session.range(1).select(
        F.expr(is_later("postgresql", f"'{unknown}'", f"'{known[1]}'")),
        F.expr(is_later("postgresql", f"'{known[2]}'", f"'{unknown}'")),
    )
    assert list(later.collect()[0]) == [True, True]
