"""The rules on events by hand, each rule by its number."""

from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.rules.history import Table, at, event

import distributary.rules
from distributary.rules.admit import READS_REMEMBERED, Mark, Verdict, admit, remember_read
from distributary.rules.codec import from_plain, to_plain
from distributary.rules.event import Event, Position
from distributary.rules.order import compare, position, sort_key
from distributary.rules.state import Rules
from distributary.rules.watermark import grow

POSTGRESQL = Rules("postgresql")
SQLSERVER = Rules("sqlserver")


def verdicts(connector: str, *events: Event) -> list[str]:
    return [verdict.value for _, verdict in admit(connector, {}, events).judged]


def keyless_rows(*batches: list[Event], partitions: int = 1) -> list[tuple[int, int]]:
    table = Table(Rules("postgresql", "append", keyless=True), partitions)
    for batch in batches:
        table.take(*batch)
    return [one.at for changes in table.changes for one in changes.appended]


def test_4_3_equal_rows_of_one_place_are_kept_as_often_as_one_run_sent_them() -> None:
    before, copied = [event("c", "row", at(1)), event("u", "row", at(2))], [event("c", "same", at(3))] * 3
    for cut in range(4):
        assert len(keyless_rows([*before, *copied[:cut]], copied[cut:])) == 5
        assert len(keyless_rows([*before, *copied[:cut]], [*before, *copied])) == 5


def test_4_3_a_copy_in_another_partition_adds_no_row() -> None:
    rows = [event("c", str(number), at(number), partition=number % 2) for number in range(1, 7)]
    again = [replace(one, partition=1 - one.partition) for one in rows[2:]]
    assert len(keyless_rows([*rows, *again], partitions=2)) == len(rows)
    assert len(keyless_rows(rows[:4], [*rows[4:], *again[:2]], again[2:], partitions=2)) == len(rows)


def test_4_3_a_truncate_that_is_sent_again_adds_one_row() -> None:
    rows = [event("c", "row", at(1)), event("t", None, at(2)), event("c", "row", at(3), partition=1)]
    again = [replace(one, partition=1 - one.partition) for one in rows[1:]]
    assert len(keyless_rows(rows, again, partitions=2)) == 3


def test_the_rules_import_no_other_part_of_the_package_and_nothing_that_does_io() -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "pyarrow"} - {"io", "os", "pathlib", "socket", "subprocess"}
    modules = sorted(Path(distributary.rules.__file__).parent.glob("*.py"))
    assert modules
    for path in modules:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 300, path.name
        for found in re.finditer(r"^\s*(?:from|import)\s+([\w.]+)", text, re.MULTILINE):
            name = found[1]
            assert name.startswith("distributary.rules.") or name.partition(".")[0] in allowed, f"{path.name}: {name}"


def test_1_6_a_record_without_key_goes_to_quarantine() -> None:
    changes = Table(SQLSERVER).take(event("c", None, at(1))).changes[0]
    assert [one.at for one in changes.rejected] == [(0, 0)]
    assert not changes.outcomes


def test_2_1_each_connector_orders_by_its_own_fields() -> None:
    sources: dict[str, list[dict[str, Any]]] = {
        "sqlserver": [
            {"commit_lsn": "0a", "change_lsn": None},
            {"commit_lsn": "0a", "change_lsn": "01", "event_serial_no": "2"},
            {"commit_lsn": "0a", "change_lsn": "01", "event_serial_no": "10"},
        ],
        "db2": [{"commit_lsn": "0a", "change_lsn": "02"}, {"commit_lsn": "0b", "change_lsn": "01"}],
        "postgresql": [{"sequence": '["9","30"]'}, {"sequence": '["10","20"]'}],
        "mysql": [{"file": "b.999999", "pos": 9}, {"file": "b.1000000", "pos": 4}, {"file": "b.1000000", "pos": 10}],
        "oracle": [{"scn": "20", "commit_scn": "99"}, {"scn": "10", "commit_scn": "100"}],
    }
    for connector, ascending in sources.items():
        places = [position(connector, source) for source in ascending]
        for one, other in itertools.pairwise(places):
            assert one is not None
            assert other is not None
            assert compare(connector, one, other) < 0 < compare(connector, other, one)
            assert sort_key(connector, one) <= sort_key(connector, other)


def test_2_1_a_server_that_took_over_is_ordered_by_gtid() -> None:
    old = Position((9, 100), (0,), "uuid:7", server=1)
    new = Position((1, 4), (0,), "uuid:8", server=2)
    assert compare("mysql", old, new) < 0
    assert compare("mysql", old, replace(new, transaction="other:8")) > 0
    mariadb = Position((9, 100), (0,), "0-1-7", server=1)
    assert compare("mariadb", mariadb, Position((1, 4), (0,), "0-2-10", server=2)) < 0


def test_2_1_a_transaction_of_unknown_level_goes_by_its_commit_time() -> None:
    known = Position((100,), (90,), "1", time=5)
    unknown = Position(None, (80,), "2", time=6)
    assert compare("postgresql", known, unknown) < 0 < compare("postgresql", unknown, known)


def test_2_4_what_a_partition_has_applied_is_seen() -> None:
    one, two = event("c", "a", at(1)), event("u", "a", at(2))
    assert verdicts("postgresql", one, two, one, two, event("d", "a", at(3))) == ["new", "new", "seen", "seen", "new"]


def test_2_4_changes_of_one_position_are_told_apart_by_key_and_operation() -> None:
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


def test_2_4_the_first_transaction_after_a_start_is_known_by_its_time_and_place() -> None:
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
    table = Table(Rules("mysql"), partitions=2).take(*events)
    grow("mysql", table.state, 3)
    assert not table.take(replace(events[0], partition=1)).changes[1].went_back
    assert table.take(event("u", "a", at(4, time=30), partition=1)).changes[2].went_back


def test_2_6_an_epoch_sorts_before_the_position() -> None:
    assert compare("db2", at(9), replace(at(1), epoch=1)) < 0


def test_3_3_a_tombstone_behind_its_delete_adds_nothing_and_one_by_itself_deletes() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(5)), event("d", "b", at(6)), event("x", "b"))
    assert table.places() == {"a": (0, 0)}
    assert table.take(event("x", "a")).places() == {}


def test_3_3_what_a_producer_repeats_between_a_delete_and_its_tombstone_makes_it_no_other() -> None:
    rows = [event("c", "a", at(1)), event("d", "a", at(2)), event("x", "a"), event("c", "a", at(3))]
    deleted = [event("d", "a", at(4)), *rows[1:3], event("x", "a")]
    given = [*rows, *deleted]
    seen = verdicts("sqlserver", *(replace(one, offset=number) for number, one in enumerate(given)))
    assert seen == ["new", "new", "seen", "new", "new", "seen", "seen", "seen"]


def test_3_3_after_a_tombstone_by_itself_a_position_counts_again_where_deletes_are_null() -> None:
    events = [event("c", "a", at(1)), event("x", "a"), event("c", "a", at(2))]
    table = Table(Rules("db2", deletes_are_null=True)).take(*events, *events)
    assert table.places() == {"a": (0, 5)}
    assert Table(Rules("db2", deletes_are_null=True)).take(*events, *events, *events[:2]).places() == {}


def test_2_2_a_delete_and_a_create_of_one_position_leave_the_row() -> None:
    events = [event("d", "a", at(2, 5)), event("c", "a", at(2, 5))]
    for cut in (1, 2):
        table = Table(SQLSERVER).take(event("c", "a", at(1))).take(*events[:cut]).take(*events[cut:]).take(*events)
        assert table.places() == {"a": (0, 2)}


def test_2_3_a_snapshot_row_stands_by_its_position_and_in_postgresql_by_its_arrival() -> None:
    given = [event("c", "a", at(1)), event("r", "a", at(9)), event("u", "a", at(5))]
    assert Table(SQLSERVER).take(*given[:2]).take(given[2]).places() == {"a": (0, 1)}
    assert Table(POSTGRESQL).take(*given[:2]).take(given[2]).places() == {"a": (0, 2)}


def test_2_3_a_snapshot_row_that_is_sent_again_changes_nothing() -> None:
    read, update = event("r", "a", at(9)), event("u", "a", at(5))
    assert Table(POSTGRESQL).take(read).take(update).take(read).places() == {"a": (0, 1)}


def test_2_3_snapshot_rows_are_remembered_up_to_a_bound() -> None:
    reads: dict[str, None] = {}
    for number in range(READS_REMEMBERED + 1):
        assert remember_read(reads, event("r", str(number), at(1)))
    assert len(reads) == READS_REMEMBERED
    assert not remember_read(reads, event("r", "5", at(1)))
    assert remember_read(reads, event("r", "0", at(1)))


def test_2_3_a_change_from_before_a_blocking_snapshot_moves_the_row_that_was_there_then() -> None:
    table = Table(POSTGRESQL).take(event("c", "a", at(1, 1)), event("c", "b", at(1, 2)))
    table.take(event("r", "c", at(5, 50)), event("r", "a", at(5, 50)))
    table.take(event("d", "a", at(4, 41), moved_to="c"), event("c", "c", at(4, 41), moved_from="a", unsent=True))
    assert table.big("c") == (0, 0)


def test_2_3_a_snapshot_row_ahead_of_the_stream_keeps_the_row_that_a_change_before_it_moves() -> None:
    table = Table(Rules("oracle")).take(event("c", "a", at(1))).take(event("r", "a", at(9)))
    table.take(event("d", "a", at(5), moved_to="c"), event("c", "c", at(5), moved_from="a", unsent=True))
    table.take(event("c", "a", at(7)))
    assert table.places() == {"a": (0, 1), "c": (0, 3)}
    assert table.big("c") == (0, 0)


def test_2_5_a_topic_that_grows_brings_no_deleted_row_back() -> None:
    table = Table(SQLSERVER)
    grow("sqlserver", table.state, 2)
    table.take(event("d", "a", at(2), partition=1)).take(event("c", "a", at(1)))
    assert table.places() == {}


def test_2_5_of_copies_by_two_partitions_one_counts() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1)), event("d", "a", at(2)))
    grow("sqlserver", table.state, 2)
    table.take(event("c", "a", at(1), partition=1)).take(event("d", "a", at(2), partition=1))
    assert table.places() == {}
    assert table.take(event("c", "a", at(3), partition=1)).places() == {"a": (1, 2)}


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
    grow("sqlserver", table.state, 2)
    table.take(*rows[noticed:]).take(event("x", "a", partition=1, time=9))
    assert table.places() == {}


def test_2_5_the_tombstone_of_a_delete_that_was_sent_again_takes_no_row_by_another_partition() -> None:
    rows = [event("c", "a", at(1)), event("d", "a", at(2)), event("x", "a"), event("c", "a", at(3))]
    table = Table(SQLSERVER).take(*rows, event("d", "a", at(2)))
    grow("sqlserver", table.state, 2)
    assert table.take(event("x", "a", partition=1, time=9)).places() == {"a": (0, 3)}


def test_2_5_a_delete_whose_tombstone_has_come_awaits_no_other() -> None:
    table = Table(SQLSERVER)
    grow("sqlserver", table.state, 2)
    table.take(event("c", "a", at(1), time=1), event("d", "a", at(2), time=2), event("x", "a", time=3))
    table.take(event("c", "a", at(3), time=4), event("d", "a", at(2), time=5), event("x", "a", time=6))
    assert table.places() == {"a": (0, 3)}
    assert table.take(event("x", "a", partition=1, time=9)).places() == {}


def test_2_5_of_two_partitions_a_delete_comes_before_a_create_of_its_position() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1), time=1))
    grow("sqlserver", table.state, 2)
    table.take(event("c", "a", at(2, 5), time=5)).take(event("d", "a", at(2, 5), partition=1, time=5))
    assert table.places() == {"a": (0, 1)}


def test_2_5_a_key_that_is_gone_does_not_come_back_by_a_partition_that_is_behind() -> None:
    table = Table(SQLSERVER, partitions=2).take(event("c", "b", at(1), partition=1))
    table.take(event("c", "a", at(5)), event("d", "a", at(6)))
    grow("sqlserver", table.state, 3)
    assert table.take(event("c", "a", at(5), partition=2)).places() == {"b": (1, 0)}


def test_2_5_what_a_new_partition_gets_of_the_time_before_was_sent_again() -> None:
    table = Table(SQLSERVER).take(event("c", "a", at(1)), event("d", "a", at(2)), event("c", "b", at(3)))
    grow("sqlserver", table.state, 2)
    assert table.take(event("c", "a", at(1), partition=1)).places() == {"b": (0, 2)}


def deferred() -> list[Event]:
    """Two rows that move up by one, the first one first, in one transaction."""
    return [
        event("d", "1", at(5, 1), moved_to="2"),
        event("c", "2", at(5, 1), moved_from="1", unsent=True),
        event("d", "2", at(5, 2), moved_to="3"),
        event("c", "3", at(5, 2), moved_from="2", unsent=True),
    ]


@pytest.mark.parametrize("cut", range(5))
@pytest.mark.parametrize("again", range(5))
def test_2_7_keys_that_move_under_a_deferred_constraint_keep_their_rows(cut: int, again: int) -> None:
    moves = deferred()
    table = Table(POSTGRESQL).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)))
    table.take(*moves[:cut]).take(*moves[cut:]).take(*moves[again:])
    assert table.places() == {"2": (0, 3), "3": (0, 5)}
    assert (table.big("2"), table.big("3")) == ((0, 0), (0, 1))


def test_2_7_an_update_between_a_moved_create_and_the_old_row_s_delete_changes_the_moved_row() -> None:
    table = Table(POSTGRESQL).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)))
    table.take(*deferred()[:2]).take(event("u", "2", at(5, 2))).take(event("d", "2", at(5, 3)))
    assert table.places() == {"2": (0, 4)}


def test_2_7_a_delete_that_may_mean_either_of_two_rows_is_counted() -> None:
    rows = event("c", "a", at(1)), event("c", "a", at(2, 1)), event("d", "a", at(2, 2)), event("c", "b", at(3))
    for cut in range(5):
        table = Table(SQLSERVER).take(*rows[:cut]).take(*rows[cut:])
        assert sum(changes.ambiguous for changes in table.changes) == 1


def test_3_1_an_update_of_an_unknown_key_inserts_and_a_create_of_a_known_one_replaces() -> None:
    assert Table(SQLSERVER).take(event("u", "a", at(1))).take(event("c", "a", at(2))).places() == {"a": (0, 1)}


def test_3_2_a_softly_deleted_row_stays_until_a_create_brings_it_back() -> None:
    table = Table(replace(SQLSERVER, deletes="soft")).take(event("c", "a", at(1))).take(event("d", "a", at(2)))
    assert (table.rows["a"].at, table.rows["a"].ended) == ((0, 0), "d")
    assert table.take(event("c", "a", at(3))).places() == {"a": (0, 2)}


def test_3_4_a_new_row_waits_for_a_value_of_the_old_one_in_another_partition() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "1", at(1)))
    table.take(event("c", "2", at(5), partition=1, moved_from="1", unsent=True))
    assert table.big("2") not in {(0, 0), (1, 0)}
    table.take(event("u", "1", at(4))).take(event("d", "1", at(5), moved_to="2"))
    assert table.big("2") == (0, 1)


def test_3_4_a_departure_sent_again_after_its_key_is_empty_moves_no_values() -> None:
    moves = deferred()[:2]
    table = Table(POSTGRESQL).take(event("c", "1", at(1))).take(*moves).take(*moves)
    assert table.take(event("u", "2", at(6), unsent=True)).big("2") == (0, 0)


def test_3_6_a_truncate_takes_what_lies_before_it_whenever_it_comes() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "after", at(30, 31)))
    table.take(event("t", None, at(20, 25), partition=1)).take(event("c", "late", at(40, 24)))
    assert table.places() == {"after": (0, 0)}


def test_3_6_a_snapshot_row_of_the_truncate_s_own_position_stays() -> None:
    table = Table(Rules("mysql"), partitions=2).take(event("r", "a", at(5), partition=1))
    assert table.take(event("t", None, at(5))).places() == {"a": (1, 0)}


def test_3_6_a_row_moves_on_after_a_soft_truncate_that_its_partition_has_not_reached() -> None:
    table = Table(Rules("postgresql", deletes="soft", truncate="soft"), partitions=2).take(event("c", "1", at(1, 1)))
    table.take(event("t", None, at(20, 25), partition=1))
    table.take(event("d", "1", at(5, 6), moved_to="2"), event("c", "2", at(5, 6), moved_from="1", unsent=True))
    assert {key: row.ended for key, row in table.rows.items()} == {"1": "d", "2": "t"}
    assert table.big("2") == (0, 0)


def test_3_6_a_table_that_halts_at_truncates_does_so() -> None:
    table = Table(replace(POSTGRESQL, truncate="halt")).take(event("t", None, at(1)))
    assert [one.op for one in table.changes[0].halting] == ["t"]


def test_3_7_a_value_that_is_nowhere_is_counted_once() -> None:
    update = event("u", "a", at(1), unsent=True)
    table = Table(POSTGRESQL).take(update).take(update).take(event("u", "a", at(2), unsent=True))
    assert [changes.unknown for changes in table.changes] == [1, 0, 0]


def test_4_2_a_version_ends_where_the_next_begins_and_a_copy_adds_none() -> None:
    table = Table(Rules("db2", "history")).take(event("c", "a", at(1)), event("u", "a", at(2)), event("u", "a", at(2)))
    stints = table.changes[0].outcomes["a"].stints
    assert [(stint.row.at, stint.end and stint.end.at) for stint in stints] == [((0, 0), (0, 1)), ((0, 1), None)]


def test_4_3_changes_are_appended_once_truncates_too_by_whatever_partition_they_come() -> None:
    table = Table(Rules("mariadb", "append"), partitions=2)
    table.take(event("c", "a", at(1)), event("t", None, at(2)), event("d", "a", at(3)), event("x", "a"))
    table.take(event("t", None, at(2), partition=1), event("r", "a", at(3)))
    assert [one.op for changes in table.changes for one in changes.appended] == ["c", "t", "d", "r"]


def test_6_3_an_event_from_the_quarantine_is_applied_where_it_was() -> None:
    held = replace(event("u", "a", at(2)), held=True)
    table = Table(SQLSERVER).take(event("c", "a", at(1)), held, event("d", "a", at(3)), event("c", "a", at(4)))
    assert table.places() == {"a": (0, 3)}
    replayed = replace(held, held=False, offset=1)
    assert table.take(replayed=[replayed]).places() == {"a": (0, 3)}
    assert table.take(event("c", "b", at(5))).state.special == {}


def test_2_8_the_state_is_read_back_as_it_was_written() -> None:
    table = Table(POSTGRESQL, partitions=2).take(event("c", "1", at(1, 1)), event("c", "2", at(1, 2)), *deferred()[:3])
    table.take(event("t", None, at(3), partition=1), event("r", "9", at(7)))
    table.take(event("c", "8", Position(None, (99,), "8", time=99)))
    assert table.state.special
    assert from_plain(json.loads(json.dumps(to_plain(table.state)))) == table.state


def test_2_8_a_mark_s_copy_changes_on_its_own() -> None:
    marks = {0: Mark()}
    admit("oracle", marks, [event("c", "a", at(1))])
    copy = marks[0].copy()
    assert [verdict for _, verdict in admit("oracle", {0: copy}, [event("c", "b", at(1))]).judged] == [Verdict.NEW]
    assert marks[0].ties != copy.ties
