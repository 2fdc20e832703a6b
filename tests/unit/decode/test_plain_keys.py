"""Keys without a schema are read like by a JSON parser, or rejected."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.decoding import SQLSERVER_SOURCE, compact, made_records, rejections

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.types.record_schema import RecordSchema

VALUE = compact({"op": "c", "after": {"v": 1}, "source": SQLSERVER_SOURCE}).encode()
NUMBERS = (
    *("0", "7", "-7", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-0", "07", "+7", "7."),
    *("7.0", "7e0", " 7", "7 ", '"7"', "null", "true", "", "7,", '7,"a":1', "7}", "1_0", "\u0663", "0x1", "7L"),
)
TEXTS = (
    *("", "a", "ä", "🎉", "a b", " ", "{}", "}", "a,b", "'", "null", "7", "\\\\", "\\n", "\\u0041", '\\"', '"'),
    *('","id":"b', "\n", "\x00", "\x1f", "\x7f", "a\\", "\t"),
)


def read_keys(texts: list[str], kind: str, **renames: str) -> list[Any]:
    """What each key's column holds; Ellipsis where the record is rejected."""
    raw = made_records([(text.encode(), VALUE) for text in texts])
    options = DecodeOptions("sqlserver", renames=renames)
    decoded = Decoder(options).decode(raw, RecordSchema({"v": "int"}, {renames.get("id", "id"): kind}))
    keys = dict(zip(decoded.events["offset"].to_pylist(), decoded.events["key"].to_pylist(), strict=True))
    assert len(keys) + len(rejections(decoded)) == len(texts)
    return [next(iter(keys[index].values())) if index in keys else ... for index in range(len(texts))]


def parsed(text: str) -> Any:
    """The text parsed as JSON; Ellipsis if it is no JSON, or ambiguous."""

    def pairs(found: list[tuple[str, Any]]) -> Any:
        return dict(found) if len(dict(found)) == len(found) else ...

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except ValueError:
        return ...


def mutated(texts: list[str]) -> Iterator[str]:
    some = random.Random(5)
    for text in texts:
        yield text
        for _ in range(60):
            at = some.randrange(len(text) + 1)
            yield text[:at] + some.choice('{}":,\\ 0-7a\n') + text[at + some.randrange(2) :]


@pytest.mark.parametrize("kind", ["smallint", "bigint"])
def test_what_is_read_of_a_whole_number_is_what_a_parser_reads(kind: str) -> None:
    texts = list(mutated([f'{{"id":{number}}}' for number in NUMBERS]))
    found = read_keys(texts, kind)
    for text, value in zip(texts, found, strict=True):
        if value is not ...:
            result = parsed(text)
            assert isinstance(result, dict), text
            assert (int(result["id"]), type(result["id"])) in ((value, int), (value, str)), text
    assert sum(value is not ... for value in found) > 50


def test_what_is_read_of_a_text_is_what_a_parser_reads() -> None:
    texts = list(mutated([f'{{"id":"{text}"}}' for text in TEXTS]))
    found = read_keys(texts, "string")
    for text, value in zip(texts, found, strict=True):
        if value is not ...:
            result = parsed(text)
            assert isinstance(result, dict), text
            assert str(result["id"]) == value, text
    assert sum(value is not ... for value in found) > 50


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("bigint", "-42", -42), ("int", "99999999999", ...), ("string", '"a ä 🎉 {}"', "a ä 🎉 {}"), ("string", '""', "")],
)
def test_a_key_is_read_by_its_columns_type(kind: str, text: str, value: Any) -> None:
    assert read_keys([f'{{"id":{text}}}'], kind) == [value]


def test_the_field_is_the_sources() -> None:
    assert read_keys(['{"id":5}', '{"no":6}'], "int", id="no") == [5, 6]


@pytest.mark.parametrize("name", ['a"b', "a\\", "ä", "a b", "a:b", "{", ""])
def test_a_key_columns_name_may_be_any_text(name: str) -> None:
    decoder = Decoder(DecodeOptions("sqlserver"))
    keys = [compact({name: 5}), compact({name: 6, "other": None})]
    raw = made_records([(key.encode(), VALUE) for key in keys])
    found = decoder.decode(raw, RecordSchema({"v": "int"}, {name: "int"}))
    assert found.events["key"].to_pylist() == [{name: 5}, {name: 6}]


KEYS = (
    *('{"a":1,"b":"x"}', '{"b":"y","a":2}', '{"a":3}', '{"b":"z"}', '{"a":4,"b":"m:n"}', '{"a":null,"b":"x"}', "{}"),
    *('{"a":5,"b":"x","a":6}', '{"a":7,"b":"x","c":1}', '{"a":"8","b":"x"}', '{"a":9,"b":{}}', "null", "", "7", '"a"'),
    *('{"schema":null,"payload":{"a":10,"b":"x"}}', '{"schema":{},"payload":{"a":11,"b":"x"}}', ' {"a":12,"b":"x"} '),
    *(
        '{"payload":13}',
        '{"payload":{"a":14,"b":"x"},"schema":null}',
        '{"schema":"s","payload":"p"}',
        '{"a":15,"b":"x"',
    ),
)


def keys_or_reasons(keys: Sequence[str | None]) -> list[Any]:
    """Of each key its columns, or the reason why its record is rejected."""
    schema = RecordSchema({"v": "int"}, {"a": "bigint", "b": "string", "schema": "string", "payload": "string"})
    raw = made_records([(None if key is None else key.encode(), VALUE) for key in keys])
    decoded = Decoder(DecodeOptions("sqlserver")).decode(raw, schema)
    read = dict(zip(decoded.events["offset"].to_pylist(), decoded.events["key"].to_pylist(), strict=True))
    return [read.get(index, rejections(decoded).get(index)) for index in range(len(keys))]


@pytest.fixture(scope="module")
def alone() -> dict[str | None, Any]:
    """What each key by itself is read as."""
    return {key: keys_or_reasons([key])[0] for key in (None, *KEYS)}


@pytest.mark.thorough
@given(keys=st.lists(st.none() | st.sampled_from(KEYS), min_size=1, max_size=12))
def test_each_key_is_read_as_it_is_alone(keys: list[str | None], alone: dict[str | None, Any]) -> None:
    assert keys_or_reasons(keys) == [alone[key] for key in keys]
