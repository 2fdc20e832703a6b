"""Avro schemas as Kafka Connect's converters write them, and the Connect schemas that they stand for."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.support.avro import NoAvroName, avro_of
from tests.support.recorded import EVENTS, Scenario

from distributary.decode.avro.schema import AvroType, NotAnAvroSchema, parse_avro_schema
from distributary.types.bounds import Bounds
from distributary.types.connect_schema import ConnectType, parse_schema

SCENARIOS = sorted(folder.name for folder in EVENTS.iterdir() if folder.is_dir() and not folder.name.endswith("_plain"))


def parsed(avro: Any, *references: Any) -> AvroType:
    return parse_avro_schema(json.dumps(avro), map(json.dumps, references))


def connect(avro: Any, *references: Any) -> ConnectType:
    return parsed(avro, *references).connect


def unnamed(kind: ConnectType) -> ConnectType:
    """Without the names of structs, which Avro changes where it does not allow them."""
    return dataclasses.replace(
        kind,
        name=None if kind.kind == "struct" else kind.name,
        items=kind.items and unnamed(kind.items),
        fields=tuple(dataclasses.replace(part, type=unnamed(part.type)) for part in kind.fields),
    )


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.thorough
def test_every_recorded_schema_is_the_same_after_the_way_through_avro(name: str) -> None:
    # Read as text: most of the bytes are schemas, and there are only a few different ones.
    texts = (data for record in Scenario(name).records for data in (record.key, record.value) if data)
    heads = {text.partition(b',"payload":')[0] for text in texts if b',"payload":' in text}
    schemas = {head.removeprefix(b'{"schema":') for head in heads}
    compared = 0
    for schema in schemas:
        try:
            avro = avro_of(json.loads(schema))
        except NoAvroName:
            continue
        assert unnamed(connect(avro)) == unnamed(parse_schema(schema, Bounds()))
        compared += 1
    assert compared


@pytest.mark.parametrize(
    ("avro", "kind", "name"),
    [
        ({"type": "int", "connect.type": "int16"}, "int16", None),
        (
            {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
            "int64",
            "io.debezium.time.MicroTimestamp",
        ),
        ({"type": "int", "logicalType": "date"}, "int32", "org.apache.kafka.connect.data.Date"),
        ({"type": "int", "logicalType": "time-millis"}, "int32", "org.apache.kafka.connect.data.Time"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "int64", "org.apache.kafka.connect.data.Timestamp"),
        ({"type": "enum", "name": "Mood", "symbols": ["ok"]}, "string", None),
        ({"type": "fixed", "name": "Four", "size": 4}, "bytes", None),
        (["null", "double"], "double", None),
        (["string", "null"], "string", None),
        (["bytes"], "bytes", None),
        ({"type": {"type": "string", "connect.name": "io.debezium.data.Json"}}, "string", "io.debezium.data.Json"),
    ],
)
def test_types(avro: Any, kind: str, name: str | None) -> None:
    found = connect(avro)
    assert (found.kind, found.name) == (kind, name)


def test_unions_say_which_byte_stands_for_null() -> None:
    tags = [(kind.value_tag, kind.null_tag) for kind in map(parsed, ("int", ["int"], ["null", "int"], ["int", "null"]))]
    assert tags == [(None, None), (0, None), (2, 0), (0, 2)]


@pytest.mark.parametrize(
    ("avro", "parameters"),
    [
        ({"scale": 2, "precision": 10}, {"scale": "2", "connect.decimal.precision": "10"}),
        ({"scale": 2, "precision": 64}, {"scale": "2"}),  # what stands there where Connect knows no precision
        ({"precision": 5}, {"scale": "0", "connect.decimal.precision": "5"}),
        (
            {"scale": -2, "precision": 64, "connect.parameters": {"scale": "-2", "connect.decimal.precision": "3"}},
            {"scale": "-2", "connect.decimal.precision": "3"},
        ),
    ],
)
def test_decimals(avro: dict[str, Any], parameters: dict[str, str]) -> None:
    found = connect({"type": "bytes", "logicalType": "decimal", **avro})
    assert found.name == "org.apache.kafka.connect.data.Decimal"
    assert dict(found.parameters) == parameters


def test_a_name_stands_for_its_type_in_every_place_and_name_space() -> None:
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": [{"name": "x", "type": "double"}]}
    row = {
        "type": "record",
        "name": "shop.Row",
        "fields": [
            {"name": "a", "type": point},
            {"name": "b", "type": ["null", "geo.Point"]},
            {"name": "c", "type": {"type": "record", "name": "Inner", "fields": [{"name": "y", "type": "int"}]}},
            {"name": "d", "type": {"type": "array", "items": "Inner"}},
        ],
    }
    found = connect(row)
    assert found.field("a") == found.field("b")
    assert found.field("c") is not None
    assert found.field("c") == (found.field("d") or found).items


def test_a_name_may_be_defined_in_a_schema_that_is_referred_to() -> None:
    inner = {"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "long"}]}
    outer = {"type": "record", "name": "a.Outer", "fields": [{"name": "inner", "type": "Inner"}]}
    found = connect(outer, inner).field("inner")
    assert found is not None
    assert found.field("n") is not None


def chain(length: int, uses: int) -> list[Any]:
    """Records, each of which holds the one before so many times."""
    first = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    rest = [
        {"type": "record", "name": f"r{n}", "fields": [{"name": f"f{use}", "type": f"r{n - 1}"} for use in range(uses)]}
        for n in range(1, length)
    ]
    return [first, *rest]


@pytest.mark.parametrize(
    "avro",
    [
        "unknown",
        ["int", "string"],
        ["null"],
        ["null", "null", "int"],
        [["null", "int"]],
        {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]},
        {"type": "record", "name": "Bare"},
        {"type": "record", "name": "Twice", "fields": [{"name": "a", "type": "int"}] * 2},
        {"type": "record", "name": "Odd", "fields": [{"name": 'a"b', "type": "int"}]},
        {"type": "record", "name": 7, "fields": []},
        {"type": "record", "name": "Wide", "fields": [{"name": f"c{n}", "type": "int"} for n in range(5_001)]},
        {"type": "enum", "name": "Mood"},
        {"type": "enum", "name": "Mood", "symbols": ["x" * 1_001]},
        {"type": "fixed", "name": "Some", "size": -1},
        {"type": "fixed", "name": "Some", "size": True},
        {"type": "int", "connect.type": 7},
        {"type": "int", "connect.name": ["a"]},
        {"type": "int", "connect.parameters": [1]},
        {"type": "array"},
        {"type": "map", "values": None},
        {"no": "type"},
        7,
        None,
    ],
    ids=lambda avro: json.dumps(avro)[:60],
)
def test_what_has_no_columns_is_refused(avro: Any) -> None:
    with pytest.raises(NotAnAvroSchema):
        parsed(avro)


def test_names_make_no_schema_larger_than_the_bounds() -> None:
    for records in (chain(66, 1), chain(30, 2)):
        with pytest.raises(NotAnAvroSchema, match="more than"):
            parsed(records[-1], *records[:-1])
    assert parsed(chain(64, 1)[-1], *chain(64, 1)[:-1]).height == 64


_ONE_IN_ANOTHER = {
    "array": ('{"type":"array","items":', "}"),
    "map": ('{"type":"map","values":', "}"),
    "union": ('["null",', "]"),
    "record": ('{"type":"record","name":"R","fields":[{"name":"f","type":', "}]}"),
}


@pytest.mark.parametrize("levels", [100, 10_000, 200_000])
@pytest.mark.parametrize("kind", _ONE_IN_ANOTHER)
def test_6_3_types_in_one_another_without_end_are_refused(kind: str, levels: int) -> None:
    begin, end = _ONE_IN_ANOTHER[kind]
    with pytest.raises(NotAnAvroSchema):
        parse_avro_schema(begin * levels + '"int"' + end * levels)


@pytest.mark.parametrize("text", ['syntax = "proto3";', "", "[" * 100_000, '{"type":' * 100_000])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(NotAnAvroSchema):
        parse_avro_schema(text)
