"""Columns on the wire against columns of the table."""

from __future__ import annotations

import pytest

from distributary.errors import TableHalt
from distributary.evolve.diff import check_key, columns_to_add, holds


@pytest.mark.parametrize(
    ("table", "wire", "fits"),
    [
        ("bigint", "int", True),
        ("int", "bigint", False),
        ("double", "int", True),
        ("double", "bigint", False),
        ("double", "float", True),
        ("float", "double", False),
        ("decimal(12,4)", "decimal(8,2)", True),
        ("decimal(12,4)", "decimal(12,2)", False),
        ("decimal(10,0)", "int", True),
        ("decimal(9,0)", "int", False),
        ("timestamp_ntz", "date", True),
        ("string", "int", False),
        ("timestamp", "timestamp_ntz", False),
    ],
)
def test_a_column_holds_what_loses_nothing(table: str, wire: str, fits: bool) -> None:
    assert holds(table, wire) is fits


def test_new_columns_come_in_the_wires_order() -> None:
    wire = [{"id": "int", "b": "string"}, {"id": "int", "b": "string", "a": "date"}]
    assert columns_to_add({"id": "int"}, wire, ()) == {"b": "string", "a": "date"}


def test_a_new_column_takes_the_wider_type_of_one_slice() -> None:
    assert columns_to_add({}, [{"n": "int"}, {"n": "bigint"}], ()) == {"n": "bigint"}


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        ({"id": "string"}, "column-type-changed"),
        ({"ID": "int"}, "columns-differ-in-case"),
        ({"__op": "string"}, "column-name-taken"),
    ],
)
def test_what_would_lose_or_mix_something_halts(wire: dict[str, str], code: str) -> None:
    with pytest.raises(TableHalt) as halt:
        columns_to_add({"id": "int"}, [wire], ("__op",))
    assert halt.value.code == code
    assert halt.value.fix


def test_another_key_halts_and_names_both() -> None:
    check_key(("a", "b"), ("b", "a"))
    check_key((), ("a",))
    with pytest.raises(TableHalt, match=r"\(id\).*\(id, tenant\)"):
        check_key(("id",), ("id", "tenant"))
