"""Packed histories equal the single ones, and a failing case is made smaller."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.case import Case
from tests.model.delivery import Again, Delivery
from tests.model.packing import ROOM, packed, part, with_truncates
from tests.model.shrinking import shrunk
from tests.model.source.history import Delete, History, Put, Transaction, Truncate
from tests.model.strategies import ALL, Wanted, histories


def kept(history: History) -> Counter[int]:
    """The number of rows at the end, by history."""
    happened = Case("mysql", history, "composite").happen()
    layout = happened.played.layout
    numbers = {layout.key_of(layout.numbered(number)): number // ROOM for number in range(4 * ROOM)}
    return Counter(numbers[layout.key_of(dict(row))] for row in happened.truth())


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(histories(Wanted(truncates=False)), min_size=1, max_size=3))
@pytest.mark.thorough
def test_a_packed_history_leaves_what_its_parts_leave(parts: list[History]) -> None:
    whole = kept(packed(parts))
    assert whole == Counter({number: total for number, one in enumerate(parts) if (total := kept(one).total())})


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(histories(ALL), min_size=1, max_size=3))
@pytest.mark.thorough
def test_a_part_of_a_packed_history_is_that_history_and_the_truncates_of_all(parts: list[History]) -> None:
    whole = packed(parts)
    assert kept(part(whole, [0]))[0] == kept(whole)[0]


def test_of_the_truncates_only_the_wanted_ones_stay() -> None:
    history = History((), tuple(Transaction((Put(number), Truncate(), Put(number))) for number in range(4)))
    left = with_truncates(history, {1, 3})
    assert [len(step.operations) for step in left.steps if isinstance(step, Transaction)] == [2, 3, 2, 3]


def test_a_failing_case_is_made_smaller() -> None:
    steps = [Transaction((Put(number), Put(number + 1), Delete(number))) for number in range(6)]
    case = Case("mysql", History((1, 2), (*steps, Transaction((Truncate(),)))), "whole", Delivery((Again(1, 1),)))

    def fails(smaller: Case) -> bool:
        return any(operation == Delete(3) for operation in smaller.history.operations())

    assert shrunk(case, fails, 100) == Case("mysql", History((), (Transaction((Delete(3),)),)), "whole")
    assert fails(shrunk(case, fails, 3))
