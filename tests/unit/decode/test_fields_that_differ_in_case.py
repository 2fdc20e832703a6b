"""A Delta table can't hold a struct whose fields have names that differ only in case: a record with one is a matter of
the table, and its config has three ways out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch_reader import FORMAT, PROGRESS, Lake, Raw, config, reader_of
from tests.support.decoding import made_records, rejections, struct_rows, struct_schema, with_schema
from tests.support.sample_change import KEY_WITH_SCHEMA, envelope_json, envelope_schema

from distributary.decode.avro.schema import parse_avro_schema
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.row_shape import row_shape_of_type
from distributary.decode.unwrapped import Unwrapped
from distributary.errors import TableHalt
from distributary.types.bounds import Bounds
from distributary.types.record_schema import RecordSchema

TWINS: dict[str, Any] = struct_schema({"a": {"type": "int32"}, "A": {"type": "string"}}, optional=True)
STRING = {"type": "string"}
NESTED: dict[str, tuple[dict[str, Any], str]] = {
    "a struct": (TWINS, '{"a":1,"A":"x"}'),
    "in a struct": (struct_schema({"in": TWINS}), '{"in":{"a":1,"A":"x"}}'),
    "in an array": ({"type": "array", "items": TWINS}, '[{"a":1,"A":"x"}]'),
    "in a map": ({"type": "map", "keys": STRING, "values": TWINS}, '{"k":{"a":1,"A":"x"}}'),
    "in the keys of a map": ({"type": "map", "keys": TWINS, "values": STRING}, '[[{"a":1,"A":"x"},"v"]]'),
    "beyond ASCII": (struct_schema({"ä": STRING, "Ä": STRING}), '{"ä":"x","Ä":"y"}'),
}
COLUMNS = {"id": "bigint", "n": "int"}
OTHERS: dict[str, dict[str, Any]] = {"id": {"type": "int64"}, "n": {"type": "int32", "optional": True}}


def value(kind: dict[str, Any], text: str) -> bytes:
    return with_schema(
        envelope_schema({**OTHERS, "s": {**kind, "optional": True}}), envelope_json(f'{{"id":17,"s":{text}}}')
    )


def decode(kind: dict[str, Any], text: str, table: dict[str, str], **options: Any) -> Decoded:
    raw = made_records([(KEY_WITH_SCHEMA, value(kind, text))])
    return Decoder(DecodeOptions("sqlserver", **options)).decode(raw, RecordSchema(table, {"id": "bigint"}))


@pytest.mark.parametrize("place", NESTED)
def test_such_a_record_is_a_matter_of_the_table(place: str) -> None:
    """Letters beyond ASCII count, too: Spark compares all names without their case."""
    found = decode(*NESTED[place], COLUMNS)
    assert rejections(found) == {0: "needs-decision"}
    assert found.conflict is not None
    assert found.conflict.code == "columns-differ-in-case"
    assert " of the column 's' differ only in case" in found.conflict.message


def test_so_is_one_in_avro() -> None:
    twins = {"type": "record", "name": "s", "fields": [{"name": name, "type": "int"} for name in "aA"]}
    row = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "s", "type": twins}]}
    schema = parse_avro_schema(json.dumps(row), (), Bounds())
    options = DecodeOptions("sqlserver", unwrapped=Unwrapped({}))
    conflict = row_shape_of_type(schema.connect, options).conflict
    assert conflict is not None
    assert conflict.code == "columns-differ-in-case"


def test_names_that_differ_otherwise_are_columns() -> None:
    kind = struct_schema({"a": {"type": "int32"}, "b": struct_schema({"a": {"type": "int32"}})})
    found = decode(kind, '{"a":1,"b":{"a":2}}', {"id": "bigint", "s": "struct<a:int,b:struct<a:int>>"})
    assert [row and row["s"] for row in struct_rows(found.events["row"])] == [{"a": 1, "b": {"a": 2}}]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ({"exclude": frozenset({"s"})}, None),
        ({"types": TypeSources({"s": "string"})}, '{"a":1,"A":"x"}'),
        ({"types": TypeSources({"s": "struct<A:string>"})}, {"A": "x"}),
    ],
    ids=["exclude", "string", "one of them"],
)
def test_the_config_has_ways_out(given: dict[str, Any], row: Any) -> None:
    kind = given["types"].configured["s"] if "types" in given else "string"
    found = decode(*NESTED["a struct"], {**COLUMNS, "s": kind}, **given)
    assert not found.rejected.num_rows
    assert [one and one["s"] for one in struct_rows(found.events["row"])] == [row]


def test_a_table_halts_only_where_nothing_shows_that_the_record_is_stray(tmp_path: Path) -> None:
    good = with_schema(envelope_schema(OTHERS), envelope_json('{"id":17,"n":1}'))
    twins = value(*NESTED["a struct"])
    reader = reader_of(config(tmp_path), Lake(COLUMNS))
    reader.table_columns.load(None)
    found = reader.read_and_change_table(Raw([good, good, twins, good]), FORMAT, PROGRESS)
    assert rejections(found.decoded) == {2: "needs-decision"}
    with pytest.raises(TableHalt, match="differ only in case"):
        reader.read_and_change_table(Raw([good, good, good, twins]), FORMAT, PROGRESS)
