"""Splitting keys and values into schema and payload, in JsonConverter's and in other spellings."""

from __future__ import annotations

import pytest
from tests.support.decoding import SQLSERVER_SOURCE, compact, made_records, rejections, struct_schema

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.decode.wrapping import is_null, unwrap
from distributary.types.bounds import Bounds
from distributary.types.record_schema import RecordSchema

SCHEMA = compact(
    {
        "type": "struct",
        "fields": [
            struct_schema({"id": {"type": "int32"}, 'ä,"payload":{': {"type": "string"}}, field="after"),
            struct_schema({"connector": {"type": "string"}}, field="source"),
            {"type": "string", "field": "op"},
        ],
    }
)
KEY_SCHEMA = compact(struct_schema({"id": {"type": "int32"}}))
PAYLOAD = compact({"op": "c", "after": {"id": 1, 'ä,"payload":{': "ä"}, "source": SQLSERVER_SOURCE})
KEY = f'{{"schema":{KEY_SCHEMA},"payload":{{"id":1}}}}'
NULL_SCHEMA = '{"schema":null,"payload":null}'
VALUES: dict[str, tuple[str | bytes | None, str]] = {
    "as JsonConverter writes it": (f'{{"schema":{SCHEMA},"payload":{PAYLOAD}}}', "c"),
    "with blanks": (f'{{"schema": {SCHEMA}, "payload": {PAYLOAD}}}', "c"),
    "the other way round": (f'{{"payload":{PAYLOAD},"schema":{SCHEMA}}}', "c"),
    "without a schema": (PAYLOAD, "c"),
    "with a null schema": (f'{{"schema":null,"payload":{PAYLOAD}}}', "c"),
    "null": (f'{{"schema":{SCHEMA},"payload":null}}', "x"),
    "null with blanks": (f'{{"schema":{SCHEMA},"payload": null }}', "x"),
    "JSON's null": ("null", "x"),
    "JSON's null with blanks": (" null\n", "x"),
    "null with a null schema": (NULL_SCHEMA, "x"),
    "tombstone": (None, "x"),
    "nothing": (f'{{"schema":{SCHEMA},"payload":}}', "not-json"),
    "blank": (f'{{"schema":{SCHEMA},"payload":  }}', "not-json"),
    "cut off": (f'{{"schema":{SCHEMA},"payload":{PAYLOAD[:-30]}', "not-json"),
    "schema alone": (f'{{"schema":{SCHEMA},"payload":', "not-json"),
    "schema cut off": (f'{{"schema":{SCHEMA[:-5]}', "not-json"),
    "no text": (f'{{"schema":{SCHEMA},"payload":{{"op":"'.encode() + b'\xff"}}', "not-utf8"),
    "another schema": ('{"schema":{"type":"struct","fields":[]},"payload":{"op":"u"}}', "bad-schema"),
    "no schema at all": ('{"schema":{},"payload":{"op":"u"}}', "bad-schema"),
    "schema and payload in a row": ('{"op":"c","after":{"schema":"s","payload":"p"}}', "no-position"),
    "no JSON": ("no JSON", "not-json"),
    "empty": ("", "not-json"),
    "blanks alone": ("  ", "not-json"),
}


def decoded(key: str | bytes | None, value: str | bytes | None) -> Decoded:
    """The record behind one as JsonConverter writes it, whose schema the reader knows by its bytes."""
    usual = (KEY.encode(), f'{{"schema":{SCHEMA},"payload":{PAYLOAD}}}'.encode())
    as_bytes = (part.encode() if isinstance(part, str) else part for part in (key, value))
    raw = made_records([usual, (next(as_bytes), next(as_bytes))])
    return Decoder(DecodeOptions("sqlserver")).decode(raw, RecordSchema({"id": "int"}, {"id": "int"}))


@pytest.mark.parametrize("name", VALUES)
def test_each_spelling_of_a_value_says_what_it_says(name: str) -> None:
    """Only a null is a tombstone: all else that is no change is rejected."""
    value, expected = VALUES[name]
    found = decoded(KEY, value)
    if len(expected) > 1:
        assert rejections(found) == {1: expected}
    else:
        assert rejections(found) == {}
        event = found.events.to_pylist()[1]
        assert (event["operation"], event["key"]) == (expected, {"id": 1})
        assert event["row"] == (None if expected == "x" else {"id": 1})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (KEY, None),
        ('{"id":1}', None),
        (KEY.replace("int32", "int64"), None),
        (KEY.replace('"schema":', '"schema" : '), None),
        (None, "no-key"),
        ("null", "no-key"),
        (NULL_SCHEMA, "no-key"),
        (f'{{"schema":{KEY_SCHEMA},"payload":null}}', "no-key"),
        ("no JSON", "bad-key"),
        (f'{{"schema":{KEY_SCHEMA}', "bad-key"),
        (f'{{"schema":{KEY_SCHEMA},"payload":"1"}}', "bad-key"),
        (b"\xff", "not-utf8"),
    ],
)
def test_each_spelling_of_a_key_says_what_it_says(key: str | bytes | None, expected: str | None) -> None:
    found = decoded(key, PAYLOAD)
    assert rejections(found) == ({} if expected is None else {1: expected})
    if expected is None:
        assert found.events["key"].to_pylist() == [{"id": 1}] * 2


def test_a_value_is_cut_where_its_schema_ends_and_nowhere_else() -> None:
    """The bytes of a cut may stand in the schema's texts, too."""
    inside = '{"doc":"{\\"schema\\":1,\\"payload\\":2}"}'
    for schema in (SCHEMA, inside):
        found = unwrap(f'{{"schema":{schema},"payload":{PAYLOAD}}}'.encode(), Bounds())
        assert found.schema == schema.encode()
        assert found.payload == PAYLOAD.encode()
        assert found.begin == f'{{"schema":{schema},"payload":'.encode()


def test_a_row_with_columns_called_schema_and_payload_is_no_wrapping() -> None:
    for text in ('{"schema":"s","payload":"p"}', '{"schema":1,"payload":{}}'):
        assert unwrap(text.encode(), Bounds()).payload == text.encode()


@pytest.mark.parametrize("text", ["null", " null ", "\tnull\r\n"])
def test_null_is_known_with_blanks_around_it(text: str) -> None:
    assert is_null(text.encode())
    assert not is_null(b'"' + text.encode() + b'"')
