"""The types that `columns` takes."""

from __future__ import annotations

import pytest

from distributary.config.column_types import SEMANTIC_NAMES, WIRE_UNITS, nearest, parse
from distributary.reference.types import NOTES
from distributary.types.base import DATA
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name
from distributary.types.from_schema import DECIMAL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tinyint", "tinyint"),
        ("BYTE", "tinyint"),
        ("short", "smallint"),
        ("Integer", "int"),
        ("long", "bigint"),
        ("real", "float"),
        ("double", "double"),
        ("boolean", "boolean"),
        ("string", "string"),
        ("binary", "binary"),
        ("date", "date"),
        ("timestamp", "timestamp"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
        ("variant", "variant"),
        ("decimal", "decimal(10,0)"),
        ("decimal(5)", "decimal(5,0)"),
        (" DECIMAL ( 38 , 38 ) ", "decimal(38,38)"),
        ("array<int>", "array<int>"),
        ("ARRAY< ARRAY<decimal(3,1)> >", "array<array<decimal(3,1)>>"),
        ("map<string, array<long>>", "map<string,array<bigint>>"),
        ("struct<a: int, B string>", "struct<a:int,B:string>"),
        ("struct<`a b`:int,`c``d`: map<string,int>>", "struct<`a b`:int,`c``d`:map<string,int>>"),
        ("struct<`a.b`: time_us>", "struct<`a.b`:time_us>"),
        ("array<TIMESTAMP_US>", "array<timestamp_us>"),
        ("org.apache.kafka.connect.data.Decimal( 60, 20 )", "org.apache.kafka.connect.data.Decimal(60,20)"),
        ("struct<array: array<int>>", "struct<array:array<int>>"),
    ],
)
def test_types_come_in_one_spelling(text: str, expected: str) -> None:
    assert parse(text) == expected
    assert parse(expected) == expected


@pytest.mark.parametrize("text", WIRE_UNITS)
def test_units_of_bare_numbers(text: str) -> None:
    assert parse(text.upper()) == text


def test_all_documented_names_are_taken() -> None:
    """Those that need no parameter."""
    documented = {one.name for found in NOTES for one in found.types if one.name is not None}
    assert documented - set(SEMANTIC_NAMES) <= {DECIMAL, f"{DATA}.SparseDoubleVector"}
    assert "io.debezium.time.Interval" in documented


@pytest.mark.parametrize("text", SEMANTIC_NAMES)
def test_semantic_names_are_taken_as_they_are(text: str) -> None:
    assert parse(text) == text
    assert type_of_name(text, {}, Bounds()).spark  # and can be read
    assert parse(f" array< {text} >") == f"array<{text}>"
    with pytest.raises(ValueError, match="semantic name"):
        parse(text + "s")


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "integr", "int int", "int,", "int>", "`int`", "int(3)", "12"),
        *(
            "decimal()",
            "decimal(0)",
            "decimal(39)",
            "decimal(3,4)",
            "decimal(3,1,1)",
            "decimal(x)",
            "decimal(3",
            "decimal(-1)",
        ),
        *("array", "array<>", "array<int", "array<int,int>", "array(int)"),
        *("map<int>", "map<int,int", "map<map<int,int>,int>", "map<variant,int>", "map<int,int>"),
        *(
            "struct",
            "struct<>",
            "struct<a>",
            "struct<a:int,>",
            "struct<a:int b:int>",
            "struct<a:int,A:int>",
            "struct<:int>",
            "struct<a.b:int>",
        ),
        *("string; drop table x", "int -- x", "org.apache.kafka.connect.data.Decimal", "io.debezium.time.date"),
        *("org.apache.kafka.connect.data.Decimal(60", "array<io.debezium.time.date>", "io.debezium.time.Date(3)"),
        *("timestamp_s", "interval", "void", "null"),
    ],
)
def test_everything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(text)
    assert "drop" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("varchar(20)", "string"),
        ("integr", "integer"),
        ("datetime", "timestamp_ntz"),
        ("timestamp_mss", "timestamp_ms"),
    ],
)
def test_the_nearest_type(text: str, expected: str) -> None:
    assert nearest(text) == expected


def test_there_is_no_nearest_type_to_nonsense() -> None:
    assert nearest("xyzzy") is None
    assert nearest("array<int") is None
