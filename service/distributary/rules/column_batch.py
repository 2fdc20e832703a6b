"""A batch as columns: plain keys all at once, special keys event by event (event_processor.py), with the same
result."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.columns import DELETE, SNAPSHOT_ROW, TRUNCATE, EventColumns, Ints, as_bools
from distributary.rules.deduplicate import forget_snapshot_rows
from distributary.rules.deduplicate_columns import deduplicate_columns
from distributary.rules.event import Event
from distributary.rules.event_processor import EventProcessor, apply
from distributary.rules.outcome import BatchChanges
from distributary.rules.passed_positions import is_passed
from distributary.rules.plain_keys import PlainKeys, Rows, choose_plain, order_by_key
from distributary.rules.quarantine_order import note_events_without_order
from distributary.rules.state import RuleSettings, RulesState


def apply_columns(
    rules: RuleSettings, state: RulesState, columns: EventColumns, rows: Rows, replayed: Iterable[Event] = ()
) -> tuple[PlainKeys, BatchChanges]:
    """Updates the state with a batch, as event_processor.apply does. Returns the plain keys, and the changes of all
    other keys."""
    nothing = PlainKeys(columns.keys.slice(0, 0), *(np.zeros(0, np.int64) for _ in range(4)))
    if rules.keyless:
        events = [columns.event(index) for index in range(columns.count)]
        return nothing, apply(rules, state, events, rows.row, replayed)
    order, rises = order_by_key(columns)
    judged = deduplicate_columns(rules, state, columns, order, rises)
    changes = BatchChanges(went_back=judged.went_back, contradicted=judged.contradicted)
    new = judged.new
    if rules.truncate == "halt":
        truncates = np.flatnonzero(new & (columns.operation == TRUNCATE))
        changes.halting = [judged.event(columns, index) for index in truncates.tolist()]
    if changes.is_refused:
        return nothing, changes
    without_order = [judged.event(columns, index) for index in np.flatnonzero(judged.without_order).tolist()]
    changes.forgotten = note_events_without_order(rules, state, without_order)
    processor = EventProcessor(rules, state, rows.row, changes)
    for event in replayed:
        processor.replay(event)
    plain = choose_plain(rules, state, columns, order, rises, new, rows)
    is_plain = np.zeros(len(columns.keys) + 1, np.bool_)
    is_plain[plain.key_numbers] = True
    by_event = ~is_plain[columns.key_numbers] & ~judged.without_order
    if not (state.partitions_changed or rules.compacted):
        # Of events that were applied before, only the number is needed.
        changes.seen += int((~new & ~judged.without_order).sum())
        by_event &= new
    for index in np.flatnonzero(by_event).tolist():
        processor.process(judged.event(columns, index), is_new=bool(new[index]))
    if rules.mode != "append":
        _remember_deleted(rules, state, columns, plain)
    if columns.count and not (columns.operation == SNAPSHOT_ROW).any():
        forget_snapshot_rows(state.snapshot_rows)
    processor.finish()
    return plain, changes


def _remember_deleted(rules: RuleSettings, state: RulesState, columns: EventColumns, plain: PlainKeys) -> None:
    """Remembers the keys whose row was deleted, if an unread record may still have an older change of the key."""
    deleted = np.flatnonzero(columns.operation[plain.last] == DELETE)
    deleted = deleted[_find_unpassed(rules, state, columns, plain.last[deleted])]
    names = plain.keys.take(pa.array(deleted)).to_pylist()
    for name, row in zip(names, plain.last[deleted].tolist(), strict=True):
        position = columns.event(row).position
        assert position is not None
        state.deleted_keys[name] = position


def _find_unpassed(rules: RuleSettings, state: RulesState, columns: EventColumns, indexes: Ints) -> Ints:
    """The indexes of the events that some partition may not have passed. All events below the lowest level of these are
    passed."""
    if not len(indexes):
        return indexes
    level = columns.column("level").take(pa.array(indexes))
    by_level = np.asarray(pc.sort_indices(level)).astype(np.int64)
    low, high = 0, len(indexes) - 1
    while low < high:
        middle = (low + high) // 2
        if is_passed(rules.connector, state, columns.event(int(indexes[by_level[middle]])).position):
            low = middle + 1
        else:
            high = middle
    return np.flatnonzero(as_bools(pc.greater_equal(level, level[int(by_level[low])])))
