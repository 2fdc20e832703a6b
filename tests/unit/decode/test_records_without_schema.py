"""Records without a schema: columns come from field names, types from the config, the table or the values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.decoding import SQLSERVER_SOURCE, decode_all, made_records, plain_change, rejections
from tests.support.learning import unread_columns

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, FilledTable, TypeSources
from distributary.types.record_schema import RecordSchema

RENAMED = {"full_name": "name"}


def decoded_rows(*rows: dict[str, Any], **more: Any) -> tuple[Decoded, dict[str, str]]:
    """The rows, each a record, and the columns that they have."""
    records = [plain_change(offset, row) for offset, row in enumerate(rows)]
    decoded, schema = decode_all(records, DecodeOptions("sqlserver", **more))
    return decoded, dict(schema.row)


def rows_of(decoded: Decoded) -> list[dict[str, Any]]:
    """The rows without what is null in them."""
    return [
        {name: value for name, value in row.items() if value is not None} for row in decoded.events["row"].to_pylist()
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *(([number], "bigint") for number in (0, -7, 10**18, 2**63 - 1, -(2**63))),
        *(([number], "string") for number in (2**63, -(2**63) - 1, 10**19, 2**64 - 1, 10**38, 10**40)),
        *(([number], "double") for number in (1.0, 1.5, 1e-7, 1e20)),
        *(([1, 1.5], "double"), ([1.5, 1], "double"), ([1, 2**63], "string"), ([1, 1.5, 2**63], "string")),
        *(([True], "boolean"), ([True, 1], "string"), (["a"], "string"), ([0, ""], "string"), ([[1]], "string")),
        ([None, 5], "bigint"),
    ],
)
def test_values_show_a_type_that_holds_all_of_them(values: list[Any], kind: str) -> None:
    """A whole number that bigint can't hold is text: a double would make one number of several."""
    decoded, columns = decoded_rows(*({"c": value, f"other{index}": None} for index, value in enumerate(values)))
    assert columns == {"c": kind}
    assert not decoded.rejected.num_rows
    assert not unread_columns(decoded, columns)


def test_a_column_that_no_value_shows_has_no_type() -> None:
    decoded, columns = decoded_rows({"id": 1, "c": None})
    assert columns == {"id": "bigint"}
    assert not decoded.rejected.num_rows


def test_fields_of_all_records_are_columns() -> None:
    decoded, columns = decoded_rows({"id": 1, "a": 1}, {"id": 2}, {"id": 3, "b": "x"})
    assert columns == {"id": "bigint", "a": "bigint", "b": "string"}
    assert rows_of(decoded) == [{"id": 1, "a": 1}, {"id": 2}, {"id": 3, "b": "x"}]


@pytest.mark.parametrize("turned", [False, True])
def test_5_1_records_from_before_and_after_a_column_was_renamed_are_one_column(turned: bool) -> None:
    before, after = {"id": 1, "name": "a"}, {"id": 2, "full_name": "b"}
    rows: list[dict[str, Any]] = [after, before] if turned else [before, after, {"id": 3}]
    decoded, columns = decoded_rows(*rows, renames=RENAMED)
    assert columns == {"id": "bigint", "name": "string"}
    assert rows_of(decoded) == [{"name" if name == "full_name" else name: v for name, v in row.items()} for row in rows]
    assert not unread_columns(decoded, columns)


def test_a_name_that_no_record_has_is_not_met() -> None:
    decoded, columns = decoded_rows({"id": 1, "name": "a"}, renames=RENAMED)
    assert columns == {"id": "bigint", "name": "string"}
    assert {name for columns in decoded.observed for name in columns.names} == {"id", "name"}
    assert {source: lake for columns in decoded.observed for source, lake in columns.renames.items()} == {}


def test_a_renamed_column_that_is_left_out_leaves_its_name_to_another() -> None:
    row = {"id": 1, "name": "a", "full_name": "b"}
    decoded, columns = decoded_rows(row, renames=RENAMED, exclude=frozenset(("full_name",)))
    assert columns == {"id": "bigint", "name": "string"}
    assert rows_of(decoded) == [{"id": 1, "name": "a"}]
    assert [columns.types["name"] for columns in decoded.observed if "name" in columns.types] == ["string"]


def test_both_names_of_a_renamed_column_are_read_as_each_is_typed() -> None:
    types = TypeSources(configured={"at": "timestamp_ms", "created": "timestamp_us"})
    decoded, columns = decoded_rows({"created": 1_000}, {"at": 2}, types=types, renames={"at": "created"})
    assert columns == {"created": "timestamp_ntz"}
    assert [row["created"].isoformat()[17:] for row in rows_of(decoded)] == ["00.001000", "00.002000"]


def test_a_record_that_has_both_names_of_a_column_halts_the_table() -> None:
    decoded, _ = decoded_rows({"id": 1, "name": "a"}, {"id": 2, "name": "a", "full_name": "b"}, renames=RENAMED)
    assert rejections(decoded) == {1: "needs-decision"}
    assert decoded.conflict is not None
    assert decoded.conflict.code == "rename-taken"


@pytest.mark.parametrize("renames", [{}, RENAMED])
def test_a_column_that_is_left_out_clashes_with_none(renames: dict[str, str]) -> None:
    row = {"id": 1, "name": "a", "full_name": "b", "Name": "c"}
    decoded, columns = decoded_rows(row, renames=renames, exclude=frozenset(("name", "Name")))
    assert columns == {"id": "bigint", "name" if renames else "full_name": "string"}
    assert decoded.conflict is None


def test_of_columns_that_differ_in_case_only_the_first_is_added() -> None:
    filled = FilledTable(("id",), frozenset())
    two = {"id": 1, "Name": "a"}, {"id": 2, "full_name": "b"}
    decoded, columns = decoded_rows(*two, renames=RENAMED, filled=filled)
    assert list(columns) == ["id", "Name"]
    assert rows_of(decoded) == [{"id": 1, "Name": "a"}]
    assert rejections(decoded) == {1: "needs-decision"}


def test_records_under_another_name_are_masked_as_that_name_is_and_tell_it() -> None:
    masks = Masks({"full_name": "redact"})
    decoded, _ = decoded_rows({"id": 1, "name": "a"}, masks=masks, renames=RENAMED)
    assert [columns.marks["name"] for columns in decoded.observed if "name" in columns.marks] == [None]
    decoded, _ = decoded_rows({"id": 1, "name": "a"}, {"id": 2, "full_name": "b"}, masks=masks, renames=RENAMED)
    assert [columns.marks["name"] for columns in decoded.observed if "name" in columns.marks] == [
        "redact",
        None,
    ]


def test_keys_have_the_lakes_names_under_either_name_of_the_source() -> None:
    records = [plain_change(1, {"id": 1}, {"nr": 1}), plain_change(2, {"id": 2}, {"number": 2})]
    decoded, schema = decode_all(records, DecodeOptions("sqlserver", renames={"nr": "number"}))
    assert schema.key == {"number": "bigint"}
    assert decoded.events["key"].to_pylist() == [{"number": 1}, {"number": 2}]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"masks": Masks({"id": "redact"})}, "key-redacted"),
        ({"exclude": frozenset(("id",))}, "key-excluded"),
        ({"renames": {"part": "id"}}, "rename-taken"),
        ({"renames": {"part": "ID"}}, "columns-differ-in-case"),
    ],
)
def test_a_key_that_the_config_contradicts_halts_the_table(more: dict[str, Any], code: str) -> None:
    records = [plain_change(1, {"a": 1}, {"id": 1, "part": 2})]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver", **more))
    assert rejections(decoded) == {1: "needs-decision"}
    assert decoded.conflict is not None
    assert decoded.conflict.code == code


def test_all_names_that_records_have_are_met_those_of_keys_and_of_excluded_columns_too() -> None:
    records = [plain_change(1, {"a": 1, "b": None}, {"k": 1})]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver", exclude=frozenset("a")))
    assert {name for columns in decoded.observed for name in columns.names} == {"a", "b", "k"}


@pytest.mark.parametrize(
    ("renames", "found"),
    [({"nome": "name", "lacking": "price"}, "name (source: nome)"), ({"lacking": "price"}, "nome")],
)
def test_values_that_do_not_fit_are_reported_with_the_name_that_columns_takes(
    renames: dict[str, str], found: str
) -> None:
    types = TypeSources(configured={"id": "int", "nome": "date", "price": "int"})
    good, bad = {"id": 1, "nome": 1, "price": 2}, {"id": 2, "nome": "x", "price": "y"}
    decoded, _ = decoded_rows(good, bad, types=types, renames=renames)
    [message] = decoded.rejected["message"].to_pylist()
    assert message.endswith(f": {found}, price")


@pytest.mark.parametrize("kind", ["map<string,string>", "struct<x:string>"])
@pytest.mark.parametrize("name", ["x", "x\\", "\\", "x\\ "])
def test_a_field_that_occurs_twice_in_an_object_is_found(kind: str, name: str) -> None:
    field = json.dumps(name)
    row = f'{{"id":"1","a":{{{field}:"1",{field}:"2"}}}}'
    value = json.dumps({"op": "c", "source": SQLSERVER_SOURCE})[:-1] + f', "after": {row}}}'
    decoder, schema = Decoder(DecodeOptions("sqlserver")), RecordSchema({"id": "string", "a": kind}, {"id": "string"})
    assert rejections(decoder.decode(made_records([(b'{"id":"1"}', value.encode())]), schema)) == {0: "ambiguous-json"}


PARTS = st.lists(st.sampled_from(['":', '"', ":", "\\", " ", ",", "{", "}", "a", "b", "\n"]), max_size=8)


@pytest.mark.thorough
@given(
    st.fixed_dictionaries({"a": PARTS.map("".join)}, optional={"b": PARTS.map("".join), "c": st.just({"a": ":"})}),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([("", "", ""), (" ", "", "\t"), ("\n", " ", "  ")]),
)
def test_a_field_that_occurs_twice_is_found_whatever_texts_hold(
    row: dict[str, Any], twice: str | None, blanks: tuple[str, str, str]
) -> None:
    before, between, behind = blanks
    fields = [*row.items(), *([(twice, row[twice])] if twice in row else [])]
    texts = (f'{before}"{name}"{between}:{behind}{json.dumps(value)}' for name, value in fields)
    value = json.dumps({"op": "c", "source": SQLSERVER_SOURCE})[:-1] + ', "after": {' + ",".join(texts) + "}}"
    decoder, schema = Decoder(DecodeOptions("sqlserver")), RecordSchema({"a": "string", "b": "string"}, {"id": "int"})
    decoded = decoder.decode(made_records([(b'{"id":1}', value.encode())]), schema)
    if twice in row:
        assert rejections(decoded) == {0: "ambiguous-json"}
    else:
        assert decoded.events["row"].to_pylist() == [{"a": row["a"], "b": row.get("b")}]
