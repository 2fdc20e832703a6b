"""A batch as columns, where it differs from the events of the model's histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.model.event_columns import LookupRows, columns_of
from tests.support.rule_history import at, event

from distributary.rules.column_batch import apply_columns
from distributary.rules.deduplicate import deduplicate
from distributary.rules.event import Event, Position
from distributary.rules.high_water_mark import CLOCK_AHEAD, Mark
from distributary.rules.state import Row, RuleSettings, RulesState


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


def test_2_6_columns_change_nothing_where_a_position_is_contradicted() -> None:
    batch = [event("c", "a", at(5, time=10)), event("u", "a", at(3, time=2**50)), event("u", "b", at(6, time=20))]
    batch = [replace(one, offset=offset) for offset, one in enumerate(batch)]
    plain, changes = apply_columns(RuleSettings("sqlserver"), RulesState(), columns_of(batch), LookupRows(no_row))
    assert [one.at for one in changes.contradicted] == [(0, 1)]
    assert not changes.went_back
    assert not len(plain.keys)
    assert not changes.outcomes


def test_2_6_columns_leave_out_a_record_in_quarantine_that_went_back() -> None:
    batch = [event("c", "a", at(5, time=10)), event("d", "a", at(3, time=2**50)), event("u", "b", at(6, time=20))]
    batch = [replace(one, offset=offset, quarantined=offset == 1) for offset, one in enumerate(batch)]
    state = RulesState()
    plain, changes = apply_columns(RuleSettings("sqlserver"), state, columns_of(batch), LookupRows(no_row))
    written = {batch[row].key for row in plain.last.tolist()} | changes.outcomes.keys()
    assert (written, changes.seen, changes.is_refused) == ({"a", "b"}, 0, False)
    assert state.without_order == {"a": ((0, 1),)}


def test_2_6_columns_move_a_mark_as_single_events_do_if_times_are_ahead_of_kafkas() -> None:
    times = [(10, 10), (12 + 2 * CLOCK_AHEAD, 11), (15, 12), (13, 14), (3 * CLOCK_AHEAD, 15)]
    batch = [
        event("c", str(place), at(5 + place, time=time), offset=place, time=kafka_time)
        for place, (time, kafka_time) in enumerate(times)
    ]
    state = RulesState()
    apply_columns(RuleSettings("sqlserver"), state, columns_of(batch), LookupRows(no_row))
    marks: dict[int, Mark] = {}
    deduplicate("sqlserver", marks, batch)
    assert state.marks == marks
    assert (marks[0].time, marks[0].likely_time) == (3 * CLOCK_AHEAD, 15)


class ReadTable(LookupRows):
    """A table with a row that a snapshot read at position 5. `known`: the positions that are known without reading
    rows."""

    def __init__(self, known: Sequence[Position] | None) -> None:
        super().__init__({"a": Row((0, 0), "r", at(5), at(5), None)}.get)
        self._known = known
        self.reads = 0

    def snapshot_positions(self) -> list[Position]:
        return self._known  # type: ignore[return-value]  # or None

    def positions(self, keys: pa.Array) -> pa.Array:
        self.reads += 1
        return super().positions(keys)


@pytest.mark.parametrize(
    ("other_partition", "known", "is_plain", "reads"),
    [
        (8, [at(5)], True, 0),
        (8, [at(5), at(20)], True, 1),
        (8, None, True, 1),
        (3, [at(5)], False, 1),
        (3, None, False, 1),
    ],
)
def test_2_3_a_row_that_a_snapshot_read_is_plain_once_no_older_change_can_come(
    other_partition: int, known: Sequence[Position] | None, is_plain: bool, reads: int
) -> None:
    """Its position is only read if that of any snapshot row in its row group is not passed."""
    state = RulesState(partitions=2, marks={0: Mark(at(9)), 1: Mark(at(other_partition))})
    table = ReadTable(known)
    plain, changes = apply_columns(
        RuleSettings("sqlserver"), state, columns_of([event("u", "a", at(10), offset=1)]), table
    )
    assert (plain.keys.to_pylist(), list(changes.outcomes)) == ((["a"], []) if is_plain else ([], ["a"]))
    assert table.reads == reads
