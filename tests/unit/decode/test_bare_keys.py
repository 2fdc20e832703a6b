"""Keys that are no objects, and tables of which some records have a key and others none."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.changes import Row, Topic, key, row
from tests.support.decoding import plain_change, raw_table, rejections, struct_rows
from tests.support.learning import learn
from tests.support.recorded import Record

from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema, parse_avro_schema
from distributary.decode.bare_key import bare_key
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import BareKey, DecodeOptions
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import Unwrapped, added_by
from distributary.types.bounds import Bounds
from distributary.types.record_schema import RecordSchema

SCHEMA = RecordSchema({"id": "bigint", "v": "string"}, {"id": "bigint"})


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("3", "3"),
        ('"a\\"b"', '"a\\"b"'),
        ('{"schema":{"type":"int32","optional":false},"payload":3}', "3"),
        ("Struct{id=3}", '"3"'),
        ("Struct{id=a=b}c}", '"a=b}c"'),
        ("order 7", '"order 7"'),
        ("Struct{other=3}", None),
        ("Struct{id=3,at=4}x", None),
        ('{"id":3}', None),
        ("[3]", None),
        ("null", None),
        ('{"schema":null,"payload":null}', None),
        ("\x00\x00\x00\x00\x01\x06", None),
        ('{"id":', None),
    ],
)
def test_1_6_a_bare_key_is_the_value_of_its_column(data: str, found: str | None) -> None:
    assert bare_key(data.encode(), "id", Bounds()) == found


def of_bytes(offset: int, key: str | None, value: Row | None) -> Record:
    data = None if value is None else json.dumps(value).encode()
    return Record("t", 0, offset, 1_700_000_000_000 + offset, None if key is None else key.encode(), data, ())


def rows_by(options: DecodeOptions, records: list[Record]) -> Decoded:
    return Decoder(options).decode(raw_table(records), SCHEMA)


def events_of(decoded: Decoded) -> list[tuple[Any, ...]]:
    keys = struct_rows(decoded.events["key"])
    operations = decoded.events["operation"].to_pylist()
    return list(zip(decoded.events["offset"].to_pylist(), operations, keys, strict=True))


@pytest.mark.parametrize("text", ["{}", "Struct{{id={}}}", '{{"schema":{{"type":"int64"}},"payload":{}}}'])
def test_3_3_a_tombstone_with_a_bare_key_deletes_its_row(text: str) -> None:
    rows = [of_bytes(n, text.format(n), row(n, "a")) for n in (1, 2)]
    records = [*rows, of_bytes(3, text.format(2), None), of_bytes(4, None, None)]
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id"), unwrapped=Unwrapped({}))
    decoded = rows_by(options, records)
    assert events_of(decoded)[:3] == [(1, "u", {"id": 1}), (2, "u", {"id": 2}), (3, "d", {"id": 2})]
    assert rejections(decoded) == {}
    # Of envelopes too: a compacted topic may have nothing but the tombstone.
    changes = [plain_change(n, row(n, "a")) for n in (1, 2)]
    options = DecodeOptions("sqlserver", key_from_row=("id",), bare_key=BareKey("id"))
    decoded = rows_by(options, [*changes, of_bytes(3, text.format(2), None)])
    assert events_of(decoded)[2] == (3, "x", {"id": 2})
    assert rejections(decoded) == {}


def test_3_8_keys_that_the_rows_stand_for_are_no_columns_of_the_table() -> None:
    """A key of another form in one record does not change the table's key."""
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), unwrapped=Unwrapped({}))
    records = [of_bytes(1, None, row(1, "a")), of_bytes(2, '{"x":1}', row(2, "b"))]
    decoded = rows_by(options, records)
    assert [key for _, _, key in events_of(decoded)] == [{"id": 1}, {"id": 2}]
    assert not [one for one in decoded.observed if one.is_key]


def test_6_3_a_delete_of_which_nothing_tells_the_row_is_rejected_and_not_lost() -> None:
    records = [of_bytes(1, "[1]", row(1, "a")), of_bytes(2, "[1]", None), of_bytes(3, None, None)]
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), unwrapped=Unwrapped({}))
    decoded = rows_by(options, records)
    assert rejections(decoded) == {2: "no-key-columns"}
    assert [op for _, op, _ in events_of(decoded)] == ["u", "m"]
    # Where deletes are rows of their own, the null behind one adds nothing.
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), unwrapped=Unwrapped({}, has_delete_rows=True))
    assert rejections(rows_by(options, records)) == {}
    # A value that the column can't have names no row.
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id"), unwrapped=Unwrapped({}))
    assert rejections(rows_by(options, [of_bytes(1, "order 7", None)])) == {1: "no-key-columns"}


@pytest.mark.parametrize("form", ["envelope", "row"])
def test_3_8_rows_stand_for_the_keys_of_those_records_alone_that_have_none(form: str) -> None:
    topic = Topic("t", "postgresql")
    topic.change("c", None, row(1, "a"), at=1)
    topic.change("u", None, row(3, "moved"), at=2, before=row(2, "b"))
    topic.change("d", None, at=3, before=row(1, "a"))
    topic.change("c", key(4), row(4, "d"), at=4)
    topic.change("d", key(3), at=5)
    topic.tombstone(key(3))
    topic.change("c", None, row(5, "e"), at=6)
    topic.add(None, None)
    records = [Record("t", 0, n, 1_700_000_000_000, one.key, one.value, ()) for n, one in enumerate(topic.records)]
    options = DecodeOptions("postgresql", key_from_rows_without_key=("id",))
    expected = [
        (0, "c", {"id": 1}),
        (1, "d", {"id": 2}),
        (1, "c", {"id": 3}),
        (2, "d", {"id": 1}),
        (3, "c", {"id": 4}),
        (4, "d", {"id": 3}),
        (5, "x", {"id": 3}),
        (6, "c", {"id": 5}),
    ]
    if form == "row":
        values = ((None, row(1, "a")), (key(2), row(2, "b")), (key(2), None), (None, row(3, "c")))
        texts = [(None if one is None else json.dumps(one), value) for one, value in values]
        records = [of_bytes(n, text, value) for n, (text, value) in enumerate(texts)]
        options = DecodeOptions(BY_OFFSET, key_from_rows_without_key=("id",), unwrapped=added_by({}))
        expected = [(0, "u", {"id": 1}), (1, "u", {"id": 2}), (2, "d", {"id": 2}), (3, "u", {"id": 3})]
    decoded = rows_by(options, records)
    assert rejections(decoded) == {}
    assert [one for one in events_of(decoded) if one[1] != "m"] == expected
    # However they come, each record is decoded as by itself.
    for record in records:
        alone = rows_by(options, [record])
        assert events_of(alone) == [one for one in events_of(decoded) if one[0] == record.offset]


def test_3_8_a_delete_in_a_table_without_a_key_has_at_least_what_its_key_tells() -> None:
    topic = Topic("t", "mysql")
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("d", key(1), at=2)
    topic.change("d", key(2), at=3, before=row(2, "b"))
    topic.change("d", None, at=4)
    records = [Record("t", 0, n, 1_700_000_000_000, one.key, one.value, ()) for n, one in enumerate(topic.records)]
    options = DecodeOptions("mysql", keyless=True, before=True)
    decoded = Decoder(options).decode(raw_table(records), RecordSchema(SCHEMA.row))
    assert rejections(decoded) == {}
    assert struct_rows(decoded.events["before"]) == [None, row(1, None), row(2, "b"), None]
    assert struct_rows(decoded.events["row"]) == [row(1, "a"), None, None, None]


MICROSECONDS = 3_600_000_000
BASE64 = base64.b64encode(b"\x00\x7b").decode()
TYPES_AS_TEXT: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "time": ({"type": "int32", "name": "io.debezium.time.Time"}, 3_600_000, "01:00:00.000"),
    "microtime": ({"type": "int64", "name": "io.debezium.time.MicroTime"}, MICROSECONDS, "01:00:00.000000"),
    "nanotime": ({"type": "int64", "name": "io.debezium.time.NanoTime"}, 1, "00:00:00.000000001"),
    "connect-time": ({"type": "int32", "name": "org.apache.kafka.connect.data.Time"}, 1, "00:00:00.001"),
    "large-decimal": (
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "-40"}},
        BASE64,
        f"123{'0' * 40}",
    ),
    "timestamp": ({"type": "int64", "name": "io.debezium.time.Timestamp"}, 1, 1_000),
    "microtimestamp": ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, 1, 1),
    "text": ({"type": "string"}, BASE64, BASE64),
    "number": ({"type": "int32"}, 7, 7),
}


@pytest.mark.parametrize("key_has_schema", [False, True])
@pytest.mark.parametrize("form", ["row", "envelope"])
@pytest.mark.parametrize(("schema", "sent", "stored"), TYPES_AS_TEXT.values(), ids=TYPES_AS_TEXT)
def test_3_3_a_bare_key_names_the_row_whose_column_has_another_form_than_its_value(
    schema: dict[str, Any], sent: Any, stored: Any, form: str, *, key_has_schema: bool
) -> None:
    key_text = json.dumps({"schema": schema, "payload": sent} if key_has_schema else sent)
    fields = [{"field": "id", **schema}, {"field": "v", "type": "string", "optional": True}]
    struct, row_sent = {"type": "struct", "fields": fields}, {"id": sent, "v": "a"}
    options = DecodeOptions(
        BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id", json.dumps(schema)), unwrapped=Unwrapped({})
    )
    value: Row = {"schema": struct, "payload": row_sent}
    if form == "envelope":
        options = replace(options, connector="sqlserver", unwrapped=None)
        [made] = [plain_change(1, row_sent)]
        envelope = {"type": "struct", "fields": [{"field": "after", **struct}]}
        value = {"schema": envelope, "payload": json.loads(made.value or b"")}
    raw = raw_table([of_bytes(1, key_text, value), of_bytes(2, key_text, None)])
    decoder = Decoder(options)
    known = learn(decoder, raw)
    decoded = decoder.decode(raw, known)
    assert rejections(decoded) == {}
    assert [key for _, _, key in events_of(decoded)] == [{"id": stored}] * 2
    # The key alone shows no columns, and is read alike without the row.
    alone = Decoder(options).decode(raw.slice(1), known)
    assert [key for _, _, key in events_of(alone)] == [{"id": stored}]
    assert alone.observed == ()


def test_a_bare_key_shows_no_type_of_its_column() -> None:
    records = [of_bytes(1, "Struct{id=1}", row(1, "a")), of_bytes(2, "Struct{id=1}", None)]
    decoder = Decoder(DecodeOptions(BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id"), unwrapped=Unwrapped({})))
    for some in (records, records[::-1]):
        raw = raw_table(some)
        known = learn(decoder, raw)
        assert known.row["id"] == "bigint"
        assert rejections(decoder.decode(raw, known)) == {}


LONG, TEXT = (bytes((0, 0, 0, 0, number)) for number in (7, 8))
APICURIO = (("apicurio.key.globalId", bytes(8)),)


@pytest.mark.parametrize(
    ("data", "headers", "deleted"),
    [
        (LONG + b"\x04", (), 2),
        (TEXT + b"\x022", (), 2),
        (b"2", (), 2),  # StringConverter, or JsonConverter without schema
        (b'{"schema":{"type":"int64"},"payload":2}', (), 2),
        (LONG + b"\x04\x04", (), None),  # bytes behind the value
        (bytes((0, 0, 0, 0, 10, 4)), (), None),  # an unknown schema
        (b"2", APICURIO, None),  # Avro: the number 25
        (b"\x03\x00" + bytes(16) + b"\x04", (), None),  # Glue
    ],
)
def test_3_3_a_bare_key_in_avro_deletes_its_row(
    data: bytes, headers: tuple[tuple[str, bytes], ...], deleted: int | None
) -> None:
    avro: dict[str, AvroSchema | NotAnAvroSchema] = {
        "7": parse_avro_schema('"long"'),
        "8": parse_avro_schema('"string"'),
    }
    options = DecodeOptions(BY_OFFSET, key_from_row=("id",), bare_key=BareKey("id"), unwrapped=Unwrapped({}), avro=avro)
    rows = [of_bytes(n, None, row(n, "a")) for n in (1, 2)]
    tombstone = Record("t", 0, 3, 1_700_000_000_000, data, None, headers)
    decoder = Decoder(options)
    decoded = decoder.decode(raw_table([*rows, tombstone]), SCHEMA)
    assert events_of(decoded)[2:] == ([] if deleted is None else [(3, "d", {"id": deleted})])
    assert rejections(decoded) == ({3: "no-key-columns"} if deleted is None else {})
    assert decoded.unknown_schemas == ({"10"} if data[4:5] == b"\x0a" else set())
