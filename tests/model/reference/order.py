"""The order of one key's changes, from all of its records at once.

Repeated records are removed, then every change is put in order. An event without a position (a snapshot row of
PostgreSQL, a tombstone by itself) follows all events that arrived before it. The result does not depend on the
boundaries of batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.model.reference.event import TOMBSTONE, Event, Position

_EQUAL_MEANS_LATER = ("oracle",)
"""Connectors whose changes of one row may share a position in any order; for all others a delete comes first there."""


def by_arrival(events: Iterable[Event]) -> list[Event]:
    """By timestamp, but in the order of the offsets within a partition, where timestamps may go backwards."""
    latest: dict[tuple[str, int], int] = {}
    arrival = []
    for event in sorted(events, key=lambda event: (event.record.topic, event.record.partition, event.record.offset)):
        record = event.record
        place = (record.topic, record.partition)
        latest[place] = max(latest.get(place, record.timestamp), record.timestamp)
        arrival.append(((latest[place], record.partition, record.offset), event))
    return [event for _, event in sorted(arrival, key=lambda entry: entry[0])]


def levelled(events: list[Event]) -> list[Event]:
    """A table's events, each with the level of its transaction if any record of the transaction has it."""
    levels = {
        event.transaction: event.position.level
        for event in events
        if event.transaction and event.position and event.position.level is not None and not stands_by_arrival(event)
    }
    return [
        replace(event, position=replace(event.position, level=levels[event.transaction]))
        if event.position and event.position.level is None and event.transaction in levels
        else event
        for event in events
    ]


def once(events: list[Event]) -> list[Event]:
    """One key's events in the order of arrival without repeated ones, and without the tombstones that belong to a
    delete."""
    seen: set[str] = set()
    before: dict[int, str] = {}
    newest = ""
    found = []
    for event in events:
        partition = event.record.partition
        # A topic may get another partition between a delete and its tombstone.
        previous, before[partition] = before.get(partition, newest), event.op
        newest = event.op
        if event.op == TOMBSTONE:
            if previous != "d":
                # It has no position: what it deleted may be sent again, and counts again where nothing came later.
                seen.clear()
                found.append(event)
        elif event.identity is None:
            found.append(event)
        elif event.identity not in seen:
            seen.add(event.identity)
            found.append(event)
    return found


def in_order(arrived: list[Event]) -> list[Event]:
    """One key's events, each once and in the order of arrival, in the order of the source."""
    order: list[Event] = []
    has_deletes = any(event.op == "d" for event in arrived)
    for event in arrived:
        if stands_by_arrival(event):
            order.append(event)
            continue
        place = next((i for i in reversed(range(len(order))) if _not_after(order[i], event)), -1)
        later = order[place + 1 :]
        newest = all(map(stands_by_arrival, later if has_deletes else _without_wiped_snapshot_rows(later)))
        if newest and (place < 0 or _compare(order[place], event) < 0 or _wiped(order[place + 1 :])):
            order.append(event)
        else:
            order.insert(place + 1, event)
    return order


def stands_by_arrival(event: Event) -> bool:
    """Whether an event is ordered by its arrival alone."""
    read_beside = event.op == "r" and event.connector == "postgresql"
    return event.op == TOMBSTONE or event.position is None or read_beside


def _without_wiped_snapshot_rows(later: list[Event]) -> list[Event]:
    """A snapshot that was taken while the connector was behind is above changes that arrive after a tombstone. Where
    tombstones are the only deletes, these changes are newer than what the tombstone deleted."""
    last = max((i for i, event in enumerate(later) if event.op == TOMBSTONE), default=-1)
    return [event for i, event in enumerate(later) if event.op != "r" or i > last]


def _wiped(later: list[Event]) -> bool:
    return any(event.op == TOMBSTONE for event in later)


def _not_after(one: Event, other: Event) -> bool:
    return not stands_by_arrival(one) and _compare(one, other) <= 0


def _compare(one: Event, other: Event) -> int:
    """Below zero: `one`, which arrived earlier, is before `other`."""
    assert one.position is not None
    assert other.position is not None
    if one.position.level is None or other.position.level is None:
        # The transaction after a start does not know the commit before it. What lies in the log before the commit that
        # another one knows, is older than that one: both had to lock the row. An insert may be written while it still
        # has to wait for another transaction's delete; that one looks older than it is.
        return _sign(_reach(one.position), _reach(other.position))
    sign = _sign((one.position.level, one.position.sub_position), (other.position.level, other.position.sub_position))
    if sign or one.connector in _EQUAL_MEANS_LATER:
        return sign
    return _sign((one.op != "d",), (other.op != "d",))


def _reach(position: Position) -> tuple[int | str, ...]:
    return max(position.level or position.sub_position, position.sub_position)


def precedes(one: Position | None, other: Position | None) -> bool:
    """Whether a row written at `one` is older than a truncate at `other`. A row without a position counts as older."""
    if one is None or other is None:
        return True
    if one.level is None or other.level is None:
        return one.sub_position < other.sub_position
    return (one.level, one.sub_position) < (other.level, other.sub_position)


def later(one: Position | None, other: Position | None) -> Position | None:
    """The higher of two positions."""
    if one is None or other is None:
        return one or other
    return other if precedes(one, other) else one


def _sign(one: tuple[object, ...], other: tuple[object, ...]) -> int:
    return (one > other) - (one < other)
