"""Keys that are read without a parser are read as a parser reads them, and all others are left to it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from distributary.decode.plain_keys import plain_key
from distributary.decoding.renames import Renames
from distributary.decode.shapes import Shape, Signature
from distributary.decode.types import STRING, Codec, cast, decimal

NUMBERS = ["0", "7", "-7", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-0", "07", "+7", "7.",
           "7.0", "7e0", " 7", "7 ", '"7"', "null", "true", "", "7,", '7,"a":1', "7}", "1_0", "\u0663", "0x1",
           "7L"]  # fmt: skip
TEXTS = ["", "a", "ä", "🎉", "a b", " ", "{}", "}", "a,b", "'", "null", "7", "\\\\", "\\n", "\\u0041", '\\"', '"',
         '","id":"b', "\n", "\x00", "\x1f", "\x7f", "a\\", "\t"]  # fmt: skip


def read(session: SparkSession, texts: list[str], codec: Codec, name: str = "id") -> list[str | None]:
    plain = plain_key("k", Shape(Signature(None, None), {name: codec}, {}))
    assert plain is not None
    rows = session.createDataFrame(pa.table({"k": texts})).selectExpr("k", f"{plain} AS plain").collect()
    return [row["plain"] for row in rows]


def parsed(text: str) -> Any:
    """What the text says as JSON; Ellipsis for what is none, or says more than one thing."""

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


def test_what_is_read_of_a_whole_number_is_what_a_parser_reads(session: SparkSession) -> None:
    texts = list(mutated([f'{{"id":{number}}}' for number in NUMBERS]))
    for kind in ("smallint", "bigint"):
        for text, plain in zip(texts, read(session, texts, cast(kind)), strict=True):
            if plain is not None:
                assert parsed(text) == {"id": int(plain)}, text
                assert text == f'{{"id":{int(plain)}}}'


def test_what_is_read_of_a_text_is_what_a_parser_reads(session: SparkSession) -> None:
    texts = list(mutated([f'{{"id":"{text}"}}' for text in TEXTS]))
    for text, plain in zip(texts, read(session, texts, STRING), strict=True):
        if plain is not None:
            assert parsed(text) == {"id": plain}, text


@pytest.mark.parametrize(("codec", "value", "plain"), [
    (cast("bigint"), "-42", "-42"), (cast("int"), "99999999999", "99999999999"), (STRING, '"a ä 🎉 {}"', "a ä 🎉 {}"),
    (STRING, '""', ""),
])  # fmt: skip
def test_the_usual_ones_need_no_parser(session: SparkSession, codec: Codec, value: str, plain: str) -> None:
    assert read(session, [f'{{"id":{value}}}'], codec) == [plain]


def test_the_field_is_the_sources(session: SparkSession) -> None:
    shape = Shape(Signature(None, None), {"no": cast("int")}, {}, renames=Renames({"nr.": "no"}))
    expression = plain_key("k", shape)
    texts = pa.table({"k": ['{"nr.":5}', '{"no":5}']})
    assert [row[0] for row in session.createDataFrame(texts).selectExpr(str(expression)).collect()] == ["5", None]


def test_others_are_parsed() -> None:
    def of(**key: Codec) -> str | None:
        return plain_key("k", Shape(Signature(None, None), key, {}))

    assert of(a=cast("int"), b=cast("int")) is None
    assert of(a=decimal(10, 2)) is None
    assert of(**{'a"b': STRING}) is None
    assert of(**{"a\\": cast("int")}) is None
    assert of() is None
