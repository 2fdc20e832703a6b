"""What a table must hold after a set of records: the reference that the service is tested against.

One record after the other, in the order in which they came; across partitions by the records' timestamps. Nothing is
batched, nothing is forgotten, so that the outcome can't depend on either. Values are not looked at: a row is the
`after` of the change that wrote it. Unavailable values are not filled in here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.model.event import Event, Position, read
from tests.support.recorded import Record


@dataclass
class _Key:
    """What is known of one key: its row (the event that wrote it), the newest position, and what was seen."""

    row: Event | None = None
    row_position: Position | None = None
    newest: Position | None = None
    newest_transaction: str | None = None
    newest_operation: str = ""
    seen: set[str] = field(default_factory=set)
    last_operation: dict[int, str] = field(default_factory=dict)
    rows_under_it: int = 0
    """Rows that the running transaction has yet to move away from under the one it brought to this key."""


def fold(records: Iterable[Record]) -> dict[str, Event]:
    """The rows of a table by key (the key's JSON), each as the event that wrote it."""
    keys: dict[str, _Key] = {}
    truncates: list[Event] = []
    for event in map(read, _by_arrival(records)):
        if event.operation == "t":
            truncates.append(event)
            for state in keys.values():
                _truncate(state, event)
        elif event.key is not None and event.operation != "m":
            state = keys.setdefault(event.key, _Key())
            _take(state, event)
            for truncate in truncates:
                _truncate(state, truncate)
    return {key: state.row for key, state in keys.items() if state.row is not None}


def _by_arrival(records: Iterable[Record]) -> list[Record]:
    """By timestamp, but never against the offsets of a partition: timestamps may run backwards within one."""
    latest: dict[tuple[str, int], int] = {}
    arrival = []
    for record in sorted(records, key=lambda record: (record.topic, record.partition, record.offset)):
        place = (record.topic, record.partition)
        latest[place] = max(latest.get(place, record.timestamp), record.timestamp)
        arrival.append(((latest[place], record.partition, record.offset), record))
    return [record for _, record in sorted(arrival, key=lambda entry: entry[0])]


def _take(state: _Key, event: Event) -> None:
    before, partition = state.last_operation, event.record.partition
    previous, before[partition] = before.get(partition, ""), event.operation
    if event.operation == "tombstone":
        if previous != "d":
            state.row, state.newest_operation = None, "tombstone"
        return
    if event.identity in state.seen:
        return
    state.seen.add(event.identity)
    if event.connector == "postgresql" and event.operation == "r":
        state.row, state.row_position = event, _later(state.newest, event.position)
        return
    order = _order(state, event)
    if order < 0 or (order == 0 and event.operation == "d" and state.newest_operation in ("c", "u", "r")):
        return
    if event.transaction is None or event.transaction != state.newest_transaction:
        state.rows_under_it = 0
    if event.operation == "d":
        _delete(state)
    else:
        if event.brought_by_key_change and state.row is not None:
            state.rows_under_it += 1
        state.row, state.row_position = event, event.position
    state.newest, state.newest_transaction = event.position, event.transaction
    state.newest_operation = event.operation


def _delete(state: _Key) -> None:
    """Under a deferred constraint a transaction may bring a row to a key before it moves the old one away: the delete
    that follows means the old one."""
    if state.rows_under_it:
        state.rows_under_it -= 1
    else:
        state.row = state.row_position = None


def _order(state: _Key, event: Event) -> int:
    """Below zero: older than the newest known; zero: at the same place; above: newer."""
    if state.newest is None or event.position is None:
        return 1
    if event.position.level is None or state.newest.level is None:
        # The transaction after a start does not know the one before it. Inside one transaction the log's own order
        # holds; what was seen before is gone already; for all else the order of arrival is what there is.
        if event.transaction != state.newest_transaction:
            return 1
        return _compare(event.position.inside, state.newest.inside)
    newest = (state.newest.level, state.newest.inside)
    return _compare((event.position.level, event.position.inside), newest)


def _truncate(state: _Key, truncate: Event) -> None:
    if state.row_position is not None and _precedes(state.row_position, truncate.position):
        state.row = state.row_position = None


def _precedes(row: Position, truncate: Position | None) -> bool:
    if truncate is None:
        return True
    if row.level is None or truncate.level is None:
        return _compare(row.inside, truncate.inside) < 0
    return _compare((row.level, row.inside), (truncate.level, truncate.inside)) < 0


def _later(one: Position | None, other: Position | None) -> Position | None:
    if one is None or other is None:
        return one or other
    return other if _precedes(one, other) else one


def _compare(one: tuple[object, ...], other: tuple[object, ...]) -> int:
    return (one > other) - (one < other)
