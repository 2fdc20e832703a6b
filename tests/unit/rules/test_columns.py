"""A batch as columns, where it differs from the events of the model's histories."""

from __future__ import annotations

import pytest
from tests.model.event_columns import LookupRows, columns_of
from tests.support.rule_history import at, event

from distributary.rules.column_batch import apply_columns
from distributary.rules.event import Event
from distributary.rules.state import RuleSettings, RulesState


def no_row(_: str) -> None:
    """The row of any key of an empty table."""


@pytest.mark.parametrize(
    ("rules", "halting", "went_back"),
    [
        (RuleSettings("sqlserver", truncate="halt"), event("t", None, at(6), offset=1), []),
        (RuleSettings("sqlserver"), event("u", "a", at(3, time=20), offset=1), ["u"]),
    ],
    ids=["3.6", "2.6"],
)
def test_columns_change_nothing_where_the_table_has_to_halt(
    rules: RuleSettings, halting: Event, went_back: list[str]
) -> None:
    batch = [event("c", "a", at(5, time=10)), halting]
    plain, changes = apply_columns(rules, RulesState(), columns_of(batch), LookupRows(no_row))
    assert [one.op for one in changes.went_back] == went_back
    assert [one.at for one in changes.went_back + changes.halting] == [(0, 1)]
    assert not len(plain.keys)
    assert not changes.outcomes
