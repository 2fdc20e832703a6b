"""Avro schemas as Kafka Connect's converters write them, translated into the Connect schemas that they stand for."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from distributary.decode.connect import ConnectType, parse_schema
from tests.support.avro import NoAvroName, avro_of
from tests.support.recorded import EVENTS, Scenario

from distributary.decode.avro_schema import NotAnAvroSchema, translated
from distributary.decode.framing import address

SCENARIOS = sorted(folder.name for folder in EVENTS.iterdir() if folder.is_dir() and not folder.name.endswith("_plain"))


def connect(avro: Any, *references: Any) -> ConnectType:
    return parse_schema(translated(json.dumps(avro), map(json.dumps, references)).connect)


def unnamed(type_: ConnectType) -> ConnectType:
    """Without the names of structs, which Avro changes where it does not allow them."""
    return dataclasses.replace(
        type_,
        name=None if type_.kind == "struct" else type_.name,
        items=type_.items and unnamed(type_.items),
        keys=type_.keys and unnamed(type_.keys),
        fields=tuple(dataclasses.replace(f, type=unnamed(f.type)) for f in type_.fields),
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_recorded_schema_is_the_same_after_the_way_through_avro(name: str) -> None:
    # Read as text: most of the bytes are schemas, and there are only a few different ones.
    texts = (data for record in Scenario(name).records for data in (record.key, record.value) if data)
    heads = {text.partition(b',"payload":')[0] for text in texts if b',"payload":' in text}
    schemas = {head.removeprefix(b'{"schema":').decode() for head in heads}
    compared = 0
    for schema in schemas:
        try:
            avro = avro_of(json.loads(schema))
        except NoAvroName:
            continue
        assert unnamed(connect(avro)) == unnamed(parse_schema(schema))
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
    names = [part.partition('"')[0] for part in translated(json.dumps(row)).plain.split('"name":"t')[1:]]
    assert len(set(names)) == len(names) == 5  # each place has a name of its own


def test_a_name_may_be_defined_in_a_schema_that_is_referred_to() -> None:
    inner = {"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "long"}]}
    outer = {"type": "record", "name": "a.Outer", "fields": [{"name": "inner", "type": "Inner"}]}
    found = connect(outer, inner).field("inner")
    assert found is not None
    assert found.field("n") is not None


@pytest.mark.parametrize(
    "avro",
    [
        "unknown",
        ["int", "string"],
        ["null"],
        {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]},
        {"type": "record", "name": "Bare"},
        {"no": "type"},
        7,
        None,
    ],
    ids=json.dumps,
)
def test_what_has_no_columns_is_refused(avro: Any) -> None:
    with pytest.raises(NotAnAvroSchema):
        translated(json.dumps(avro))


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(NotAnAvroSchema):
        translated('syntax = "proto3";')


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        (b"\x00\x00\x00\x01\x02\x06", (), ("258", b"\x06")),
        (b"\x00\xff\xff\xff\xff\x06", (), ("4294967295", b"\x06")),
        (b"\x00\x00\x00\x01\x02", (), None),
        (b"\x01\x00\x00\x01\x02\x06", (), None),
        (b"{}", (), None),
        (b"", (), None),
        (b"\x06", (("__value_schema_id", b"\x00\x00\x00\x00\x07"),), ("7", b"\x06")),
        (
            b"\x06",
            (("__value_schema_id", b"\x01" + bytes(range(16))),),
            ("00010203-0405-0607-0809-0a0b0c0d0e0f", b"\x06"),
        ),
        (
            b"\x00\x02\x02\x02\x02\x01",
            (("apicurio.value.contentId", b"\0" * 7 + b"\2"),),
            ("2", b"\x00\x02\x02\x02\x02\x01"),
        ),
        (b"\x00\x02\x02\x02\xc8\x01", (("apicurio.value.globalId", b"\x00" * 7 + b"\x02"),), None),
        (b"\x06", (("__key_schema_id", b"\x00\x00\x00\x00\x07"),), None),
        (b"\x00\x00\x00\x00\x05\x06", (("__value_schema_id", b"7"),), ("5", b"\x06")),
        (b"\x00\x00\x00\x00\x05\x06", (("__value_schema_id", None),), ("5", b"\x06")),
    ],
)
def test_where_a_value_names_its_schema(data: bytes, headers: Any, expected: tuple[str, bytes] | None) -> None:
    assert address(data, headers, "value") == expected
