"""Topics that get more partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules import passed_positions
from distributary.rules.event import Position
from distributary.rules.passed_positions import add_partitions, schedule_partition_change_end
from distributary.rules.state import RuleSettings

SQLSERVER = RuleSettings("sqlserver")


def read_on(table: Table) -> Table:
    """Both partitions are read up to a later time."""
    return table.take(event("c", "b", at(9), time=10), event("c", "c", at(9, 1), partition=1, time=10))


def test_2_5_a_topic_that_grows_brings_no_deleted_row_back() -> None:
    table = Table(SQLSERVER)
    add_partitions("sqlserver", table.state, 2)
    table.take(event("d", "a", at(2), partition=1)).take(event("c", "a", at(1)))
    assert table.pointers() == {}


def test_2_5_no_more_changes_than_that_are_remembered_of_a_growth_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passed_positions, "MOST_REMEMBERED", 3)
    table = Table(SQLSERVER)
    add_partitions("sqlserver", table.state, 3)
    for number in range(1, 5):
        table.take(event("c", f"k{number}", at(number), partition=number % 2))
        assert (len(table.state.special), table.state.partitions_changed) == (number, True)
    table.take(event("u", "k1", at(5), partition=1))
    assert (len(table.state.special), table.state.partitions_changed) == (0, False)
    assert [changes.forgotten_keys for changes in table.changes] == [0, 0, 0, 0, 4]
    assert table.pointers() == {"k1": (1, 2), "k2": (0, 0), "k3": (1, 1), "k4": (0, 1)}
    table.take(event("u", "k2", at(6), partition=2), event("u", "k1", at(2), partition=2))
    assert table.pointers() == {"k1": (1, 2), "k2": (2, 0), "k3": (1, 1), "k4": (0, 1)}


def test_2_5_of_copies_by_two_partitions_one_counts() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1)), event("d", "a", at(2)))
    add_partitions("sqlserver", table.state, 2)
    table.take(event("c", "a", at(1), partition=1)).take(event("d", "a", at(2), partition=1))
    assert table.pointers() == {}
    assert table.take(event("c", "a", at(3), partition=1)).pointers() == {"a": (1, 2)}


@pytest.mark.parametrize("noticed", range(1, 5))
def test_2_5_it_does_not_matter_when_growth_is_noticed_for_a_tombstone_that_comes_by_another_partition(
    noticed: int,
) -> None:
    rows = [
        event("c", "a", at(1), time=1),
        event("d", "a", at(2), time=2),
        event("x", "a", time=3),
        event("c", "a", at(3), time=4),
    ]
    table = Table(SQLSERVER).take(*rows[:noticed])
    add_partitions("sqlserver", table.state, 2)
    table.take(*rows[noticed:]).take(event("x", "a", partition=1, time=9))
    assert table.pointers() == {"a": (0, 3)}, "its delete may be in partition 0"
    assert read_on(table).pointers() == {"b": (0, 4), "c": (1, 1)}


def test_2_5_the_tombstone_of_a_delete_that_was_sent_again_takes_no_row_by_another_partition() -> None:
    rows = [event("c", "a", at(1)), event("d", "a", at(2)), event("x", "a"), event("c", "a", at(3))]
    table = Table(SQLSERVER).take(*rows, event("d", "a", at(2)))
    add_partitions("sqlserver", table.state, 2)
    assert table.take(event("x", "a", partition=1, time=9)).pointers() == {"a": (0, 3)}


def test_2_5_a_delete_whose_tombstone_has_come_awaits_no_other() -> None:
    table = Table(SQLSERVER)
    add_partitions("sqlserver", table.state, 2)
    table.take(event("c", "a", at(1), time=1), event("d", "a", at(2), time=2), event("x", "a", time=3))
    table.take(event("c", "a", at(3), time=4), event("d", "a", at(2), time=5), event("x", "a", time=6))
    assert table.take(event("x", "a", partition=1, time=9)).pointers() == {"a": (0, 3)}
    assert read_on(table).pointers() == {"b": (0, 6), "c": (1, 1)}


def test_2_5_of_two_partitions_a_delete_comes_before_a_create_of_its_position() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1), time=1))
    add_partitions("sqlserver", table.state, 2)
    table.take(event("c", "a", at(2, 5), time=5)).take(event("d", "a", at(2, 5), partition=1, time=5))
    assert table.pointers() == {"a": (0, 1)}


def test_2_5_a_key_that_is_gone_does_not_come_back_by_a_partition_that_is_behind() -> None:
    table = Table(SQLSERVER, partitions=2).take(event("c", "b", at(1), partition=1))
    table.take(event("c", "a", at(5)), event("d", "a", at(6)))
    add_partitions("sqlserver", table.state, 3)
    assert table.take(event("c", "a", at(5), partition=2)).pointers() == {"b": (1, 0)}


def test_2_5_what_a_new_partition_gets_of_the_time_before_was_sent_again() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1)), event("d", "a", at(2)), event("c", "b", at(3)))
    add_partitions("sqlserver", table.state, 2)
    assert table.take(event("c", "a", at(1), partition=1)).pointers() == {"b": (0, 2)}


@pytest.mark.parametrize("connector", ["db2", "mysql", "oracle", "postgresql", "sqlserver"])
@pytest.mark.parametrize("op", ["u", "d"])
def test_2_5_where_a_topic_grew_before_it_was_first_read_the_position_decides(connector: str, op: str) -> None:
    later, earlier = event(op, "a", at(10), partition=1), event("c", "a", at(5))
    for cut in (1, 2):
        table = Table(RuleSettings(connector), partitions=2)
        table.take(*[later, earlier][:cut]).take(*[later, earlier][cut:])
        assert table.pointers() == ({"a": (1, 0)} if op == "u" else {})


@pytest.mark.parametrize("ends_before", range(2, 6))
def test_2_5_changes_from_before_a_snapshot_come_below_its_row_wherever_the_growth_ends(ends_before: int) -> None:
    rows = [
        event("r", "a", at(20), partition=1, time=11),
        event("d", "a", at(10), partition=1, time=12),
        event("x", "a", partition=1, time=13),
        event("c", "a", at(10), partition=1, time=14),
        event("d", "a", at(10, 1), partition=1, time=15),
        event("x", "a", partition=1, time=16),
    ]
    table = Table(SQLSERVER).take(event("c", "b", at(1), time=1))
    add_partitions("sqlserver", table.state, 2)
    schedule_partition_change_end("sqlserver", table.state)
    table.take(event("u", "b", at(2), time=10), *rows[:ends_before])
    assert not table.state.partitions_changed
    for row in rows[ends_before:]:
        assert table.take(row).pointers() == {"a": (1, 0), "b": (0, 1)}


def test_2_5_a_tombstone_by_another_partition_than_its_delete_takes_no_row_of_a_later_snapshot() -> None:
    table = Table(SQLSERVER).take(event("r", "a", at(20), time=1))
    add_partitions("sqlserver", table.state, 2)
    table.take(event("d", "a", at(10), time=2))
    table.take(event("x", "a", partition=1, time=3), event("c", "a", at(10), partition=1, time=4))
    table.take(event("u", "b", at(11), time=11), event("u", "c", at(11), partition=1, time=11))
    table.take(event("u", "a", at(12), partition=1, time=12))
    assert table.pointers()["a"] == (0, 0)


def test_2_5_a_tombstone_that_is_read_before_its_delete_takes_no_row() -> None:
    table = Table(SQLSERVER).take(
        event("c", "a", at(1), time=1), event("d", "a", at(2), time=2), event("x", "a", time=3)
    )
    table.take(event("c", "a", at(2, 1), time=4))
    add_partitions("sqlserver", table.state, 2)
    assert table.take(event("x", "a", partition=1, time=9)).pointers() == {"a": (0, 3)}
    table.take(event("d", "a", at(2), time=8))
    assert read_on(table).pointers() == {"a": (0, 3), "b": (0, 5), "c": (1, 1)}


@pytest.mark.parametrize("known_first", [False, True])
def test_2_5_of_copies_the_position_counts_whose_level_is_known(known_first: bool) -> None:
    """The first transaction after a start of PostgreSQL's connector does not know its level."""
    known = Position((5,), (4,), "7", 5)
    copies = [event("c", "a", known, time=2), event("c", "a", replace(known, level=None), partition=1, time=3)]
    table = Table(RuleSettings("postgresql"))
    add_partitions("postgresql", table.state, 2)
    for copy in copies if known_first else reversed(copies):
        table.take(copy)
    assert table.rows["a"].position == known


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_2_5_a_topic_that_grew_before_its_table_was_first_read_is_read_like_one_that_grows(cut: int) -> None:
    """Keys a and b were in partition 1; of three partitions a is in the first one, where a snapshot reads it again."""
    snapshot = event("r", "a", at(1, 20), time=11)
    earlier = [
        event("c", "b", at(2, 2), partition=1, time=2),
        event("c", "a", at(3, 3), partition=1, time=3),
        event("u", "a", at(4, 4), partition=1, time=4),
    ]
    table = Table(RuleSettings("postgresql"), partitions=3)
    add_partitions("postgresql", table.state, 3)
    table.take(snapshot, *earlier[:cut]).take(*earlier[cut:])
    assert table.pointers() == {"a": (0, 0), "b": (1, 0)}


@pytest.mark.parametrize("read", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("grows", [True, False])
def test_2_5_deletes_that_are_null_come_before_what_was_sent_after_them(read: tuple[int, ...], *, grows: bool) -> None:
    """A blocking snapshot holds up a delete and a create of its row, which come by two partitions after it has."""
    rows = [
        event("r", "a", at(20), time=4),
        event("x", "a", time=5),
        event("c", "a", at(12), partition=int(grows), time=8),
    ]
    table = Table(RuleSettings("sqlserver", deletes_are_null=True), partitions=1 + grows)
    if grows:
        add_partitions("sqlserver", table.state, 2)
    for number in read if grows else range(3):
        table.take(rows[number])
    assert table.pointers() == {"a": (0, 0) if grows else (0, 2)}, "both are the same row"


def test_2_5_a_tombstone_stays_that_of_its_delete_once_the_delete_is_settled() -> None:
    table = Table(SQLSERVER).take(event("r", "a", at(20), time=1))
    add_partitions("sqlserver", table.state, 2)
    table.take(event("d", "a", at(10), time=2), event("x", "a", partition=1, time=3))
    table.take(event("u", "b", at(11), time=2), event("u", "c", at(11), partition=1, time=3))
    assert [one.op for one in table.state.special["a"].recent] == ["r", "x"], "the delete is settled"
    table.take(event("u", "b", at(12), time=9), event("u", "c", at(12), partition=1, time=9))
    assert table.pointers()["a"] == (0, 0), "by itself the tombstone would take the row of the snapshot"


def test_3_3_a_delete_from_before_the_growth_has_its_tombstone_after_it() -> None:
    table = Table(SQLSERVER).take(event("r", "a", at(20), time=1), event("d", "a", at(10), time=2))
    add_partitions("sqlserver", table.state, 2)
    table.take(event("x", "a", partition=1, time=3))
    table.take(event("u", "b", at(12), time=9), event("u", "c", at(12), partition=1, time=9))
    assert table.pointers()["a"] == (0, 0), "by itself the tombstone would take the row of the snapshot"
