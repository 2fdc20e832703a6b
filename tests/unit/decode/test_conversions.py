"""Types that `columns` names over what a schema tells; what comes out of values is told in tests/spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.changes import DAY, INSTANT, INT, LONG, TEXT, Row, decimal

from distributary.decode.connect import parse_schema
from distributary.decode.conversions import NoConversion, codec_over
from distributary.decode.masks import Masks
from distributary.decode.shapes import Shape, Signature, TypeSources, shape_of
from distributary.decode.type_names import codec_named
from distributary.decode.types import Codec, codec_of
from distributary.errors import TableHalt

BYTES = {"type": "bytes"}
WIDE = decimal(60, 20)
VARIABLE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []}


def time(name: str, kind: str = "int64") -> Row:
    return {"type": kind, "name": f"io.debezium.time.{name}"}


def listed(of: Row) -> Row:
    return {"type": "array", "items": of}


def over(sent: Row, wanted: str, **properties: str) -> Codec:
    return codec_over(parse_schema(json.dumps(sent)), wanted, properties)


def own(sent: Row) -> Codec:
    return codec_of(parse_schema(json.dumps(sent)))


def is_read_as(codec: Codec, other: Codec) -> bool:
    return codec.reads_like(other)


MONEY = decimal(12, 2)
NUMBERS = ("decimal(20,4)", "decimal(8,0)", "tinyint", "smallint", "int", "bigint", "float", "double")


@pytest.mark.parametrize("sent", [MONEY, decimal(38, 0), WIDE, VARIABLE], ids=lambda sent: own(sent).target)
@pytest.mark.parametrize("wanted", [*NUMBERS, "string", "io.debezium.data.VariableScaleDecimal"])
def test_a_decimal_is_read_as_its_schema_says_whatever_type_is_wanted(sent: Row, wanted: str) -> None:
    found, schema = over(sent, wanted), own(sent)
    assert (found.wire, found.target) == (schema.wire, codec_named(wanted, {}).target)
    assert schema.sql("x") in found.sql("x")
    assert found.lost("x").startswith(f"({schema.there('x')} AND ")
    assert (found.usual is None) == (schema.usual is None)
    if found.usual is not None and schema.usual is not None:
        assert (found.usual.wire, found.usual.target) == (schema.usual.wire, found.target)
        assert schema.usual.sql("x") in found.usual.sql("x")
        assert found.usual.doubt("x", "c", "v") == schema.usual.doubt("x", "c", "v")
        assert found.usual.doubt("x", "c", "v") is not None


@pytest.mark.parametrize("mode", ["precise", "string", "double"])
def test_a_connectors_setting_does_not_say_how_a_schemas_decimal_is_read(mode: str) -> None:
    found = over(MONEY, "decimal(12,2)", **{"decimal.handling.mode": mode})
    assert is_read_as(found, own(MONEY))


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (INSTANT, "timestamp_ms"),
        (INSTANT, "timestamp_ns"),
        (INSTANT, "timestamp_ntz"),
        (INSTANT, "io.debezium.time.Timestamp"),
        (time("IsoTimestamp", "string"), "timestamp_us"),
        (DAY, "io.debezium.time.IsoDate"),
        (time("IsoDate", "string"), "date"),
        (time("ZonedTimestamp", "string"), "timestamp"),
        (time("MicroTime"), "time_ms"),
        (time("MicroTime"), "string"),
        (time("Time", "int32"), "io.debezium.time.IsoTime"),
        (time("ZonedTime", "string"), "time_us"),
        (time("Year", "int32"), "int"),
        (time("MicroDuration"), "bigint"),
        (listed(INSTANT), "array<timestamp_ms>"),
        (TEXT, "string"),
        (INT, "int"),
        (BYTES, "binary"),
        (VARIABLE, "string"),
        (WIDE, "string"),
    ],
)
def test_where_the_type_stays_the_schemas_own_reading_counts(sent: Row, wanted: str) -> None:
    assert is_read_as(over(sent, wanted), own(sent))


POINTS = {"date": DAY, "timestamp_ntz": INSTANT, "timestamp": time("ZonedTimestamp", "string")}


@pytest.mark.parametrize(("wanted", "sent"), [(w, s) for w in POINTS for t, s in POINTS.items() if t != w])
def test_days_and_times_become_each_other(wanted: str, sent: Row) -> None:
    found = over(sent, wanted)
    assert (found.wire, found.target) == (own(sent).wire, wanted)
    assert own(sent).sql("x") in found.sql("x")
    assert (found.usual is None) == (own(sent).usual is None)


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
        (VARIABLE, "struct<scale:int,value:binary>"),
        (listed(DAY), "string"),
    ],
)
def test_numbers_and_texts_are_taken_as_they_are_on_the_wire(sent: Row, wanted: str) -> None:
    expected = codec_named(wanted, {"decimal.handling.mode": "string"})
    assert is_read_as(over(sent, wanted), expected)


@pytest.mark.parametrize("sent", [TEXT, LONG, {"type": "double"}])
def test_what_a_schema_does_not_call_bytes_is_no_unscaled_number(sent: Row) -> None:
    """A text of digits would be taken for Base64."""
    assert is_read_as(over(sent, "decimal(12,2)"), codec_named("decimal(12,2)", {"decimal.handling.mode": "string"}))
    assert is_read_as(over(BYTES, "decimal(12,2)"), codec_named("decimal(12,2)", {}))


def test_durations_become_times_of_their_own_unit() -> None:
    for wanted in ("time_ms", "time_us", "time_ns"):
        assert is_read_as(over(time("MicroDuration"), wanted), codec_named("time_us", {}))
        assert is_read_as(over(time("NanoDuration"), wanted), codec_named("time_ns", {}))


def test_what_is_inside_of_arrays_maps_and_structs_is_read_as_the_schema_says_too() -> None:
    text = {"type": "string", "optional": False}
    point = {"type": "struct", "fields": [{**MONEY, "field": "a"}, {**TEXT, "field": "left out"}]}
    for sent, wanted in (
        (listed(MONEY), "array<decimal(20,4)>"),
        (listed(MONEY), "array<string>"),
        ({"type": "map", "keys": text, "values": MONEY}, "map<string,bigint>"),
        (point, "struct<a:decimal(20,4),b:int>"),
    ):
        found = over(sent, wanted)
        assert found.target == wanted
        assert "VARIANT" in found.wire
        assert "decimal(12, 2)" in found.sql("x").lower()
    assert over(listed(TEXT), "array<string>").sql("x") == "x"


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        *((MONEY, wanted) for wanted in ("date", "timestamp", "timestamp_ms", "time_ms", "boolean", "binary")),
        *((MONEY, wanted) for wanted in ("variant", "array<decimal(12,2)>", "struct<scale:int,value:binary>")),
        *((VARIABLE, wanted) for wanted in ("date", "time_us", "binary", "io.debezium.time.IsoTime")),
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
        over(sent, wanted)


def signature(key: Row, row: Row) -> Signature:
    def struct(fields: Row, **more: Any) -> Row:
        return {"type": "struct", "fields": [{**kind, "field": name} for name, kind in fields.items()], **more}

    source = struct({"connector": TEXT}, field="source")
    envelope = {"type": "struct", "fields": [struct(row, field="after"), source, {**TEXT, "field": "op"}]}
    return Signature(json.dumps(struct(key)), json.dumps(envelope))


def shape(columns: dict[str, str], exclude: tuple[str, ...] = (), masks: Masks | None = None) -> Shape:
    of = signature({"id": decimal(12, 2)}, {"id": decimal(12, 2), "c": MONEY, "at": INSTANT})
    return shape_of(of, TypeSources(columns, {}, {}, {}, masks or Masks()), frozenset(exclude))


def test_keys_and_rows_are_converted_alike() -> None:
    found = shape({"id": "decimal(10,0)", "c": "decimal(20,4)", "at": "timestamp_ms"})
    assert is_read_as(found.key["id"], found.row["id"])
    assert {name: codec.target for name, codec in found.row.items()} == {
        "id": "decimal(10,0)",
        "c": "decimal(20,4)",
        "at": "timestamp_ntz",
    }
    assert is_read_as(found.row["at"], own(INSTANT))
    usual = found.usual().row["c"]
    assert (usual.wire, usual.target) == ("BINARY", "decimal(20,4)")


def test_a_mask_is_over_the_converted_value() -> None:
    masks = Masks({"c": "hash"}, "salt")
    assert shape({"c": "decimal(20,4)"}, masks=masks).row["c"].mark == (
        masks.over("c", codec_named("decimal(20,4)", {})).mark
    )


def test_a_type_that_nothing_makes_of_a_column_halts_the_table_unless_it_is_left_out() -> None:
    with pytest.raises(TableHalt, match="no-conversion") as halt:
        shape({"c": "date"})
    assert "'c'" in halt.value.message
    assert "date" in halt.value.message
    assert "org.apache.kafka.connect.data.Decimal" in halt.value.message
    assert halt.value.fix
    assert "c" not in shape({"c": "date"}, exclude=("c",)).row
