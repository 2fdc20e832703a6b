"""The schema changes that `schema_changes` allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from distributary.decode.observed_columns import ObservedColumns
from distributary.evolve.policy import ColumnPolicy, tracked_columns

WIRE = {"id": "int", "more": "string"}


@pytest.mark.parametrize("policy", ["evolve", "halt", "ignore"])
def test_of_what_is_ignored_a_table_takes_the_columns_that_it_has_and_a_new_one_all(
    policy: Literal["evolve", "halt", "ignore"],
) -> None:
    assert tracked_columns(policy, {}, WIRE) == WIRE
    assert tracked_columns(policy, {"id": "int", "gone": "int"}, WIRE) == (
        {"id": "int"} if policy == "ignore" else WIRE
    )


def rows(*types: Mapping[str, str]) -> list[ObservedColumns]:
    return [ObservedColumns(False, one, dict.fromkeys(one), {}, frozenset(one)) for one in types]


def test_5_1_a_column_that_is_ignored_may_have_any_name_and_type() -> None:
    wire = rows({**WIRE, "ID": "int", "__op": "string"}, {**WIRE, "more": "date"})
    assert not ColumnPolicy("ignore", ["__op"]).changes({"id": "int"}, wire, ())


def test_6_3_a_table_gets_so_many_columns_at_most() -> None:
    """The records of what adds none are rejected, once the table has the others."""
    wire = rows({"id": "int", "a": "int"}, {"id": "bigint", "b": "int", "c": "int"}, {"id": "bigint", "d": "int"})
    assert ColumnPolicy("evolve", (), 3).changes({"id": "int"}, wire, ()).added == {"a": "int", "d": "int"}
    of_one = ColumnPolicy("evolve", (), 1)
    new = rows({"a": "int", "b": "int"}, {"c": "int"})
    assert of_one.changes({}, new, ()).added == {"a": "int", "b": "int"}
    assert of_one.changes({"a": "int", "b": "int"}, rows({"b": "bigint"}), ()).widened == {"b": "bigint"}


def test_of_columns_that_contradict_each_other_the_earlier_ones_fit() -> None:
    number, text, other = rows({"id": "int"}, {"id": "string"}, {"other": "int"})
    assert ColumnPolicy("evolve", ()).fitting({}, [number, text, other], ()) == [number, other]
    assert ColumnPolicy("evolve", ()).fitting({"id": "string"}, [number, text, other], ()) == [text, other]
