"""Rules 2.4 and 2.6 for columns: if all positions of a partition's changes rise, and begin above its mark, all these
changes are new.

In all other partitions, such as those with events that are sent again, each event is compared with the mark
(deduplicate.py). Answers and marks are the same both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.columns import (
    DELETE,
    LETTERS,
    SNAPSHOT_ROW,
    TOMBSTONE_CODE,
    Bools,
    EventColumns,
    Ints,
    as_bools,
    compare_rows,
)
from distributary.rules.deduplicate import Mark, Verdict, await_tombstone, deduplicate, identity_of, move_mark
from distributary.rules.event import Event
from distributary.rules.log_traits import log_traits
from distributary.rules.order import sort_key
from distributary.rules.state import RuleSettings, RulesState


@dataclass
class JudgedColumns:
    """`new`: whether each row is new (Verdict.NEW); `kafka_time`: the latest timestamp of its partition up to each row;
    `events`: the events of rows that were compared one by one."""

    new: Bools
    kafka_time: Ints
    events: dict[int, Event] = field(default_factory=dict)
    went_back: list[Event] = field(default_factory=list)

    def event(self, columns: EventColumns, row: int) -> Event:
        """The event of a row, with its arrival."""
        event = self.events.get(row)
        if event is None:
            event = columns.event(row)
            event = replace(event, arrival=(int(self.kafka_time[row]), event.partition, event.offset))
        return event


def deduplicate_columns(
    rules: RuleSettings, state: RulesState, columns: EventColumns, order: Ints, rises: Bools
) -> JudgedColumns:
    """Decides for all rows whether they are new, and moves the marks. `order`: the rows by key, those of a key in the
    order of arrival; `rises`: see plain_keys.order_by_key."""
    judged = JudgedColumns(np.ones(columns.count, np.bool_), columns.ints("timestamp"))
    before = _rows_before(columns, order)
    for partition in np.unique(columns.partition):
        rows = np.flatnonzero(columns.partition == partition)
        mark = state.marks.setdefault(int(partition), Mark())
        streamed = rows[(columns.operation[rows] != SNAPSHOT_ROW) & (columns.operation[rows] != TOMBSTONE_CODE)]
        if bool(rises[rows].all()) and _is_above(rules, columns, mark, streamed):
            _deduplicate_rising(rules, columns, mark, rows, streamed, before, judged)
        else:
            _deduplicate_one_by_one(rules, state, columns, rows, judged)
    return judged


def _rows_before(columns: EventColumns, order: Ints) -> Ints:
    """For each row the previous row of its key, -1 for none."""
    before = np.full(columns.count, -1, np.int64)
    codes = columns.codes[order]
    same = np.flatnonzero((codes[1:] == codes[:-1]) & (codes[1:] >= 0)) + 1
    before[order[same]] = order[same - 1]
    return before


def _is_above(rules: RuleSettings, columns: EventColumns, mark: Mark, streamed: Ints) -> bool:
    """Whether streamed rows rise from above the mark, so that all of them are new."""
    if mark.unknown or mark.cleared:
        return False
    if not len(streamed):
        return True
    level = columns.column("level").take(pa.array(streamed))
    if level.null_count:
        return False
    later, same, _ = compare_rows(columns, streamed)
    if log_traits(rules.connector).grouped_by_level:
        in_order = as_bools(pc.greater_equal(level[1:], level[:-1]))
    else:
        in_order = later | same
    without_key = streamed[columns.codes[streamed] < 0]
    if not in_order.all() or not compare_rows(columns, without_key)[0].all():
        return False
    first = columns.event(int(streamed[0])).position
    if first is None or mark.position is None:
        return first is not None
    if (first.epoch, first.server) != (mark.position.epoch, mark.position.server):
        return False
    return sort_key(rules.connector, first) > sort_key(rules.connector, mark.position)


def _deduplicate_one_by_one(
    rules: RuleSettings, state: RulesState, columns: EventColumns, rows: Ints, judged: JudgedColumns
) -> None:
    events = [columns.event(row) for row in rows.tolist()]
    judged_events = deduplicate(
        rules.connector,
        state.marks,
        events,
        deletes_are_null=rules.deletes_are_null,
        compacted=rules.compacted,
        partitions_changed=state.partitions_changed,
        partition_change_unread=state.partition_change_unread,
        partitions=state.partitions,
    )
    for row, (event, verdict) in zip(rows.tolist(), judged_events.verdicts, strict=True):
        judged.events[row] = event
        judged.kafka_time[row] = event.arrival[0]
        judged.new[row] = verdict is Verdict.NEW
    judged.went_back += judged_events.of(Verdict.WENT_BACK)


def _deduplicate_rising(
    rules: RuleSettings,
    columns: EventColumns,
    mark: Mark,
    rows: Ints,
    streamed: Ints,
    before: Ints,
    judged: JudgedColumns,
) -> None:
    kafka_time = np.maximum.accumulate(np.maximum(judged.kafka_time[rows], mark.kafka_time))
    judged.kafka_time[rows] = kafka_time
    mark.kafka_time = int(kafka_time[-1])
    lone_tombstones = _await_tombstones(columns, mark, rows[columns.codes[rows] >= 0], before, judged)
    if len(streamed):
        _move(rules, columns, mark, streamed)
        lone_tombstones = {row: name for row, name in lone_tombstones.items() if row > streamed[-1]}
    if rules.deletes_are_null:
        mark.cleared.update(lone_tombstones.values())


def _await_tombstones(
    columns: EventColumns, mark: Mark, rows: Ints, before: Ints, judged: JudgedColumns
) -> dict[int, str]:
    """Rule 3.3: deletes and tombstones of a key alternate; where they do not, they are counted one by one. Returns row
    and key of each tombstone without a delete."""
    operation, codes, behind = columns.operation[rows], columns.codes[rows], before[rows]
    after_delete = (behind >= 0) & (columns.operation[behind] == DELETE)
    odd = np.zeros(len(columns.names), np.bool_)
    odd[codes[((operation == TOMBSTONE_CODE) & ~after_delete) | ((operation == DELETE) & after_delete)]] = True
    odd[columns.codes_of(mark.awaiting_tombstone)] = True
    judged.new[rows[(operation == TOMBSTONE_CODE) & ~odd[codes]]] = False
    _, from_end = np.unique(codes[::-1], return_index=True)
    is_last = np.zeros(len(rows), np.bool_)
    is_last[len(rows) - 1 - from_end] = True
    counted = rows[odd[codes] | (is_last & (operation == DELETE))]
    offsets = columns.ints("offset")
    names = columns.names.take(pa.array(columns.codes[counted])).to_pylist()
    lone_tombstones: dict[int, str] = {}
    for row, name in zip(counted.tolist(), names, strict=True):
        op = LETTERS[columns.operation[row]]
        if columns.operation[row] == TOMBSTONE_CODE:
            judged.new[row] = name not in mark.awaiting_tombstone
            if judged.new[row]:
                lone_tombstones[row] = name
        arrival = (int(judged.kafka_time[row]), int(columns.partition[row]), int(offsets[row]))
        await_tombstone(mark, op, name, arrival, is_new=True)
    return lone_tombstones


def _move(rules: RuleSettings, columns: EventColumns, mark: Mark, streamed: Ints) -> None:
    """Moves the mark to where move_mark would move it row by row. Only three kinds of rows matter for the result: those
    with the latest time, with the highest `sub_position`, and at the last position."""
    sub_position = columns.column("sub_position").take(pa.array(streamed))
    latest, highest = np.argmax(columns.ints("time")[streamed]), pc.index(sub_position, pc.max(sub_position)).as_py()
    rows = {int(streamed[latest]), int(streamed[highest])}
    last = columns.event(int(streamed[-1])).position
    assert last is not None
    for row in streamed[::-1].tolist():
        position = columns.event(row).position
        assert position is not None
        if sort_key(rules.connector, position) != sort_key(rules.connector, last):
            break
        rows.add(row)
    for row in sorted(rows):
        event = columns.event(row)
        assert event.position is not None
        move_mark(rules.connector, mark, event.position, identity_of(event, event.position))
