"""The schema changes that `schema_changes` allows."""

from __future__ import annotations

from typing import Literal

import pytest

from distributary.evolve.policy import allowed_changes, tracked_columns

WIRE = {"id": "int", "more": "string"}


@pytest.mark.parametrize("policy", ["evolve", "halt", "ignore"])
def test_of_what_is_ignored_a_table_takes_the_columns_that_it_has_and_a_new_one_all(
    policy: Literal["evolve", "halt", "ignore"],
) -> None:
    assert tracked_columns(policy, {}, WIRE) == WIRE
    assert tracked_columns(policy, {"id": "int", "gone": "int"}, WIRE) == (
        {"id": "int"} if policy == "ignore" else WIRE
    )


def test_5_1_a_column_that_is_ignored_may_have_any_name_and_type() -> None:
    wire = [{**WIRE, "ID": "int", "__op": "string"}, {**WIRE, "more": "date"}]
    assert not allowed_changes("ignore", {"id": "int"}, wire, ["__op"])


def test_6_3_a_table_gets_so_many_columns_at_most() -> None:
    """The records of what adds none are rejected, once the table has the others."""
    wire = [{"id": "int", "a": "int"}, {"id": "bigint", "b": "int", "c": "int"}, {"id": "bigint", "d": "int"}]
    assert allowed_changes("evolve", {"id": "int"}, wire, (), most=3).added == {"a": "int", "d": "int"}
    assert allowed_changes("evolve", {}, [{"a": "int", "b": "int"}, {"c": "int"}], (), most=1).added == {
        "a": "int",
        "b": "int",
    }
    assert allowed_changes("evolve", {"a": "int", "b": "int"}, [{"b": "bigint"}], (), most=1).widened == {"b": "bigint"}
