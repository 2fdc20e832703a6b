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
    compare_events,
)
from distributary.rules.deduplicate import Verdict, deduplicate
from distributary.rules.event import Event
from distributary.rules.high_water_mark import CLOCK_AHEAD, Mark, await_tombstone, move_mark
from distributary.rules.log_traits import log_traits
from distributary.rules.order import sort_key
from distributary.rules.state import RuleSettings, RulesState


@dataclass
class JudgedColumns:
    """`new`: whether each event is new (Verdict.NEW); `kafka_time`: the latest timestamp of its partition up to each
    event; `events`: those that were compared one by one, by their indexes; `without_order`: whether each
    event has this verdict; `went_back` and `contradicted`: those with these verdicts."""

    new: Bools
    kafka_time: Ints
    without_order: Bools
    events: dict[int, Event] = field(default_factory=dict)
    went_back: list[Event] = field(default_factory=list)
    contradicted: list[Event] = field(default_factory=list)

    def event(self, columns: EventColumns, index: int) -> Event:
        """The event at an index, with its arrival."""
        event = self.events.get(index)
        if event is None:
            event = columns.event(index)
            event = replace(event, arrival=(int(self.kafka_time[index]), event.partition, event.offset))
        return event


def deduplicate_columns(
    rules: RuleSettings, state: RulesState, columns: EventColumns, order: Ints, rises: Bools
) -> JudgedColumns:
    """Decides for all events whether they are new, and moves the marks. `order`: their indexes by key, those of a key
    in the order of arrival; `rises`: see plain_keys.order_by_key."""
    judged = JudgedColumns(
        np.ones(columns.count, np.bool_), columns.ints("timestamp"), np.zeros(columns.count, np.bool_)
    )
    before = _events_before(columns, order)
    for partition in np.unique(columns.partition):
        indexes = np.flatnonzero(columns.partition == partition)
        mark = state.marks.setdefault(int(partition), Mark())
        streamed = indexes[
            (columns.operation[indexes] != SNAPSHOT_ROW) & (columns.operation[indexes] != TOMBSTONE_CODE)
        ]
        if bool(rises[indexes].all()) and _is_above(rules, columns, mark, streamed):
            _deduplicate_rising(rules, columns, mark, indexes, streamed, before, judged)
        else:
            _deduplicate_one_by_one(rules, state, columns, indexes, judged)
    return judged


def _events_before(columns: EventColumns, order: Ints) -> Ints:
    """For each event the index of the previous one of its key, -1 for none."""
    before = np.full(columns.count, -1, np.int64)
    codes = columns.key_numbers[order]
    same = np.flatnonzero((codes[1:] == codes[:-1]) & (codes[1:] >= 0)) + 1
    before[order[same]] = order[same - 1]
    return before


def _is_above(rules: RuleSettings, columns: EventColumns, mark: Mark, streamed: Ints) -> bool:
    """Whether streamed events rise from above the mark, so that all of them are new."""
    if mark.unknown or mark.cleared:
        return False
    if not len(streamed):
        return True
    level = columns.column("level").take(pa.array(streamed))
    if level.null_count:
        return False
    later, same, _ = compare_events(columns, streamed)
    if log_traits(rules.connector).grouped_by_level:
        in_order = as_bools(pc.greater_equal(level[1:], level[:-1]))
    else:
        in_order = later | same
    without_key = streamed[columns.key_numbers[streamed] < 0]
    if not in_order.all() or not compare_events(columns, without_key)[0].all():
        return False
    first = columns.event(int(streamed[0])).position
    if first is None or mark.position is None:
        return first is not None
    if (first.epoch, first.server) != (mark.position.epoch, mark.position.server):
        return False
    return sort_key(rules.connector, first) > sort_key(rules.connector, mark.position)


def _deduplicate_one_by_one(
    rules: RuleSettings, state: RulesState, columns: EventColumns, indexes: Ints, judged: JudgedColumns
) -> None:
    events = [columns.event(index) for index in indexes.tolist()]
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
    for index, (event, verdict) in zip(indexes.tolist(), judged_events.verdicts, strict=True):
        judged.events[index] = event
        judged.kafka_time[index] = event.arrival[0]
        judged.new[index] = verdict is Verdict.NEW
        judged.without_order[index] = verdict is Verdict.WITHOUT_ORDER
    judged.went_back += judged_events.of(Verdict.WENT_BACK)
    judged.contradicted += judged_events.of(Verdict.CONTRADICTED)


def _deduplicate_rising(
    rules: RuleSettings,
    columns: EventColumns,
    mark: Mark,
    indexes: Ints,
    streamed: Ints,
    before: Ints,
    judged: JudgedColumns,
) -> None:
    kafka_time = np.maximum.accumulate(np.maximum(judged.kafka_time[indexes], mark.kafka_time))
    judged.kafka_time[indexes] = kafka_time
    mark.kafka_time = int(kafka_time[-1])
    lone_tombstones = _await_tombstones(columns, mark, indexes[columns.key_numbers[indexes] >= 0], before, judged)
    if len(streamed):
        _move(rules, columns, mark, streamed)
        lone_tombstones = {index: name for index, name in lone_tombstones.items() if index > streamed[-1]}
    if rules.deletes_are_null:
        mark.cleared.update(lone_tombstones.values())


def _await_tombstones(
    columns: EventColumns, mark: Mark, indexes: Ints, before: Ints, judged: JudgedColumns
) -> dict[int, str]:
    """Rule 3.3: deletes and tombstones of a key alternate; where they do not, they are counted one by one. Returns
    index and key of each tombstone without a delete."""
    operation, codes, behind = columns.operation[indexes], columns.key_numbers[indexes], before[indexes]
    after_delete = (behind >= 0) & (columns.operation[behind] == DELETE)
    odd = np.zeros(len(columns.keys), np.bool_)
    odd[codes[((operation == TOMBSTONE_CODE) & ~after_delete) | ((operation == DELETE) & after_delete)]] = True
    odd[columns.key_numbers_of(mark.awaiting_tombstone)] = True
    judged.new[indexes[(operation == TOMBSTONE_CODE) & ~odd[codes]]] = False
    _, from_end = np.unique(codes[::-1], return_index=True)
    is_last = np.zeros(len(indexes), np.bool_)
    is_last[len(indexes) - 1 - from_end] = True
    counted = indexes[odd[codes] | (is_last & (operation == DELETE))]
    offsets = columns.ints("offset")
    names = columns.keys.take(pa.array(columns.key_numbers[counted])).to_pylist()
    lone_tombstones: dict[int, str] = {}
    for index, name in zip(counted.tolist(), names, strict=True):
        op = LETTERS[columns.operation[index]]
        if columns.operation[index] == TOMBSTONE_CODE:
            judged.new[index] = name not in mark.awaiting_tombstone
            if judged.new[index]:
                lone_tombstones[index] = name
        arrival = (int(judged.kafka_time[index]), int(columns.partition[index]), int(offsets[index]))
        await_tombstone(mark, op, name, arrival, is_new=True)
    return lone_tombstones


def _move(rules: RuleSettings, columns: EventColumns, mark: Mark, streamed: Ints) -> None:
    """Moves the mark to where move_mark would move it event by event. Only four kinds of events matter for the result:
    those with the latest time and the latest likely one, with the highest `sub_position`, and at the last position."""
    sub_position = columns.column("sub_position").take(pa.array(streamed))
    times = columns.ints("time")[streamed]
    likely_times = np.where(times <= columns.ints("timestamp")[streamed] + CLOCK_AHEAD, times, 0)
    highest = pc.index(sub_position, pc.max(sub_position)).as_py()
    indexes = {int(streamed[place]) for place in (np.argmax(times), np.argmax(likely_times), highest)}
    last = columns.event(int(streamed[-1])).position
    assert last is not None
    for index in streamed[::-1].tolist():
        position = columns.event(index).position
        assert position is not None
        if sort_key(rules.connector, position) != sort_key(rules.connector, last):
            break
        indexes.add(index)
    for index in sorted(indexes):
        event = columns.event(index)
        assert event.position is not None
        move_mark(rules.connector, mark, event, event.position)
