"""The difference between columns of records and columns of the table."""

from __future__ import annotations

import pytest

from distributary.decode.renames import Renames
from distributary.errors import TableHalt
from distributary.evolve.diff import SchemaChanges, check_key, column_changes
from distributary.types.widening import holds, wider


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
    assert list(column_changes({"id": "int"}, wire, ()).added.items()) == [("b", "string"), ("a", "date")]


def test_a_new_column_takes_the_wider_type_of_one_batch() -> None:
    assert column_changes({}, [{"n": "int"}, {"n": "bigint"}], ()) == SchemaChanges({"n": "bigint"})


@pytest.mark.parametrize(
    ("table", "wire", "to"),
    [
        ("int", "bigint", "bigint"),
        ("smallint", "int", "int"),
        ("float", "double", "double"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("decimal(8,2)", "decimal(20,2)", "decimal(20,2)"),
        ("decimal(12,4)", "decimal(12,2)", "decimal(14,4)"),
        ("decimal(38,2)", "decimal(12,4)", None),
        ("int", "decimal(12,0)", None),
        ("int", "double", None),
        ("string", "int", None),
        ("array<int>", "array<bigint>", None),
    ],
)
def test_5_1_a_column_is_widened_where_nothing_is_lost(table: str, wire: str, to: str | None) -> None:
    assert wider(table, wire) == to
    if to is not None:
        assert column_changes({"n": table}, [{"n": wire}, {"n": table}, {"n": wire}], ()) == SchemaChanges(
            {}, {"n": to}
        )


def test_of_a_key_only_whole_numbers_are_widened() -> None:
    assert column_changes({"id": "int"}, [{"id": "bigint"}], (), {"id"}).widened == {"id": "bigint"}
    with pytest.raises(TableHalt):
        column_changes({"id": "date"}, [{"id": "timestamp_ntz"}], (), {"id"})


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
        column_changes({"id": "int"}, [wire], ("__op",))
    assert halt.value.code == code
    assert halt.value.fix


def test_a_type_that_changed_is_reported_with_the_name_that_columns_takes() -> None:
    def halt(renames: Renames) -> TableHalt:
        with pytest.raises(TableHalt) as halted:
            column_changes({"name": "int"}, [{"name": "string"}], (), (), renames)
        return halted.value

    renamed, plain = halt(Renames({"nome": "name"})), halt(Renames({"other": "another"}))
    assert ("'name' (source: nome) is int" in renamed.message, "{nome: int}" in renamed.fix) == (True, True)
    assert ("'name' is int" in plain.message, "{name: int}" in plain.fix) == (True, True)


def way_out(table: str, wire: str) -> str:
    with pytest.raises(TableHalt, match="column-type-changed") as halted:
        column_changes({"c": table}, [{"c": wire}], (), {"c"})
    return halted.value.fix or ""


@pytest.mark.parametrize(
    ("table", "wire"),
    [
        ("decimal(10,0)", "decimal(12,2)"),
        ("bigint", "decimal(12,0)"),
        ("double", "decimal(12,2)"),
        ("string", "decimal(12,2)"),
        ("date", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_ntz", "timestamp"),
    ],
)
def test_of_what_a_schema_tells_columns_makes_the_tables_type_where_there_is_a_schema(table: str, wire: str) -> None:
    """Without one, `columns` decides how values are read: at which scale, in which unit."""
    fix = way_out(table, wire)
    assert f"columns: {{c: {table}}}" in fix
    assert "carry a schema" in fix
    assert "--rebuild" in fix


@pytest.mark.parametrize(
    ("table", "wire"),
    [
        ("date", "decimal(12,2)"),
        ("boolean", "decimal(1,0)"),
        ("binary", "decimal(12,2)"),
        ("binary", "string"),
        ("string", "binary"),
        ("date", "int"),
        ("timestamp_ntz", "bigint"),
        ("bigint", "timestamp_ntz"),
        ("string", "timestamp_ntz"),
        ("array<date>", "timestamp"),
    ],
)
def test_where_columns_would_make_other_values_of_it_the_table_is_filled_again(table: str, wire: str) -> None:
    fix = way_out(table, wire)
    assert "columns" not in fix
    assert "--rebuild" in fix


@pytest.mark.parametrize(
    ("table", "wire"),
    [
        ("int", "string"),
        ("string", "int"),
        ("date", "string"),
        ("array<int>", "array<bigint>"),
        ("decimal(4,2)", "double"),
    ],
)
def test_texts_and_numbers_are_read_as_the_tables_type(table: str, wire: str) -> None:
    fix = way_out(table, wire)
    assert f"columns: {{c: {table}}}" in fix
    assert "carry a schema" not in fix


def test_another_key_halts_and_names_both() -> None:
    check_key(("a", "b"), ("b", "a"))
    check_key((), ("a",))
    with pytest.raises(TableHalt, match=r"\(id\).*\(id, tenant\)"):
        check_key(("id",), ("id", "tenant"))
