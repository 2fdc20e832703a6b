"""Rule 6.3: the order of records in quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules import quarantine_order
from distributary.rules.codec import from_json_value, to_json_value
from distributary.rules.quarantine_order import note_without_order
from distributary.rules.state import RuleSettings

CONNECTORS = ("postgresql", "sqlserver", "oracle")


@pytest.fixture(params=CONNECTORS)
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose records in quarantine keep their order for three changes."""
    monkeypatch.setattr(quarantine_order, "MOST_BEHIND", 3)
    return Table(RuleSettings(request.param))


BAD = replace(event("u", "a", at(2)), quarantined=True)


def replay(table: Table, offset: int = 1) -> None:
    table.state = from_json_value(to_json_value(table.state))
    table.take(replayed=[replace(BAD, offset=offset, quarantined=False)])


def test_6_3_a_record_in_quarantine_keeps_its_order_up_to_a_bound(table: Table) -> None:
    table.take(event("c", "a", at(1)), BAD)
    for number in range(3, 7):
        table.take(event("u", "a", at(number)))
    assert sum(changes.without_order for changes in table.changes) == 1
    assert not table.state.special
    replay(table)
    assert table.pointers() == {"a": (0, 5)}
    assert not table.state.without_order


def test_6_3_a_row_that_was_deleted_after_such_a_record_does_not_come_back(table: Table) -> None:
    table.take(event("c", "a", at(1)), BAD)
    for number in range(3, 7):
        table.take(event("u", "a", at(number)))
    table.take(event("d", "a", at(7))).take(event("c", "b", at(8))).take(event("u", "b", at(9)))
    assert table.state.deleted_keys
    replay(table)
    assert table.pointers() == {"b": (0, 8)}
    table.take(event("u", "b", at(10)))
    assert not table.state.deleted_keys


def test_6_3_it_does_not_come_back_if_only_some_such_records_are_replayed(table: Table) -> None:
    second = replace(BAD, position=at(3), change=event("u", "a", at(3)).change)
    table.take(event("c", "a", at(1)), BAD, second)
    for number in range(4, 8):
        table.take(event("u", "a", at(number)))
    table.take(event("d", "a", at(8))).take(event("c", "b", at(9))).take(event("u", "b", at(10)))
    replay(table)
    table.take(event("u", "b", at(11))).take(event("u", "b", at(12)))
    table.take(replayed=[replace(second, offset=2, quarantined=False)])
    assert table.pointers() == {"b": (0, 11)}
    table.take(event("u", "b", at(13)))
    assert not table.state.without_order
    assert not table.state.deleted_keys


def test_6_3_key_changes_behind_records_in_quarantine_have_a_bound(table: Table) -> None:
    table.take(event("c", "a", at(1)), BAD)
    for number in range(3, 12, 2):
        old, new = f"k{number}", f"k{number + 2}"
        table.take(
            event("d", old, at(number), moved_to=new, connector=table.rules.connector),
            event("c", new, at(number), moved_from=old, connector=table.rules.connector),
        )
    table.take(event("c", "z", at(20)))
    assert sum(changes.without_order for changes in table.changes) == 1
    assert not table.state.departures
    replay(table)
    assert table.pointers()["a"] == (0, 1)


def test_6_3_all_that_is_remembered_behind_records_in_quarantine_has_a_bound(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine_order, "MOST_IN_ALL", 4)
    for number in range(1, 5):
        table.take(replace(event("u", f"k{number}", at(number)), quarantined=True))
    assert len(table.state.special) == 4
    table.take(event("u", "k1", at(9)))
    assert table.changes[-1].without_order == 4
    assert not table.state.special
    assert table.state.without_order == {f"k{number}": ((0, number - 1),) for number in range(1, 5)}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_6_3_what_could_not_be_read_at_all_is_replayed_below_newer_changes(connector: str) -> None:
    table = Table(RuleSettings(connector)).take(event("c", "a", at(2)))
    older, newer = event("u", "a", at(1), offset=8), event("u", "a", at(3), offset=9)
    assert table.take(replayed=[older]).pointers() == {"a": (0, 0)}
    assert table.take(replayed=[newer]).pointers() == {"a": (0, 9)}


def test_6_3_a_row_that_was_deleted_after_a_record_without_position_does_not_come_back(table: Table) -> None:
    table.take(event("c", "a", at(1)))
    note_without_order(table.state, [("a", (0, 90))])
    table.take(event("d", "a", at(3))).take(event("c", "b", at(4))).take(event("u", "b", at(5)))
    assert set(table.state.deleted_keys) == {"a"}
    replay(table, offset=90)
    assert table.pointers() == {"b": (0, 3)}
    assert not table.state.without_order


def test_6_3_truncates_behind_a_record_without_position_are_forgotten(table: Table) -> None:
    """They would remove rows of other keys: snapshot rows may have no position, or a low one."""
    table.take(event("c", "a", at(1, 1)))
    note_without_order(table.state, [("a", (0, 90))])
    table.take(event("t", None, at(3, 3))).take(event("c", "b", at(5, 5))).take(event("u", "b", at(6, 6)))
    assert not table.state.truncates


def test_6_3_records_without_position_that_are_remembered_have_a_bound(table: Table) -> None:
    assert note_without_order(table.state, [("a", (0, 1)), ("a", (0, 1)), ("a", (0, 2))]) == 0
    assert note_without_order(table.state, [("b", (0, 3)), ("c", (0, 4))]) == 1
    assert table.state.without_order == {"a": ((0, 2),), "b": ((0, 3),), "c": ((0, 4),)}
    assert note_without_order(table.state, [("a", (0, 5)), ("a", (0, 6))]) == 2  # the key is now the newest one
    assert table.state.without_order == {"a": ((0, 2), (0, 5), (0, 6))}
    assert note_without_order(table.state, [("a", (0, 7))]) == 1
    assert table.state.without_order == {"a": ((0, 5), (0, 6), (0, 7))}


def test_6_3_append_keeps_a_record_that_lost_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_order, "MOST_IN_ALL", 1)
    table = Table(RuleSettings("sqlserver", mode="append")).take(event("c", "a", at(1)), BAD)
    table.take(event("u", "a", at(3)), replace(event("u", "b", at(4)), quarantined=True))
    assert table.changes[-1].without_order == 2
    assert not table.state.special
    replay(table)
    assert [one.position for one in table.changes[-1].appended] == [at(2)]
    assert table.state.without_order == {"b": ((0, 3),)}
