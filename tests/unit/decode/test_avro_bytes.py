"""The compiled readers of Avro against fastavro's: the same values of the same bytes, and of no other bytes any."""

from __future__ import annotations

import io
import itertools
import json
import random
import types
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.hostile import mutated

from distributary.decode.avro.compiler import compile_reader
from distributary.decode.avro.schema import AvroType, parse_avro_schema
from distributary.decode.avro.targets import AS_JSON, SKIP, AsWire, is_native
from distributary.decode.avro.values import BROKEN, UNREAD, BrokenAvro
from distributary.types.strict_json import json_text

NAMES = itertools.count()
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "boolean": st.booleans(),
    "string": st.text(max_size=80),
    "bytes": st.binary(max_size=80),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """An Avro schema, and values of it."""
    kinds = [*LEAVES, "enum", "fixed", *(("array", "map", "record") if depth else ())]
    kind = draw(st.sampled_from(kinds))
    schema: Any = kind
    name = f"n{next(NAMES)}"
    if kind in LEAVES:
        values = LEAVES[kind]
    elif kind == "enum":
        schema, values = {"type": kind, "name": name, "symbols": ["a", "b"]}, st.sampled_from(("a", "b"))
    elif kind == "fixed":
        schema, values = {"type": kind, "name": name, "size": 3}, st.binary(min_size=3, max_size=3)
    elif kind == "record":
        fields = draw(st.lists(schemas(depth - 1), max_size=5))
        parts = [{"name": f"f{index}", "type": part} for index, (part, _) in enumerate(fields)]
        schema = {"type": kind, "name": name, "fields": parts}
        values = st.fixed_dictionaries({f"f{index}": value for index, (_, value) in enumerate(fields)})
    else:
        item, items = draw(schemas(depth - 1))
        schema = {"type": kind, "items" if kind == "array" else "values": item}
        values = (
            st.lists(items, max_size=3) if kind == "array" else st.dictionaries(st.text(max_size=3), items, max_size=3)
        )
    union = draw(st.sampled_from(("", "first", "last", "single")))
    if union:
        schema = {"": [], "first": ["null", schema], "last": [schema, "null"], "single": [schema]}[union]
        values = values if union == "single" else st.none() | values
    return schema, values


def wire_of(kind: AvroType) -> Any:
    """The wire type as which all its values are read."""
    plain: Any = {"int": int, "long": int, "float": float, "double": float, "boolean": bool}.get(kind.kind)
    if kind.kind in ("string", "enum"):
        plain = str
    elif kind.kind in ("bytes", "fixed"):
        plain = bytes
    elif kind.kind == "array":
        plain = types.GenericAlias(list, (wire_of(kind.items or kind),))
    elif kind.kind == "map":
        plain = types.GenericAlias(dict, (str, wire_of(kind.items or kind)))
    elif kind.kind == "record":
        fields: list[Any] = [(f"c{index}", wire_of(part), None) for index, (_, part) in enumerate(kind.fields)]
        names = {f"c{index}": name for index, (name, _) in enumerate(kind.fields)}
        plain = msgspec.defstruct("Row", fields, rename=names)
    return plain | None


def plain(value: Any) -> Any:
    """Structs as fastavro has records."""
    if isinstance(value, msgspec.Struct):
        parts = msgspec.structs.fields(value)
        return {part.encode_name: plain(getattr(value, part.name)) for part in parts}
    if isinstance(value, list):
        return list(map(plain, value))
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def written(schema: Any, value: Any) -> bytes:
    data = io.BytesIO()
    schemaless_writer(data, schema, value)
    return data.getvalue()


def read_by_fastavro(schema: Any, data: bytes) -> Any:
    """The value; the bytes must end where it ends."""
    source = io.BytesIO(data)
    value = schemaless_reader(source, schema, None)
    assert not source.read(1)
    return value


def outcome(read: Callable[[bytes, int], Any], data: bytes) -> Any:
    """What is read of the bytes, or what is raised for them."""
    try:
        return read(data, 0)
    except UNREAD as error:
        return error


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=schemas(), data=st.data())
def test_what_is_read_is_what_fastavro_reads(drawn: tuple[Any, st.SearchStrategy[Any]], data: st.DataObject) -> None:
    schema, values = drawn
    parsed = parse_schema(schema)
    kind = parse_avro_schema(json.dumps(schema))
    assert is_native(kind, wire_of(kind))
    read, skip, as_json = (compile_reader(kind, target) for target in (AsWire(wire_of(kind)), SKIP, AS_JSON))
    for value in data.draw(st.lists(values, max_size=5)):
        sent = written(parsed, value)
        expected = repr(read_by_fastavro(parsed, sent))
        assert repr(plain(read(b"head" + sent, 4))) == expected
        assert skip(sent, 0) is None
        json_text(as_json(sent, 0)).encode()
        for wrong in (sent + b"\0", sent[:-1]):
            found, skipped = outcome(read, wrong), outcome(skip, wrong)
            assert isinstance(found, Exception) == isinstance(outcome(as_json, wrong), Exception)
            if not isinstance(found, Exception):
                assert skipped is None
                assert repr(plain(found)) == repr(read_by_fastavro(parsed, wrong))


RICH = {
    "type": "record",
    "name": "Rich",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": {"type": "array", "items": ["long", "null"]}},
        {"name": "d", "type": {"type": "map", "values": "double"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["x", "y"]}},
        {"name": "f", "type": ["boolean", "null"]},
        {"name": "g", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "h", "type": ["null", {"type": "record", "name": "R", "fields": [{"name": "i", "type": "bytes"}]}]},
    ],
}


def test_of_thousands_of_faulty_values_none_is_read_as_another() -> None:
    chance = random.Random(3)
    kind, schema = parse_avro_schema(json.dumps(RICH)), parse_schema(RICH)
    value = {"a": -70_000, "b": "ä text", "c": [1, None, -(2**60)], "d": {"k": 1.5}, "e": "y", "f": True}
    sent = written(schema, {**value, "g": b"\0\1", "h": {"i": b"bytes"}})
    read, skip = compile_reader(kind, AsWire(wire_of(kind))), compile_reader(kind, SKIP)
    taken = 0
    for _ in range(5_000):
        data = mutated(sent, chance)
        found, skipped = outcome(read, data), outcome(skip, data)
        if isinstance(found, Exception):
            # The parts that are skipped are not looked into: their end is where they say.
            assert skipped is None or isinstance(skipped, BROKEN)
        else:
            assert skipped is None
            assert repr(plain(found)) == repr(read_by_fastavro(schema, data))
            taken += 1
    assert 100 < taken < 4_000


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("int", b"\x80\x80\x80\x80\x10"),  # 33 bits
        ("int", b"\x80" * 20),
        ("long", b"\xff" * 9 + b"\x02"),  # 65 bits
        ("long", b"\xff" * 10 + b"\x01"),
        ("string", b"\x01a"),  # a length of -1
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01a"),
        ("boolean", b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["x"]}, b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["x"]}, b"\x01"),
        (["null", "int"], b"\x04\x02"),
        (["null", "int"], b"\x01"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, b"\xfe\xff\xff\xff\xff\xff\xff\x7f\0"),
        ({"type": "array", "items": "int"}, b"\x02\x02"),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\0"),  # a key twice
        ({"type": "map", "values": "int"}, b"\x02\x02a\x02\x02\x02a\x04\0"),
    ],
    ids=str,
)
def test_bytes_that_no_writer_writes_are_refused(kind: Any, data: bytes) -> None:
    parsed = parse_avro_schema(json.dumps(kind))
    with pytest.raises(BROKEN):
        compile_reader(parsed, AsWire(wire_of(parsed)))(data, 0)


def test_blocks_of_items_may_have_their_size_before_them() -> None:
    kind = parse_avro_schema(json.dumps({"type": "array", "items": "int"}))
    data = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\0"
    assert compile_reader(kind, AsWire(list[int | None]))(data, 0) == [1, 2, 3]
    assert compile_reader(kind, SKIP)(data, 0) is None
    with pytest.raises(BrokenAvro):
        compile_reader(kind, SKIP)(data + b"\0", 0)


def test_types_in_one_another_are_read_to_the_bound() -> None:
    schema: Any = "int"
    value: Any = 7
    for _ in range(64):
        schema, value = {"type": "array", "items": ["null", schema]}, [value]
    kind = parse_avro_schema(json.dumps(schema))
    assert plain(compile_reader(kind, AsWire(wire_of(kind)))(b"\x02\x02" * 64 + b"\x0e" + b"\0" * 64, 0)) == value
