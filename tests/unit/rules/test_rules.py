"""The rules on hand-written events; names give the rule's number."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules.codec import from_json_value, to_json_value
from distributary.rules.event import Event, Position
from distributary.rules.fold import fold
from distributary.rules.state import KeyState, Row, RuleSettings

POSTGRESQL = RuleSettings("postgresql")
SQLSERVER = RuleSettings("sqlserver")


def test_3_3_a_tombstone_behind_its_delete_adds_nothing_and_one_by_itself_deletes() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(5)), event("d", "b", at(6)), event("x", "b"))
    assert table.pointers() == {"a": (0, 0)}
    assert table.take(event("x", "a")).pointers() == {}


def test_3_3_after_a_tombstone_by_itself_a_position_counts_again_where_deletes_are_null() -> None:
    events = [event("c", "a", at(1)), event("x", "a"), event("c", "a", at(2))]
    table = Table(RuleSettings("db2", deletes_are_null=True)).take(*events, *events)
    assert table.pointers() == {"a": (0, 5)}
    assert Table(RuleSettings("db2", deletes_are_null=True)).take(*events, *events, *events[:2]).pointers() == {}


def test_2_3_what_follows_a_tombstone_is_accepted_though_a_snapshot_row_of_the_table_is_above_it() -> None:
    """The table alone has the row: a batch of columns remembers nothing of it."""
    for later in (event("r", "a", at(6)), event("c", "a", at(6))):
        table = Table(RuleSettings("oracle")).take(event("r", "a", at(30)))
        table.state.special.clear()
        assert table.take(event("x", "a"), later).pointers() == {"a": (0, 2)}


def test_2_2_a_delete_and_a_create_of_one_position_leave_the_row() -> None:
    events = [event("d", "a", at(2, 5)), event("c", "a", at(2, 5))]
    for cut in (1, 2):
        table = Table(SQLSERVER).take(event("c", "a", at(1))).take(*events[:cut]).take(*events[cut:]).take(*events)
        assert table.pointers() == {"a": (0, 2)}


def test_2_3_a_snapshot_row_stands_by_its_position_and_in_postgresql_by_its_arrival() -> None:
    given = [event("c", "a", at(1)), event("r", "a", at(9)), event("u", "a", at(5))]
    assert Table(SQLSERVER).take(*given[:2]).take(given[2]).pointers() == {"a": (0, 1)}
    assert Table(POSTGRESQL).take(*given[:2]).take(given[2]).pointers() == {"a": (0, 2)}


def test_2_3_a_snapshot_row_that_is_sent_again_changes_nothing() -> None:
    read, update = event("r", "a", at(9)), event("u", "a", at(5))
    assert Table(POSTGRESQL).take(read).take(update).take(read).pointers() == {"a": (0, 1)}


def test_2_3_a_change_from_before_a_blocking_snapshot_moves_the_row_that_was_there_then() -> None:
    table = Table(POSTGRESQL).take(event("c", "a", at(1, 1)), event("c", "b", at(1, 2)))
    table.take(event("r", "c", at(5, 50)), event("r", "a", at(5, 50)))
    table.take(event("d", "a", at(4, 41), moved_to="c"), event("c", "c", at(4, 41), moved_from="a", unavailable=True))
    assert table.big("c") == (0, 0)


def test_2_3_a_snapshot_row_ahead_of_the_stream_keeps_the_row_that_a_change_before_it_moves() -> None:
    table = Table(RuleSettings("oracle")).take(event("c", "a", at(1))).take(event("r", "a", at(9)))
    table.take(event("d", "a", at(5), moved_to="c"), event("c", "c", at(5), moved_from="a", unavailable=True))
    table.take(event("c", "a", at(7)))
    assert table.pointers() == {"a": (0, 1), "c": (0, 3)}
    assert table.big("c") == (0, 0)


def deferred() -> list[Event]:
    """Two rows that move up by one, the first one first, in one transaction."""
    return [
        event("d", "1", at(5, 1), moved_to="2"),
        event("c", "2", at(5, 1), moved_from="1", unavailable=True),
        event("d", "2", at(5, 2), moved_to="3"),
        event("c", "3", at(5, 2), moved_from="2", unavailable=True),
    ]


@pytest.mark.parametrize("cut", range(5))
@pytest.mark.parametrize("again", range(5))
def test_2_7_keys_that_move_under_a_deferred_constraint_keep_their_rows(cut: int, again: int) -> None:
    moves = deferred()
    table = Table(POSTGRESQL).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)))
    table.take(*moves[:cut]).take(*moves[cut:]).take(*moves[again:])
    assert table.pointers() == {"2": (0, 3), "3": (0, 5)}
    assert (table.big("2"), table.big("3")) == ((0, 0), (0, 1))


def test_2_7_an_update_between_a_moved_create_and_the_old_row_s_delete_changes_the_moved_row() -> None:
    table = Table(POSTGRESQL).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)))
    table.take(*deferred()[:2]).take(event("u", "2", at(5, 2))).take(event("d", "2", at(5, 3)))
    assert table.pointers() == {"2": (0, 4)}


def test_2_7_a_delete_that_may_mean_either_of_two_rows_is_counted() -> None:
    rows = event("c", "a", at(1)), event("c", "a", at(2, 1)), event("d", "a", at(2, 2)), event("c", "b", at(3))
    for cut in range(5):
        table = Table(SQLSERVER).take(*rows[:cut]).take(*rows[cut:])
        assert sum(changes.ambiguous for changes in table.changes) == 1


def test_3_1_an_update_of_an_unknown_key_inserts_and_a_create_of_a_known_one_replaces() -> None:
    assert Table(SQLSERVER).take(event("u", "a", at(1))).take(event("c", "a", at(2))).pointers() == {"a": (0, 1)}


def test_3_2_a_softly_deleted_row_stays_until_a_create_brings_it_back() -> None:
    table = Table(replace(SQLSERVER, deletes="soft")).take(event("c", "a", at(1))).take(event("d", "a", at(2)))
    assert (table.rows["a"].at, table.rows["a"].ended) == ((0, 0), "d")
    assert table.take(event("c", "a", at(3))).pointers() == {"a": (0, 2)}


def test_3_4_a_new_row_waits_for_a_value_of_the_old_one_in_another_partition() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "1", at(1)))
    table.take(event("c", "2", at(5), partition=1, moved_from="1", unavailable=True))
    assert table.big("2") not in {(0, 0), (1, 0)}
    table.take(event("u", "1", at(4))).take(event("d", "1", at(5), moved_to="2"))
    assert table.big("2") == (0, 1)


def test_3_4_a_departure_sent_again_after_its_key_is_empty_moves_no_values() -> None:
    moves = deferred()[:2]
    table = Table(POSTGRESQL).take(event("c", "1", at(1))).take(*moves).take(*moves)
    assert table.take(event("u", "2", at(6), unavailable=True)).big("2") == (0, 0)


def test_3_6_a_truncate_takes_what_lies_before_it_whenever_it_comes() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "after", at(30, 31)))
    table.take(event("t", None, at(20, 25), partition=1)).take(event("c", "late", at(40, 24)))
    assert table.pointers() == {"after": (0, 0)}


def test_3_6_a_snapshot_row_of_the_truncate_s_own_position_stays() -> None:
    table = Table(RuleSettings("mysql"), partitions=2).take(event("r", "a", at(5), partition=1))
    assert table.take(event("t", None, at(5))).pointers() == {"a": (1, 0)}


def test_3_6_a_row_moves_on_after_a_soft_truncate_that_its_partition_has_not_reached() -> None:
    table = Table(RuleSettings("postgresql", deletes="soft", truncate="soft"), partitions=2).take(
        event("c", "1", at(1, 1))
    )
    table.take(event("t", None, at(20, 25), partition=1))
    table.take(event("d", "1", at(5, 6), moved_to="2"), event("c", "2", at(5, 6), moved_from="1", unavailable=True))
    assert {key: row.ended for key, row in table.rows.items()} == {"1": "d", "2": "t"}
    assert table.big("2") == (0, 0)


def test_3_6_a_table_that_halts_at_truncates_does_so() -> None:
    table = Table(replace(POSTGRESQL, truncate="halt")).take(event("t", None, at(1)))
    assert [one.op for one in table.changes[0].halting] == ["t"]


def test_3_7_a_value_that_is_nowhere_is_counted_once() -> None:
    update = event("u", "a", at(1), unavailable=True)
    table = Table(POSTGRESQL).take(update).take(update).take(event("u", "a", at(2), unavailable=True))
    assert [changes.unknown for changes in table.changes] == [1, 0, 0]


def test_4_2_a_version_ends_where_the_next_begins_and_a_copy_adds_none() -> None:
    table = Table(RuleSettings("db2", "history")).take(
        event("c", "a", at(1)), event("u", "a", at(2)), event("u", "a", at(2))
    )
    versions = table.changes[0].outcomes["a"].versions
    assert [(version.row.at, version.end and version.end.at) for version in versions] == [
        ((0, 0), (0, 1)),
        ((0, 1), None),
    ]


def test_4_3_changes_are_appended_once_truncates_too_by_whatever_partition_they_come() -> None:
    table = Table(RuleSettings("mariadb", "append"), partitions=2)
    table.take(event("c", "a", at(1)), event("t", None, at(2)), event("d", "a", at(3)), event("x", "a"))
    table.take(event("t", None, at(2), partition=1), event("r", "a", at(3)))
    assert [one.op for changes in table.changes for one in changes.appended] == ["c", "t", "d", "r"]


def test_6_3_an_event_from_the_quarantine_is_applied_where_it_was() -> None:
    quarantined = replace(event("u", "a", at(2)), quarantined=True)
    table = Table(SQLSERVER).take(event("c", "a", at(1)), quarantined, event("d", "a", at(3)), event("c", "a", at(4)))
    assert table.pointers() == {"a": (0, 3)}
    replayed = replace(quarantined, quarantined=False, offset=1)
    assert table.take(replayed=[replayed]).pointers() == {"a": (0, 3)}
    assert table.take(event("c", "b", at(5))).state.special == {}


def test_2_8_the_state_is_read_back_as_it_was_written() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)), *deferred()[:3])
    table.take(event("t", None, at(3), partition=1), event("r", "9", at(7)))
    table.take(event("c", "8", Position(None, (99,), "8", time=99)))
    assert table.state.special
    part = replace(event("t", None, at(4)), scope=(1, "d.one"))
    table.state.truncates.append(part)
    assert any(mark.likely_time for mark in table.state.marks.values())
    plain = json.loads(json.dumps(to_json_value(table.state)))
    assert from_json_value(plain) == table.state
    plain["truncates"] = [truncate[:15] for truncate in plain["truncates"]]  # as older versions wrote them
    table.state.truncates[-1] = replace(part, scope=None)
    del plain["likely_times"]
    for mark in table.state.marks.values():
        mark.likely_time = 0
    assert from_json_value(plain) == table.state


def test_3_6_a_deleted_row_that_a_truncate_took_stays_away_while_its_key_is_remembered() -> None:
    """A key change makes all remembered keys be looked at again, after the truncate is forgotten."""
    table = Table(RuleSettings("postgresql", deletes="soft"))
    table.take(event("c", "a", at(1, 1))).take(event("r", "a", at(2, 50)))
    table.take(event("d", "a", at(3, 52))).take(event("t", None, at(4, 53))).take(event("c", "b", at(5, 54)))
    assert table.rows.keys() == {"b"}
    table.take(event("d", "b", at(6, 55), moved_to="c"), event("c", "c", at(6, 56), moved_from="b"))
    assert table.rows.keys() == {"b", "c"}


@pytest.mark.parametrize("connector", ["db2", "mariadb", "mysql", "oracle", "sqlserver"])
def test_2_3_a_key_of_a_snapshot_is_not_remembered_once_later_changes_were_read(connector: str) -> None:
    table = Table(RuleSettings(connector)).take(event("c", "a", at(1, 1)))
    table.take(event("r", "a", at(2, 999))).take(event("u", "b", at(20, 1)))
    assert table.state.special == {}


def test_deletes_of_other_keys_are_forgotten_while_a_record_is_in_quarantine() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1)), replace(event("u", "a", at(2)), quarantined=True))
    table.take(event("c", "b", at(3)), event("d", "b", at(4)), event("c", "c", at(5)))
    assert table.state.deleted_keys == {}


def test_6_3_a_record_in_quarantine_brings_no_deleted_row_back() -> None:
    quarantined = replace(event("u", "a", at(2)), quarantined=True)
    table = Table(SQLSERVER).take(event("c", "a", at(1)), quarantined)
    for number in range(3, 60):
        table.take(event("u", "a", at(number)))
    table.take(event("d", "a", at(60))).take(event("c", "b", at(61)))
    table.take(replayed=[replace(quarantined, quarantined=False, offset=1)])
    assert table.pointers().keys() == {"b"}


@pytest.mark.parametrize("connector", ["db2", "mariadb", "mysql", "oracle", "sqlserver"])
def test_2_3_a_snapshot_that_comes_late_brings_no_older_row_however_it_is_cut(connector: str) -> None:
    rows = [
        event("c", "a", at(40)),
        event("u", "a", at(50)),
        event("r", "b", at(60)),
        event("d", "c", at(61)),
        *(event("r", key, replace(at(45), time=99), connector=connector) for key in ("a", "b", "c", "d")),
    ]
    pointers = {"a": (0, 1), "b": (0, 2), "d": (0, 7)}
    assert Table(RuleSettings(connector)).take(*rows).pointers() == pointers
    table = Table(RuleSettings(connector))
    for row in rows:
        table.take(row)
    assert table.pointers() == pointers
    assert sum(changes.stale_snapshot_rows for changes in table.changes) == 3


def test_2_3_a_snapshot_row_of_another_server_s_log_counts_by_its_arrival() -> None:
    """After a failover the new server's files may have lower numbers, and a snapshot row has no GTID."""
    change = replace(at(50), server=1, transaction="s:50")
    table = Table(RuleSettings("mysql")).take(event("c", "a", change)).take(event("r", "a", at(3)))
    assert table.pointers() == {"a": (0, 1)}


def test_2_3_tombstones_hide_nothing_of_an_empty_key_that_a_snapshot_read_later() -> None:
    """A row moves on through a key. Two transactions later comes the row that the snapshot has read there."""
    moves = [event("c", "b", at(1, 1), moved_from="a", offset=1), event("d", "b", at(1, 2), moved_to="c", offset=2)]
    later = [
        event("x", "b", offset=3),
        event("c", "b", at(2, 3), offset=4),
        event("d", "b", at(2, 4), offset=5),
        event("x", "b", offset=6),
        event("c", "b", at(3, 5), offset=7),
    ]
    events = [replace(one, arrival=(one.offset, 0, one.offset)) for one in [*moves, *later]]
    key = KeyState(Row((0, 0), "r", at(100, 100)), None)
    for count in range(2, len(events) + 1):
        line = fold("postgresql", key, events[:count], (), following=events[count:])
        [departure] = line.departed.values()
        assert departure.row is not None
        assert departure.row.at == (0, 1)
        assert not line.ambiguous


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_2_3_a_late_snapshot_row_behind_its_key_s_delete_leaves_nothing_however_it_is_cut(deletes: str) -> None:
    rules = RuleSettings("sqlserver", deletes=deletes)
    whole = Table(rules).take(event("d", "a", at(5)), event("r", "a", at(3)))
    parted = Table(rules).take(event("d", "a", at(5))).take(event("r", "a", at(3)))
    assert whole.rows == parted.rows == {}
    assert [sum(changes.stale_snapshot_rows for changes in table.changes) for table in (whole, parted)] == [1, 1]
