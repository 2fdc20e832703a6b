"""Rules 2.4 and 2.8: a key's events in the source's order, and what they leave, however they were cut into batches.

fold(state, A + B) == fold(fold(state, A), B): `recent` keeps events, not their result, until no record that is still
unread can come between them. Only then do they become `base`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from distributary.rules.event import TOMBSTONE, Event, Pointer, Position
from distributary.rules.order import compare, compare_events, is_ordered_by_arrival, latest
from distributary.rules.state import KeyState, Row
from distributary.rules.step import Line, Version, step
from distributary.rules.truncate import comes_again, follows


def insert(connector: str, key: KeyState, event: Event) -> bool:
    """Puts an event to its place among its key's, which all come from one partition; False if it was there.

    There they arrive in the source's order. Only snapshot rows have a place of their own (rule 2.3), behind changes
    that a blocking snapshot keeps the connector from sending before them. PostgreSQL's have none. A change that is not
    above the key's highest was sent again, and compaction had taken its first copy. Copies of the time in which the
    topic grew are no boundary; a tombstone by itself is one (rule 3.3).
    """
    recent, place = key.recent, len(key.recent)
    if connector != "postgresql" and not is_ordered_by_arrival(connector, event):
        unsettled = [other.position for other in recent if _streamed(other) and not other.quarantined]
        if _is_in_base(connector, key, event) or is_read_before(connector, key, event, unsettled):
            return False
        for i in reversed(range(len(recent))):
            if recent[i].is_copy:
                continue
            if not _is_before(connector, event, recent[i]):
                break
            if _streamed(event) and _streamed(recent[i]):
                return False
            place = i
    recent.insert(place, event)
    return True


def _is_before(connector: str, one: Event, other: Event) -> bool:
    return not is_ordered_by_arrival(connector, other) and compare_events(connector, one, other) < 0


def split(recent: Sequence[Event], count: int) -> tuple[list[Event], list[Event]]:
    """The first events and the rest. A tombstone that loses its delete so is kept as a copy: by itself it would take
    the row of a snapshot that stands between the two."""
    settled, rest = list(recent[:count]), list(recent[count:])
    separated = companions_of(recent) - companions_of(rest) if settled else set()
    return settled, [replace(event, is_copy=True) if event.at in separated else event for event in rest]


def merge(connector: str, key: KeyState, event: Event) -> bool:
    """Rule 2.5: puts an event to its place where a key's events may come from two partitions; False if it was there.

    What was sent again may come first: a change is known by its identity, or lies at or below the highest position of
    `base`. Of copies the one that arrived first counts, with the position of one whose level is known.
    """
    same = next((other for other in key.recent if is_same(other, event)), None)
    if same is None:
        if _is_in_base(connector, key, event) or is_read_before(connector, key, event):
            return False
    else:
        position = _with_level(same.position, event.position)
        if same.arrival <= event.arrival and position == same.position:
            return False
        key.recent.remove(same)
        if same.op == "d" and same.arrival > event.arrival:
            keep_copy(connector, key, same)
        event = replace(same, position=position, arrival=min(same.arrival, event.arrival))
    key.recent = _in_order(connector, [*key.recent, event])
    return same is None


def _with_level(one: Position | None, other: Position | None) -> Position | None:
    """The first of a change's two positions, the other one if only that has a level."""
    return other if one is not None and one.level is None and other is not None else one


def is_above(connector: str, key: KeyState, event: Event) -> bool:
    """Whether a change lies above all of its key that are known, a snapshot row as well."""
    base = key.base
    if base is not None and base.op == "r" and base.position is not None and connector != "postgresql":
        assert event.position is not None
        if compare(connector, event.position, base.position) <= 0:
            return False
    return not _is_in_base(connector, key, event) and all(
        _streamed(other) is None or compare_events(connector, event, other) > 0 for other in key.recent
    )


def _is_in_base(connector: str, key: KeyState, event: Event) -> bool:
    at = _streamed(event)
    if at is None or key.known is None:
        return False
    sign = compare(connector, at, key.known)
    # Rule 2.2: a delete and a put may share a position, and the put comes after the delete.
    deleted = key.base is None or key.base.ended == "d"
    return sign < 0 or (sign == 0 and not (deleted and event.op != "d"))


def is_read_before(connector: str, key: KeyState, event: Event, unsettled: Iterable[Position | None] = ()) -> bool:
    """Rule 2.3: whether a snapshot row was read before the newest change of its key, or another snapshot row, that is
    applied: a snapshot may come late. `unsettled`: changes that came by the same partition before it. PostgreSQL's rows
    do not tell. Of another server's log nothing is known: after a failover its numbers may be lower, and a snapshot row
    has no GTID."""
    if event.op != "r" or event.position is None or connector == "postgresql":
        return False
    read = key.base.position if key.base is not None and key.base.op == "r" else None
    return any(
        at is not None and at.server == event.position.server and compare(connector, event.position, at) < 0
        for at in (key.known, read, *unsettled)
    )


def keep_copy(connector: str, key: KeyState, event: Event) -> None:
    """Keeps a delete that was sent again in front of its tombstone, which may come by way of another partition; and a
    tombstone that has come."""
    key.recent = _in_order(connector, [*key.recent, replace(event, is_copy=True, quarantined=False)])


def is_same(one: Event, other: Event) -> bool:
    """Whether two events of a key are the same record, or copies of it."""
    if one.at == other.at:
        return True
    if one.op != other.op or one.op == TOMBSTONE or one.is_copy:
        return False
    if one.content != other.content and None not in (one.content, other.content):
        return False
    if one.op == "r":
        return one.snapshot_identity is not None and one.snapshot_identity == other.snapshot_identity
    return one.change is not None and one.change == other.change


def _in_order(connector: str, events: Iterable[Event]) -> list[Event]:
    """Rule 2.1: by position; what has none stands after all that had arrived before it (rules 2.3, 3.3)."""
    order: list[Event] = []
    for event in sorted(events, key=lambda event: event.arrival):
        if is_ordered_by_arrival(connector, event):
            order.append(event)
            continue
        place = next((i for i in reversed(range(len(order))) if _not_after(connector, order[i], event)), -1)
        later = order[place + 1 :]
        newest = all(is_ordered_by_arrival(connector, other) for other in later)
        if newest and (place < 0 or compare_events(connector, order[place], event) < 0):
            order.append(event)
        else:
            deletes = _sent_before(event, later)
            order[place + 1 :] = [*deletes, event, *(other for other in later if other not in deletes)]
    return order


def _sent_before(event: Event, later: Sequence[Event]) -> list[Event]:
    """Rule 3.3: the tombstones that a change has its place behind, of what arrived before it and stands `later`. If
    they are the only form of deletes they were streamed before it, though behind the row of a blocking snapshot.
    """
    if _streamed(event) is None:
        return []
    unstreamed = takewhile(lambda other: _streamed(other) is None, later)
    return [other for other in unstreamed if other.op == TOMBSTONE and not other.is_copy]


def _not_after(connector: str, one: Event, other: Event) -> bool:
    return not is_ordered_by_arrival(connector, one) and compare_events(connector, one, other) <= 0


def fold(
    connector: str,
    key: KeyState,
    events: Sequence[Event],
    truncates: Sequence[Event],
    remembered: Sequence[Event] | None = None,
    following: Sequence[Event] = (),
) -> Line:
    """What `base` and then `events` leave, with the truncates at their places among them (rule 3.6). Both are in
    order. `remembered`: all truncates, if those that come only after later events are left out. `following`: later
    events, which only tell what the key held before them."""
    line = Line(known=key.known)
    if key.base is not None:
        _begin(connector, line, key.base, truncates if remembered is None else remembered)
    companions = companions_of(events)
    events = [event for event in events if not event.is_copy and event.at not in companions]
    places = [_place(connector, line, event) for event in events]
    of_empty_key = _transactions_of_empty_key(connector, key.base, [*events, *_alone(following, events)], truncates)
    steps: list[tuple[float, Event, Position | None]] = [(i, event, places[i]) for i, event in enumerate(events)]
    for truncate in truncates:
        after = max((i for i, event in enumerate(events) if follows(connector, truncate, event, places[i])), default=-1)
        steps.append((after + 0.5, truncate, None))
    for _, event, place in sorted(steps, key=lambda entry: entry[0]) if truncates else steps:
        step(connector, line, event, place, was_empty=_transaction(event) in of_empty_key)
    return line


def _alone(following: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Those of the following events that the line will have: no copies, and no tombstones of deletes."""
    companions = companions_of([*events, *following])
    return [event for event in following if not event.is_copy and event.at not in companions]


def _transactions_of_empty_key(
    connector: str, base: Row | None, events: Sequence[Event], truncates: Sequence[Event]
) -> set[str | None]:
    """The transactions before which the key was empty: those that bring more rows to it than they take away, and those
    that leave as many as there were, where the next one is among them. Only for keys that hold a row of a PostgreSQL
    snapshot: no other one asks."""
    is_read = (base is not None and base.op == "r") or any(event.op == "r" for event in events)
    if connector != "postgresql" or not is_read:
        return set()
    added: Counter[str | None] = Counter()
    for event in events:
        if not event.quarantined:
            added[_transaction(event)] += (event.op == "c") - (event.op == "d")
    # Between two transactions nothing else may have taken the row away.
    is_whole = not truncates and not any(event.quarantined or event.op == TOMBSTONE for event in events)
    found: set[str | None] = set()
    next_found_it_empty = False
    for transaction, rows in reversed(added.items()):
        next_found_it_empty = transaction is not None and (rows > 0 or (rows == 0 and is_whole and next_found_it_empty))
        if next_found_it_empty:
            found.add(transaction)
    return found


def _transaction(event: Event) -> str | None:
    return None if event.position is None else event.position.transaction


def companions_of(events: Sequence[Event]) -> set[Pointer]:
    """Rule 3.3: the tombstones that came behind a delete of their key, and so add nothing. Each delete has one; only
    copies come between the two."""
    found: set[Pointer] = set()
    if any(event.op == TOMBSTONE for event in events):
        awaited = 0
        for event in sorted(events, key=lambda event: event.arrival):
            if event.op == "d":
                awaited += 1
            elif event.op != TOMBSTONE:
                awaited = 0
            elif awaited:
                awaited -= 1
                found.add(event.at)
    return found


def _begin(connector: str, line: Line, base: Row, truncates: Sequence[Event]) -> None:
    """A row that a truncate ended stood until then: the truncate comes once more, at its place among the events."""
    if not base.ended or comes_again(connector, base, truncates):
        base = replace(base, ended="", ended_at=None)
        line.alive = [base]
        line.versions = [Version(base)]
    line.last = base


def _place(connector: str, line: Line, event: Event) -> Position | None:
    """Rule 2.3: where an event stands against a truncate: the higher of its own position and the highest of the key
    before it. PostgreSQL's snapshot rows take nothing away from the latter."""
    place = latest(connector, line.known, event.position)
    streamed = _streamed(event)
    if streamed is not None and (line.known is None or compare(connector, streamed, line.known) > 0):
        line.known = streamed
    return place


def _streamed(event: Event) -> Position | None:
    """The position of a change; None for a snapshot row or a tombstone."""
    return None if event.op in ("r", TOMBSTONE) or event.is_copy else event.position
