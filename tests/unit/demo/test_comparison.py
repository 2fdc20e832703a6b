"""The demo's comparison detects tables that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from distributary.demo.comparison import Comparison, compare, same
from distributary.demo.record import Origin, Truth

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "one", "size": 1.5, "active": True},
    {"id": 2, "name": None, "size": float("nan"), "active": None},
    {"id": 3, "name": "", "size": float("-inf"), "active": False},
]
SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("size", pa.float64()), ("active", pa.bool_())])


def truth() -> Truth:
    return Truth("s.t", Origin.SIMULATED_DB2, ("id",), ("id", "name", "size", "active"), ROWS)


def lake_with(tmp_path: Path, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> Path:
    write_deltalake(str(tmp_path / "s" / "t"), pa.Table.from_pylist(rows, schema=schema))
    return tmp_path


def with_change(number: int, **values: Any) -> list[dict[str, Any]]:
    return [{**row, **values} if row["id"] == number else row for row in ROWS]


def test_equal_whatever_the_order_of_rows_and_with_the_services_own_columns(tmp_path: Path) -> None:
    rows = [{**row, "__offset": number} for number, row in enumerate(reversed(ROWS))]
    found = compare(truth(), lake_with(tmp_path, rows, SCHEMA.append(pa.field("__offset", pa.int64()))))
    assert found.equal
    assert len(found.lake) == 3


def test_a_missing_row(tmp_path: Path) -> None:
    found = compare(truth(), lake_with(tmp_path, ROWS[:2]))
    assert (found.equal, found.missing) == (False, [(3,)])


def test_a_row_too_many(tmp_path: Path) -> None:
    found = compare(truth(), lake_with(tmp_path, [*ROWS, {**ROWS[0], "id": 4}]))
    assert (found.equal, found.extra) == (False, [(4,)])


def test_a_row_that_is_there_twice(tmp_path: Path) -> None:
    found = compare(truth(), lake_with(tmp_path, [*ROWS, ROWS[0]]))
    assert (found.equal, found.repeated, found.different) == (False, ((1,),), {})


@pytest.mark.parametrize(
    ("number", "column", "value"),
    [(1, "name", "One"), (1, "name", None), (2, "name", ""), (2, "size", 0.0), (2, "active", False), (3, "size", None)],
)
def test_another_value(tmp_path: Path, number: int, column: str, value: Any) -> None:
    found = compare(truth(), lake_with(tmp_path, with_change(number, **{column: value})))
    assert (found.equal, found.different) == (False, {(number,): [column]})


def test_columns_that_only_one_side_has(tmp_path: Path) -> None:
    renamed = SCHEMA.set(1, pa.field("title", pa.string()))
    rows = [{"title": row["name"], **row} for row in ROWS]
    found = compare(truth(), lake_with(tmp_path, rows, renamed))
    assert (found.equal, found.columns) == (False, ("name", "title"))


def test_no_table_is_not_equal_even_to_an_empty_one(tmp_path: Path) -> None:
    empty = Truth("s.t", Origin.SIMULATED_DB2, ("id",), ("id",), [])
    found = compare(empty, tmp_path)
    assert (found.equal, found.found) == (False, False)


def test_a_null_that_arrives_as_something_else_is_compared_with_what_arrives(tmp_path: Path) -> None:
    def found(lake: Path) -> Comparison:
        return compare(Truth("s.t", truth().origin, ("id",), truth().columns, ROWS, {"active": True}), lake)

    assert found(lake_with(tmp_path / "sent", with_change(2, active=True))).equal
    assert not found(lake_with(tmp_path / "not sent", ROWS)).equal


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), ("1", 1), (None, 0), (float("nan"), 1.0)])
def test_values_of_another_kind_are_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)
