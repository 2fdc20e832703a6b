"""The order of positions, and the comparison of an event with its partition's high-water mark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.rule_history import Table, at, event

from distributary.rules.deduplicate import (
    SNAPSHOT_ROWS_REMEMBERED,
    TIME_TOLERANCE,
    Verdict,
    deduplicate,
    remember_snapshot_row,
)
from distributary.rules.event import Event, Position
from distributary.rules.high_water_mark import CLOCK_AHEAD, DELETES_REMEMBERED, Mark, identity_of
from distributary.rules.order import compare
from distributary.rules.passed_positions import add_partitions, schedule_partition_change_end
from distributary.rules.state import RuleSettings

SQLSERVER = RuleSettings("sqlserver")


def verdicts(connector: str, *events: Event, compacted: bool = False) -> list[str]:
    return [verdict.value for _, verdict in deduplicate(connector, {}, events, compacted=compacted).verdicts]


def test_2_1_a_server_that_took_over_is_ordered_by_gtid() -> None:
    old = Position((9, 100), (0,), "uuid:7", server=1)
    new = Position((1, 4), (0,), "uuid:8", server=2)
    assert compare("mysql", old, new) < 0
    assert compare("mysql", old, replace(new, transaction="other:8")) > 0
    mariadb = Position((9, 100), (0,), "0:7", server=1)
    assert compare("mariadb", mariadb, Position((1, 4), (0,), "0:10", server=2)) < 0


def test_2_1_changes_of_a_server_that_took_over_are_new_where_the_gtid_says_so() -> None:
    old = Position((9, 100), (0,), "uuid:7", 10, server=1)
    new = Position((1, 4), (0,), "uuid:8", 20, server=2)
    events = [event("c", "a", old), event("u", "a", new)]
    assert verdicts("mysql", *events, *events) == ["new", "new", "seen", "seen"]
    unordered = event("u", "a", replace(new, transaction="other:8"))
    assert verdicts("mysql", events[0], unordered) == ["new", "source-went-back"]


def test_2_6_a_copy_of_an_overlapped_transaction_is_no_restored_source_where_its_first_one_is_gone() -> None:
    later, earlier = Position((9,), (3,), "2", 10), Position((8,), (4,), "1", 20)
    again = [event("c", "a", later), event("c", "b", earlier)]
    assert verdicts("oracle", *again) == ["new", "source-went-back"]
    assert verdicts("oracle", *again, compacted=True) == ["new", "seen"]
    restored = event("c", "b", replace(earlier, time=20 + TIME_TOLERANCE))
    assert verdicts("oracle", again[0], restored, compacted=True) == ["new", "source-went-back"]
    assert verdicts("sqlserver", *again, compacted=True) == ["new", "source-went-back"]


def test_2_1_a_transaction_of_unknown_level_goes_by_its_commit_time() -> None:
    known = Position((100,), (90,), "1", time=5)
    unknown = Position(None, (80,), "2", time=6)
    assert compare("postgresql", known, unknown) < 0 < compare("postgresql", unknown, known)


def test_2_4_what_a_partition_has_applied_is_seen() -> None:
    one, two = event("c", "a", at(1)), event("u", "a", at(2))
    assert verdicts("postgresql", one, two, one, two, event("d", "a", at(3))) == ["new", "new", "seen", "seen", "new"]


def test_2_4_changes_of_one_position_are_distinguished_by_key_and_operation() -> None:
    copied = [event("c", key, at(1)) for key in ("a", "b")]
    assert verdicts("postgresql", *copied, *copied) == ["new", "new", "seen", "seen"]


def test_2_4_changes_of_one_level_may_come_in_any_order_where_the_connector_sends_them_so() -> None:
    events = [
        event("d", "a", at(1, 5)),
        event("d", "b", at(1, 7)),
        event("c", "a", at(1, 5)),
        event("c", "b", at(1, 7)),
    ]
    assert verdicts("sqlserver", *events, *events) == ["new"] * 4 + ["seen"] * 4


def test_2_4_the_first_transaction_after_a_start_is_known_by_its_time_and_position() -> None:
    seen, new = Position(None, (5,), "1", time=1), Position(None, (9,), "3", time=3)
    first = event("c", "a", Position((4,), (5,), "1", time=1))
    second = event("c", "b", Position((6,), (7,), "2", time=2))
    given = [first, second, event("c", "a", seen), event("c", "c", new), event("c", "c", new)]
    assert verdicts("postgresql", *given) == ["new", "new", "seen", "new", "seen"]


def test_2_4_of_a_clock_that_was_set_back_no_new_transaction_is_lost() -> None:
    first = event("c", "a", Position((4,), (5,), "1", time=1000))
    assert verdicts("postgresql", first, event("c", "b", Position(None, (9,), "2", time=900))) == ["new", "new"]


def test_2_6_a_lower_position_of_a_later_time_means_that_the_source_went_back() -> None:
    restored = event("c", "b", at(3, time=20))
    assert verdicts("sqlserver", event("c", "a", at(5, time=10)), restored) == ["new", "source-went-back"]
    assert Table(SQLSERVER).take(event("c", "a", at(5, time=10)), restored).changes[0].went_back
    assert verdicts("sqlserver", event("c", "a", at(5, time=10)), event("r", "b", at(3, time=20))) == ["new", "new"]


def test_2_6_a_change_that_another_partition_had_read_before_the_topic_grew_does_not_mean_it() -> None:
    events = event("u", "a", at(3, time=20)), event("u", "b", at(5, time=10), partition=1)
    table = Table(RuleSettings("mysql"), partitions=2).take(*events)
    add_partitions("mysql", table.state, 3)
    assert not table.take(replace(events[0], partition=1)).changes[1].went_back
    schedule_partition_change_end("mysql", table.state)
    assert table.take(event("u", "a", at(4, time=30), partition=1)).changes[2].went_back


def test_2_6_nor_does_one_that_another_partition_has_not_read_yet() -> None:
    """Binlogs have the times of statements: the copy in partition 1 has a later one than all that was read."""
    table = Table(RuleSettings("mysql"), partitions=2).take(event("c", "b", at(5, time=10), partition=1))
    add_partitions("mysql", table.state, 3)
    copied = event("c", "a", at(3, time=20))
    table.take(replace(copied, partition=1), copied)
    assert not table.changes[1].went_back
    assert table.pointers() == {"b": (1, 0), "a": (1, 1)}


@pytest.mark.parametrize(("connector", "partitions", "went_back"), [("mysql", 2, 0), ("mysql", 1, 1), ("db2", 2, 1)])
def test_2_6_nor_does_a_truncate_of_another_partition(connector: str, partitions: int, went_back: int) -> None:
    table = Table(RuleSettings(connector), partitions=partitions).take(event("c", "b", at(5, time=10)))
    truncate = event("t", None, at(3, time=20))
    assert len(table.take(truncate).changes[1].went_back) == went_back
    if not went_back:
        table.take(event("c", "a", at(2, time=5), partition=1), replace(truncate, partition=1))
        assert table.pointers() == {"b": (0, 0)}


LATE = 10 + 2 * CLOCK_AHEAD
FORGED = event("u", "a", at(3, time=LATE), time=LATE)
"""A change at a lower position and of a later time, which is also Kafka's."""


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql", "mysql", "oracle"])
@pytest.mark.parametrize(
    ("behind", "verdict"),
    [
        ([event("u", "b", at(6, time=11), time=12)], "contradicted-position"),
        ([event("u", "b", at(2, time=5), time=12), event("d", "a", at(6, time=11), time=12)], "contradicted-position"),
        ([], "source-went-back"),
        ([event("u", "b", at(2, time=5), time=12)], "source-went-back"),  # one that is sent again
        ([event("r", "b", at(6, time=11), time=12)], "source-went-back"),
        ([event("t", None, at(6, time=11), time=12)], "source-went-back"),  # another partition may have had it
        ([event("u", "b", at(6, time=11), partition=1, time=12)], "source-went-back"),
        ([event("u", "b", at(6, time=11), time=LATE + 1)], "source-went-back"),  # a long transaction
        ([event("u", "b", at(6, time=LATE), time=12)], "source-went-back"),  # this one may be wrong, too
    ],
)
def test_2_6_a_change_that_those_behind_it_contradict_does_not_mean_it(
    connector: str, behind: list[Event], verdict: str
) -> None:
    assert verdicts(connector, event("c", "a", at(5, time=10), time=11), FORGED, *behind)[1] == verdict


def test_2_6_nor_does_one_that_is_later_than_its_own_record() -> None:
    first, wrong = event("c", "a", at(5, time=10), time=11), replace(FORGED, timestamp=12)
    assert verdicts("sqlserver", first, wrong) == ["new", "contradicted-position"]
    ahead = event("c", "a", at(5, time=LATE - 1), time=11)  # the source's clock is so
    assert verdicts("sqlserver", ahead, wrong) == ["new", "source-went-back"]
    assert verdicts("sqlserver", first, replace(FORGED, timestamp=0)) == ["new", "contradicted-position"]


def test_2_6_what_contradicts_a_change_is_new_itself() -> None:
    given = [event("c", "a", at(5, time=10), time=11), FORGED, event("u", "b", at(6, time=11), time=12)]
    again = [FORGED, given[2], event("u", "c", at(7, time=12), time=13)]
    found = verdicts("sqlserver", *given, *again)
    assert found == ["new", "contradicted-position", "new", "contradicted-position", "seen", "new"]


def test_2_6_a_change_that_is_accepted_again_contradicts_none() -> None:
    given = [
        event("x", "b", time=11),
        FORGED,
        event("c", "b", at(4, time=9), time=12),  # rule 3.3: after the tombstone
    ]
    judged = deduplicate("sqlserver", {0: Mark(at(5, time=10), time=10)}, given, deletes_are_null=True).verdicts
    assert [verdict.value for _, verdict in judged] == ["new", "source-went-back", "new"]


def test_2_6_a_server_that_took_over_has_transactions_that_were_open_before() -> None:
    """Binlogs have the times of statements."""
    minute = 60_000_000
    given = [
        event("c", "a", at(301, time=minute), time=minute),
        event("u", "a", at(290, time=20 * minute), time=20 * minute),
        event("u", "b", at(305, time=5 * minute), time=21 * minute),
    ]
    assert verdicts("mysql", *given) == ["new", "source-went-back", "new"]


def test_2_6_a_record_in_quarantine_does_not_mean_it_and_has_no_order() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(5, time=10)), event("c", "b", at(6, time=11)))
    waiting = replace(event("d", "a", at(3, time=LATE)), quarantined=True)
    table.take(waiting, event("x", "a"), event("d", "b", at(7, time=12)))  # the tombstone is that of the delete
    assert table.pointers() == {"a": (0, 0)}
    changes = table.changes[-1]
    assert (changes.went_back, changes.contradicted, changes.quarantined, changes.seen) == ([], [], [], 1)
    assert table.state.without_order == {"a": ((0, 2),)}
    restored = event("u", "a", at(4, time=20), time=21)
    assert table.take(waiting, restored).changes[-1].went_back[0].at == (0, 6)


AHEAD = 2 * CLOCK_AHEAD


@pytest.mark.parametrize("connector", ["sqlserver", "postgresql", "mysql", "oracle"])
def test_2_6_after_one_position_that_is_too_high_no_change_is_lost_whatever_its_time_is(connector: str) -> None:
    given = [
        event("c", "a", at(5, time=10), time=11),
        event("c", "b", at(9, time=12 + AHEAD), time=12),  # written by hand
        event("u", "a", at(6, time=13), time=13),
    ]
    assert verdicts(connector, *given) == ["new", "new", "source-went-back"]
    unlevelled = replace(given[2], position=Position(None, (8,), "2", time=13))
    assert connector != "postgresql" or verdicts(connector, *given[:2], unlevelled)[2] == "new"


def test_2_6_nor_is_one_lost_where_other_partitions_may_have_read_it_or_where_the_wrong_time_is_the_first() -> None:
    wrong = event("c", "b", at(9, time=12 + AHEAD), time=12)
    later = event("u", "a", at(6, time=13), time=13)
    first = event("c", "a", at(5, time=10), time=11)
    assert verdicts("sqlserver", wrong, later) == ["new", "source-went-back"]
    judged = deduplicate("sqlserver", {}, [first, wrong, later], partitions_changed=True).verdicts
    assert [verdict.value for _, verdict in judged] == ["new", "new", "source-went-back"]
    assert verdicts("sqlserver", first, wrong, replace(later, op="t", key=None))[2] == "source-went-back"


def test_2_6_what_is_sent_again_long_after_or_by_an_older_version_was_read_did_not_go_back() -> None:
    hour = CLOCK_AHEAD // 24
    ahead = event("c", "a", at(5, time=25 * hour), time=1)
    assert verdicts("sqlserver", ahead, replace(ahead, timestamp=2 * hour)) == ["new", "seen"]
    later, earlier = Position((10,), (0,), "1", 100), Position((11,), (0,), "2", 99)
    read_before = {0: Mark(later, {identity_of(event("c", "a"), later)}, time=100)}
    again = [event("c", "b", earlier, time=101), event("c", "a", later, time=102)]
    assert [verdict.value for _, verdict in deduplicate("mysql", read_before, again).verdicts] == ["new", "seen"]


def test_2_6_a_source_whose_clock_is_ahead_and_is_set_right_did_not_go_back() -> None:
    ahead = [event("c", "a", at(5, time=10 + AHEAD), time=10), event("u", "a", at(6, time=11 + AHEAD), time=11)]
    again = [replace(one, timestamp=30) for one in ahead]
    assert verdicts("sqlserver", *ahead, *again) == ["new", "new", "seen", "seen"]
    right = event("u", "a", at(7, time=20), time=20)
    assert verdicts("sqlserver", *ahead, right, *again, right) == ["new", "new", "new", "seen", "seen", "seen"]
    restored = event("u", "a", at(4, time=40 + AHEAD), time=40)
    assert verdicts("sqlserver", *ahead, restored) == ["new", "new", "source-went-back"]


def test_2_6_an_epoch_sorts_before_the_position() -> None:
    assert compare("db2", at(9), replace(at(1), epoch=1)) < 0


def test_3_3_what_a_producer_repeats_between_a_delete_and_its_tombstone_makes_it_no_other() -> None:
    rows = [event("c", "a", at(1)), event("d", "a", at(2)), event("x", "a"), event("c", "a", at(3))]
    deleted = [event("d", "a", at(4)), *rows[1:3], event("x", "a")]
    given = [*rows, *deleted]
    seen = verdicts("sqlserver", *(replace(one, offset=number) for number, one in enumerate(given)))
    assert seen == ["new", "new", "seen", "new", "new", "seen", "seen", "seen"]


def test_2_3_snapshot_rows_are_remembered_up_to_a_bound() -> None:
    remembered: dict[str, None] = {}
    for number in range(SNAPSHOT_ROWS_REMEMBERED + 1):
        assert remember_snapshot_row(remembered, event("r", str(number), at(1)))
    assert len(remembered) == SNAPSHOT_ROWS_REMEMBERED
    assert not remember_snapshot_row(remembered, event("r", "5", at(1)))
    assert remember_snapshot_row(remembered, event("r", "0", at(1)))


def test_2_3_snapshot_rows_are_forgotten_when_no_more_come() -> None:
    table = Table(SQLSERVER).take(*(event("r", str(number), at(1)) for number in range(1_000)))
    sizes = []
    for level in range(2, 8):
        table.take(event("u", "0", at(level)))
        sizes.append(len(table.state.snapshot_rows))
    assert sizes == [500, 250, 125, 63, 63, 63]
    assert table.take(event("r", "999", at(1))).pointers()["999"] == (0, 999)


def test_2_8_a_mark_s_copy_changes_on_its_own() -> None:
    marks = {0: Mark()}
    deduplicate("oracle", marks, [event("c", "a", at(1))])
    copy = marks[0].copy()
    assert [verdict for _, verdict in deduplicate("oracle", {0: copy}, [event("c", "b", at(1))]).verdicts] == [
        Verdict.NEW
    ]
    assert marks[0].ties != copy.ties


def test_3_3_deletes_await_their_tombstones_up_to_a_bound() -> None:
    marks: dict[int, Mark] = {}
    deletes = [event("d", str(number), at(number + 1)) for number in range(DELETES_REMEMBERED + 1)]
    deduplicate("db2", marks, deletes)
    assert len(marks[0].awaiting_tombstone) == DELETES_REMEMBERED
    tombstones = [event("x", "0"), event("x", "1")]
    assert [verdict for _, verdict in deduplicate("db2", marks, tombstones).verdicts] == [Verdict.NEW, Verdict.SEEN]
