"""Finds the plain keys of a batch, and their new rows: that of the last change, or none.

EventProcessor would give the same result: its rules for two rows under one key, unavailable values, truncates and late
records do not apply to them. A key is plain if its new events in the batch

- are creates, updates and deletes of rising positions in one partition, or a single snapshot row;
- create no row where there is one already;
- are not marked as special, and no tombstone by itself is among them;
- are of a key that is neither special nor in `deleted_keys`, and no unread record can change its row.

No key is plain in `mode: history`, after the topic got more partitions until each key is in one of them again (rule
2.5), in a compacted topic, and in a batch in which a truncate may remove rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.rules.columns import (
    CREATE,
    DELETE,
    SNAPSHOT_ROW,
    TOMBSTONE_CODE,
    TRUNCATE,
    Bools,
    EventColumns,
    Ints,
    as_bools,
    compare_events,
)
from distributary.rules.deduplicate import SNAPSHOT_ROWS_REMEMBERED, remember_snapshot_rows
from distributary.rules.event import ADOPTED, Position
from distributary.rules.log_traits import log_traits
from distributary.rules.order import compare, may_show_change, precedes_truncate
from distributary.rules.passed_positions import is_passed
from distributary.rules.state import Row, RuleSettings, RulesState


@dataclass(frozen=True)
class FoundKeys:
    """The table's rows of some keys, as arrays in the order of the keys. `exists`: the table has a row of the key;
    `alive`: it is not marked as deleted; `partition`: that of the record that wrote it, or ADOPTED; `is_read`: a
    snapshot read it."""

    exists: Bools
    alive: Bools
    partition: Ints
    is_read: Bools


class Rows(Protocol):
    """The table's rows."""

    def find(self, keys: Any) -> FoundKeys:
        """The rows of many keys (an Arrow array) at once."""

    def snapshot_positions(self) -> Collection[Position] | None:
        """Positions of rows that a snapshot read: those of the batch's keys, and maybe others. None if that is not
        known without reading the rows."""

    def positions(self, keys: Any) -> Any:
        """For each of the keys (an Arrow array) a value that is equal for equal positions of their rows."""

    def row(self, key: str) -> Row | None:
        """One row, as Lookup in event_processor.py."""


@dataclass(frozen=True)
class PlainKeys:
    """`keys`: an Arrow array; `key_numbers`: their numbers (see EventColumns.key_numbers); `last`: the index in the
    batch of each key's last event; `put`: that of its last event that is no delete (-1: there is none).

    A key whose last event is a delete has no row any more; where deletes are soft, it keeps that of the last put, or
    the table's, marked as deleted. `appended`: the indexes of the events of `mode: append`.
    """

    keys: Any
    key_numbers: Ints
    last: Ints
    put: Ints
    appended: Ints


def order_by_key(columns: EventColumns) -> tuple[Ints, Bools]:
    """The indexes of the events by key, those of a key in the order of arrival; and for each event, whether it is the
    first change of its key, no change (a tombstone, say), or above the change before it in the same partition. At an
    equal position a create or update may follow a delete (rule 2.2)."""
    order = np.argsort(columns.key_numbers, kind="stable")
    operation = columns.operation[order]
    changes = order[(operation != TOMBSTONE_CODE) & (operation != SNAPSHOT_ROW) & (columns.key_numbers[order] >= 0)]
    rises = np.ones(columns.count, np.bool_)
    partition, by_key = columns.partition[order], columns.key_numbers[order]
    rises[order[1:]] = (by_key[1:] != by_key[:-1]) | (partition[1:] == partition[:-1]) | (by_key[1:] < 0)
    if len(changes) > 1:
        later, same, _ = compare_events(columns, changes)
        codes = columns.key_numbers[changes]
        upsert_after_delete = (columns.operation[changes[:-1]] == DELETE) & (columns.operation[changes[1:]] != DELETE)
        rises[changes[1:]] &= (codes[1:] != codes[:-1]) | later | (same & upsert_after_delete)
    return order, rises


def choose_plain(
    rules: RuleSettings, state: RulesState, columns: EventColumns, order: Ints, rises: Bools, new: Bools, rows: Rows
) -> PlainKeys:
    """The plain keys. Snapshot rows among them are remembered in the state."""
    order = order[new[order] & (columns.key_numbers[order] >= 0)]
    plain = np.zeros(len(columns.keys), np.bool_)
    if rules.mode != "history" and not state.partitions_changed and not rules.compacted and columns.is_uniform:
        plain[columns.key_numbers[order]] = True
        plain[columns.key_numbers_of(state.special)] = False
        plain[columns.key_numbers_of(state.without_order)] = False
        bad = columns.bools("special").copy()
        bad |= (columns.operation == SNAPSHOT_ROW) & ~_is_fresh(state, columns, new)
        plain[columns.key_numbers[np.flatnonzero(bad & (columns.key_numbers >= 0))]] = False
        if rules.mode != "append":
            if _truncates_reach(rules, state, columns, new):
                plain[:] = False
            plain[columns.key_numbers_of(state.deleted_keys)] = False
            plain[columns.key_numbers[_special_events(rules, columns, order, rises)]] = False
            _exclude_by_table(rules, state, columns, order, plain, rows)
    order = order[plain[columns.key_numbers[order]]]
    _remember_snapshot_rows(state, columns, order)
    codes = columns.key_numbers[order]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(order) else np.zeros(0, np.int64)
    last = np.r_[first[1:], len(order)] - 1 if len(order) else first
    puts = np.where(columns.operation[order] == DELETE, -1, np.arange(len(order)))
    put = np.maximum.reduceat(puts, first) if len(order) else first
    put_indexes = np.where(put >= 0, order[np.maximum(put, 0)], -1) if len(order) else first
    appended = np.sort(order[columns.operation[order] != TOMBSTONE_CODE]) if rules.mode == "append" else first[:0]
    return PlainKeys(columns.keys.take(pa.array(codes[first])), codes[first], order[last], put_indexes, appended)


def _is_fresh(state: RulesState, columns: EventColumns, new: Bools) -> Bools:
    """Whether a snapshot row arrives for the first time (rule 2.3), and once in this batch."""
    fresh = np.ones(columns.count, np.bool_)
    is_named = as_bools(pc.is_valid(columns.column("snapshot_identity")))
    snapshot_rows = np.flatnonzero((columns.operation == SNAPSHOT_ROW) & new & (columns.key_numbers >= 0) & is_named)
    if not state.snapshot_rows:  # then only rows of one key can be the same, and most snapshots read each key once
        of_key = columns.key_numbers[snapshot_rows]
        snapshot_rows = snapshot_rows[np.bincount(of_key, minlength=len(columns.keys))[of_key] > 1]
    if len(snapshot_rows):
        names = _snapshot_row_identities(columns, snapshot_rows)
        encoded = names.dictionary_encode()
        codes = np.asarray(encoded.indices)
        again = np.bincount(codes, minlength=len(encoded.dictionary))[codes] > 1
        known = as_bools(pc.is_in(names, pa.array(list(state.snapshot_rows), pa.string())))
        fresh[snapshot_rows] = ~(again | known)
    return fresh


def _snapshot_row_identities(columns: EventColumns, snapshot_rows: Ints) -> Any:
    keys = columns.keys.take(pa.array(columns.key_numbers[snapshot_rows])).cast(pa.string())
    identities = columns.column("snapshot_identity").take(pa.array(snapshot_rows)).fill_null("None")
    content = columns.column("content").take(pa.array(snapshot_rows)).fill_null("None")
    return pc.binary_join_element_wise(keys, identities, content, " ")


def _remember_snapshot_rows(state: RulesState, columns: EventColumns, indexes: Ints) -> None:
    snapshot_rows = np.sort(indexes[columns.operation[indexes] == SNAPSHOT_ROW])
    if len(snapshot_rows):
        remember_snapshot_rows(
            state.snapshot_rows,
            _snapshot_row_identities(columns, snapshot_rows[-SNAPSHOT_ROWS_REMEMBERED:]).to_pylist(),
        )


def _truncates_reach(rules: RuleSettings, state: RulesState, columns: EventColumns, new: Bools) -> bool:
    """Whether a truncate may remove a row that the batch writes."""
    if bool((new & (columns.operation == TRUNCATE)).any()):
        return True
    if not state.truncates:
        return False
    if bool((new & (columns.operation == SNAPSHOT_ROW)).any()):
        return True
    changes = np.flatnonzero(new & (columns.operation != TOMBSTONE_CODE))
    if not len(changes):
        return False
    by_sub_position = log_traits(rules.connector).truncates_by_sub_position
    column = columns.column("sub_position" if by_sub_position else "level").take(pa.array(changes))
    if column.null_count:
        return True
    lowest = columns.event(int(changes[pc.index(column, pc.min(column)).as_py()])).position
    for truncate in state.truncates:
        if truncate.quarantined or truncate.position is None or lowest is None:
            return True
        if precedes_truncate(rules.connector, lowest, truncate.position):
            return True
        if not by_sub_position and (
            compare(rules.connector, lowest, truncate.position) <= 0 or lowest.level == truncate.position.level
        ):
            return True
    return False


def _special_events(rules: RuleSettings, columns: EventColumns, order: Ints, rises: Bools) -> Ints:
    """The indexes of the events that make their key special, each by itself or together with the one before it."""
    operation, codes = columns.operation[order], columns.key_numbers[order]
    bad = (operation == TOMBSTONE_CODE) | (operation == TRUNCATE)
    bad |= (operation != SNAPSHOT_ROW) & ~as_bools(pc.is_valid(columns.column("level").take(pa.array(order))))
    bad |= ~rises[order]
    if len(order) > 1:
        same = codes[1:] == codes[:-1]
        put_before = operation[:-1] != DELETE
        over = (
            ((operation[1:] == CREATE) & put_before)
            | (operation[1:] == SNAPSHOT_ROW)
            | (operation[:-1] == SNAPSHOT_ROW)
        )
        partition = columns.partition[order]
        over |= partition[1:] != partition[:-1]
        later, equal, higher = compare_events(columns, order)
        traits = log_traits(rules.connector)
        if traits.truncates_by_sub_position:
            over |= later & ~higher
        if traits.ties_by_arrival:
            over |= equal
        bad[1:] |= same & over
    special_events: Ints = order[bad]
    return special_events


def _exclude_by_table(
    rules: RuleSettings, state: RulesState, columns: EventColumns, order: Ints, plain: Bools, rows: Rows
) -> None:
    """Leaves out keys that are not plain because of their row in the table."""
    order = order[plain[columns.key_numbers[order]]]
    if not len(order):
        return
    codes = columns.key_numbers[order]
    first = order[np.r_[True, codes[1:] != codes[:-1]]]
    codes = columns.key_numbers[first]
    table_rows = rows.find(columns.keys.take(pa.array(codes)))
    operation = columns.operation[first]
    bad = (table_rows.alive & (operation == CREATE)) | (table_rows.exists & (operation == SNAPSHOT_ROW))
    bad |= table_rows.exists & (table_rows.partition != columns.partition[first]) & (table_rows.partition != ADOPTED)
    if log_traits(rules.connector).snapshot_rows_by_arrival:
        bad |= table_rows.exists & ~table_rows.alive
    bad |= table_rows.is_read & ~table_rows.alive
    read = np.flatnonzero(table_rows.is_read)
    if len(read):
        may_change = _older_changes_of(rules, state, columns, order)
        known = rows.snapshot_positions()
        if known is None or any(map(may_change, known)):
            positions = rows.positions(columns.keys.take(pa.array(codes[read]))).dictionary_encode()
            for number in range(len(positions.dictionary)):
                of_snapshot = read[as_bools(pc.equal(positions.indices, number))]
                row = rows.row(columns.keys[codes[of_snapshot[0]]].as_py())
                bad[of_snapshot] |= row is None or may_change(row.position)
    plain[codes[bad]] = False


def _older_changes_of(
    rules: RuleSettings, state: RulesState, columns: EventColumns, order: Ints
) -> Callable[[Position | None], bool]:
    """Rule 2.3: whether changes from before the snapshot that read a row at this position may come."""
    if not log_traits(rules.connector).snapshot_rows_by_arrival:
        return lambda position: not is_passed(rules.connector, state, position)
    changes = order[columns.operation[order] != SNAPSHOT_ROW]
    if not len(changes):
        return lambda _position: True
    sub_positions = columns.column("sub_position").take(pa.array(changes))
    lowest = columns.event(int(changes[pc.index(sub_positions, pc.min(sub_positions)).as_py()])).position
    return lambda position: may_show_change(rules.connector, position, lowest)
