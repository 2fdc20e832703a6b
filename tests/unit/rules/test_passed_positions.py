"""What all partitions have passed, also where one of them gets no records."""

from __future__ import annotations

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules.codec import from_json_value, to_json_value
from distributary.rules.passed_positions import add_partitions, note_caught_up, schedule_partition_change_end
from distributary.rules.state import RuleSettings

SQLSERVER = RuleSettings("sqlserver")
MINUTE = 60_000_000
END = 260
"""The minute at which plays end: long enough for keys of two hours ago to be forgotten."""


def play(table: Table, minutes: range, *, caught_up: bool = True) -> Table:
    """Each minute a key comes and goes, by partition 0."""
    for minute in minutes:
        time = 1 + minute * MINUTE
        table.take(
            event("c", f"k{minute}", at(10 * minute + 1, time=time), time=time),
            event("d", f"k{minute}", at(10 * minute + 2, time=time), time=time),
        )
        if caught_up:
            note_caught_up("sqlserver", table.state)
            table.state = from_json_value(to_json_value(table.state))
    return table


def test_deletes_are_forgotten_though_a_partition_is_idle() -> None:
    table = play(Table(SQLSERVER, partitions=2).take(event("c", "idle", at(1), partition=1)), range(1, END))
    kept = {int(name.removeprefix("k")) for name in table.state.deleted_keys}
    assert kept <= set(range(END - 150, END)), "what is two hours old and more is forgotten"
    assert set(range(END - 60, END)) <= kept, "an hour is not"


def test_a_partition_that_was_never_read_holds_nothing_up_either() -> None:
    assert len(play(Table(SQLSERVER, partitions=3), range(1, END)).state.deleted_keys) <= 150


def test_nothing_is_forgotten_while_records_are_unread() -> None:
    table = Table(SQLSERVER, partitions=2).take(event("c", "idle", at(1), partition=1))
    assert len(play(table, range(1, END), caught_up=False).state.deleted_keys) == END - 1


@pytest.mark.parametrize("ago", [0, 59])
def test_2_5_what_was_deleted_within_the_hour_does_not_come_back_by_a_new_partition(ago: int) -> None:
    table = play(Table(SQLSERVER, partitions=2), range(1, 300))
    add_partitions("sqlserver", table.state, 3)
    minute = 299 - ago
    again = event("c", f"k{minute}", at(10 * minute + 1, time=1 + minute * MINUTE), partition=2)
    assert table.take(again).pointers() == {}


def test_2_5_growth_ends_though_a_partition_is_idle() -> None:
    table = play(Table(SQLSERVER, partitions=2), range(1, 10))
    add_partitions("sqlserver", table.state, 3)
    play(table, range(10, 20))
    schedule_partition_change_end("sqlserver", table.state)
    assert table.state.partitions_changed
    play(table, range(20, 70))
    assert table.state.partitions_changed, "an hour has not passed"
    play(table, range(70, 200))
    assert not table.state.partitions_changed
    assert len(table.state.special) <= 20


def quiet_after(*moments: tuple[int, int]) -> int | None:
    """Up to which source time nothing is unread after these moments: the source's and Kafka's time in minutes."""
    table = Table(SQLSERVER, partitions=2)
    for level, (source, kafka) in enumerate(moments, start=1):
        table.take(event("u", "a", at(level, time=source * MINUTE), time=kafka * MINUTE))
        note_caught_up("sqlserver", table.state)
    return None if table.state.settled_until is None else table.state.settled_until.position.time // MINUTE


def test_the_hour_is_the_source_s_own_and_some_minutes_are_kafka_s() -> None:
    assert quiet_after((1, 1), (61, 61), (61, 90)) is None, "not more than an hour"
    assert quiet_after((1, 1), (62, 62), (63, 72)) is None, "not more than ten minutes"
    assert quiet_after((1, 1), (62, 62), (63, 73)) == 1


def test_6_1_what_a_connector_sends_again_after_an_hour_s_rest_is_no_new_row() -> None:
    """Both clocks jump, and the copy comes a moment after the first new change, by another partition."""
    table = Table(RuleSettings("sqlserver", mode="append", keyless=True), partitions=2)
    table.take(event("c", "row a", at(5, time=MINUTE), time=MINUTE))
    note_caught_up("sqlserver", table.state)
    table.take(event("c", "row d", at(9, time=181 * MINUTE), time=181 * MINUTE))
    note_caught_up("sqlserver", table.state)
    table.take(event("c", "row a", at(5, time=MINUTE), partition=1, time=181 * MINUTE))
    assert [len(changes.appended) for changes in table.changes] == [1, 1, 0]


def test_a_source_whose_clock_ran_ahead_once_holds_nothing_up() -> None:
    years = 60 * 24 * 365
    assert quiet_after((1, 1), (years, 2), (70, 70), (140, 140)) == 1
    assert quiet_after((years, 1), (2, 2), (70, 70), (140, 140)) == 2
