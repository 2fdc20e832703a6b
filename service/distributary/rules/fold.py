"""Rules 2.1 and 2.8: a key's events in the source's order, and the rows after them.

A batch of the events A and B leaves the same rows as a batch of A and then one of B: `recent` keeps events, not their
result, until no record that is still unread can come between them. Only then do they become `base`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from distributary.rules.event import TOMBSTONE, Event, Pointer, Position
from distributary.rules.key_rows import KeyRows, Version, apply_to_rows
from distributary.rules.log_traits import log_traits
from distributary.rules.order import compare, compare_events, is_ordered_by_arrival, latest
from distributary.rules.state import KeyState, Row
from distributary.rules.truncate import follows, is_truncate_remembered


def insert(connector: str, key: KeyState, event: Event) -> bool:
    """Inserts an event in order among its key's events, which all come from one partition; False if it adds
    nothing: a copy, or a snapshot row that was read before the newest change.

    Changes arrive in the source's order. A snapshot row belongs after the changes that the connector held back during a
    blocking snapshot (rule 2.3), unless the connector's snapshot rows are ordered by their arrival. A change that is
    not above the key's highest position was sent again, after compaction removed its first copy. No event is put before
    a tombstone by itself that arrived earlier (rule 3.3), but copies that are kept from the time in which the topic
    grew do not stop it."""
    recent, index = key.recent, len(key.recent)
    if not log_traits(connector).snapshot_rows_by_arrival and not is_ordered_by_arrival(connector, event):
        unsettled = [other.position for other in recent if _streamed(other) and not other.quarantined]
        if _is_in_base(connector, key, event) or is_stale_snapshot_row(connector, key, event, unsettled):
            return False
        for i in reversed(range(len(recent))):
            if recent[i].is_duplicate:
                continue
            if not _is_before(connector, event, recent[i]):
                break
            if _streamed(event) and _streamed(recent[i]):
                return False
            index = i
    recent.insert(index, event)
    return True


def snapshot_event(name: str, row: Row) -> Event:
    """The event that a snapshot row of a key was."""
    return Event("r", name, *row.at, position=row.position)


def reopen_snapshot_row(connector: str, key: KeyState, event: Event) -> None:
    """Rule 2.3: if the change is older than the snapshot row in `base`, moves that row back into `recent`, so that
    insert() or merge() can put the change before it, also if the batch has changes from after the snapshot."""
    row = key.base
    if log_traits(connector).snapshot_rows_by_arrival or event.op not in ("c", "u", "d"):
        return
    if row is None or row.op != "r" or row.ended or row.position is None or event.position is None:
        return
    if compare(connector, event.position, row.position) < 0:
        assert event.key is not None
        key.base, key.recent = None, [snapshot_event(event.key, row), *key.recent]


def _is_before(connector: str, one: Event, other: Event) -> bool:
    return not is_ordered_by_arrival(connector, other) and compare_events(connector, one, other) < 0


def split(recent: Sequence[Event], count: int) -> tuple[list[Event], list[Event]]:
    """The first `count` events and the rest. A tombstone that is separated from its delete by this is kept as a
    copy: by itself it would delete the row of a snapshot between the two."""
    settled, rest = list(recent[:count]), list(recent[count:])
    separated = companions_of(recent) - companions_of(rest) if settled else set()
    return settled, [replace(event, is_duplicate=True) if event.at in separated else event for event in rest]


def merge(connector: str, key: KeyState, event: Event) -> bool:
    """Rule 2.5: inserts an event in order where a key's events may come from two partitions; False if it adds no event:
    a copy, or a snapshot row that was read before the newest change.

    A copy may arrive before the first record of its change. So a change was applied before if its identity is known, or
    if it is at or below the highest position of `base`. Of several copies the first to arrive counts, with the position
    of a copy whose level is known.
    """
    same = next((other for other in key.recent if is_same(other, event)), None)
    if same is None:
        if _is_in_base(connector, key, event) or is_stale_snapshot_row(connector, key, event):
            return False
    else:
        position = _with_level(same.position, event.position)
        if same.arrival <= event.arrival and position == same.position:
            return False
        key.recent.remove(same)
        if same.op == "d" and same.arrival > event.arrival:
            keep_duplicate(connector, key, same)
        event = replace(same, position=position, arrival=min(same.arrival, event.arrival))
    key.recent = _in_order(connector, [*key.recent, event])
    return same is None


def _with_level(one: Position | None, other: Position | None) -> Position | None:
    """Of the two positions of one change the first, unless only the second has a level."""
    return other if one is not None and one.level is None and other is not None else one


def is_above(connector: str, key: KeyState, event: Event) -> bool:
    """Whether a change is above all known changes of its key, and above the snapshot row that `base` may be, unless
    such rows are ordered by arrival."""
    base = key.base if not log_traits(connector).snapshot_rows_by_arrival else None
    if base is not None and base.op == "r" and base.position is not None:
        assert event.position is not None
        if compare(connector, event.position, base.position) <= 0:
            return False
    return not _is_in_base(connector, key, event) and all(
        _streamed(other) is None or compare_events(connector, event, other) > 0 for other in key.recent
    )


def _is_in_base(connector: str, key: KeyState, event: Event) -> bool:
    at = _streamed(event)
    if at is None or key.highest_position is None:
        return False
    sign = compare(connector, at, key.highest_position)
    # Rule 2.2: a delete and a create or update may share a position; the delete comes first.
    deleted = key.base is None or key.base.ended == "d"
    return sign < 0 or (sign == 0 and not (deleted and event.op != "d"))


def is_stale_snapshot_row(
    connector: str, key: KeyState, event: Event, unsettled: Iterable[Position | None] = ()
) -> bool:
    """Rule 2.3: whether a snapshot row was read before the newest applied change or snapshot row of its key: a snapshot
    may arrive late. `unsettled`: positions of changes that arrived before it in the same partition. False
    where snapshot rows are ordered by arrival, and for the log of another server: after a failover its
    numbers may be lower, and a snapshot row has no GTID."""
    if event.op != "r" or event.position is None or log_traits(connector).snapshot_rows_by_arrival:
        return False
    read = key.base.position if key.base is not None and key.base.op == "r" else None
    return any(
        at is not None and at.server == event.position.server and compare(connector, event.position, at) < 0
        for at in (key.highest_position, read, *unsettled)
    )


def keep_duplicate(connector: str, key: KeyState, event: Event) -> None:
    """Keeps a delete or a tombstone that changes no row, to match later tombstones with their deletes: the two may be
    in different partitions."""
    key.recent = _in_order(connector, [*key.recent, replace(event, is_duplicate=True, quarantined=False)])


def is_same(one: Event, other: Event) -> bool:
    """Whether two events of a key are the same record, or copies of the same change."""
    if one.at == other.at:
        return True
    if one.op != other.op or one.op == TOMBSTONE or one.is_duplicate:
        return False
    if one.content != other.content and None not in (one.content, other.content):
        return False
    if one.op == "r":
        return one.snapshot_identity is not None and one.snapshot_identity == other.snapshot_identity
    return one.change is not None and one.change == other.change


def _in_order(connector: str, events: Iterable[Event]) -> list[Event]:
    """Rule 2.1: by position; an event that is ordered by arrival stands after all events that arrived before it (rules
    2.3, 3.3)."""
    order: list[Event] = []
    for event in sorted(events, key=lambda event: event.arrival):
        if is_ordered_by_arrival(connector, event):
            order.append(event)
            continue
        index = next((i for i in reversed(range(len(order))) if _not_after(connector, order[i], event)), -1)
        later = order[index + 1 :]
        newest = all(is_ordered_by_arrival(connector, other) for other in later)
        if newest and (index < 0 or compare_events(connector, order[index], event) < 0):
            order.append(event)
        else:
            deletes = _sent_before(event, later)
            order[index + 1 :] = [*deletes, event, *(other for other in later if other not in deletes)]
    return order


def _sent_before(event: Event, later: Sequence[Event]) -> list[Event]:
    """Rule 3.3: of the events `later` in order than a change, the tombstones that arrived before it: the change belongs
    behind them. If tombstones are the only form of deletes, the connector streamed them before the change, though
    behind the row of a blocking snapshot.
    """
    if _streamed(event) is None:
        return []
    unstreamed = takewhile(lambda other: _streamed(other) is None, later)
    return [other for other in unstreamed if other.op == TOMBSTONE and not other.is_duplicate]


def _not_after(connector: str, one: Event, other: Event) -> bool:
    return not is_ordered_by_arrival(connector, one) and compare_events(connector, one, other) <= 0


def fold(
    connector: str,
    key: KeyState,
    events: Sequence[Event],
    truncates: Sequence[Event],
    remembered: Sequence[Event] | None = None,
    following: Sequence[Event] = (),
) -> KeyRows:
    """The rows after `base` and `events`, with the truncates in order among them (rule 3.6). Events and
    truncates are in order. `remembered`: all truncates, if `truncates` lacks those that come only after later events.
    `following`: later events; they are not applied, but may show that the key was empty before a transaction."""
    key_rows = KeyRows(highest_position=key.highest_position)
    if key.base is not None:
        _begin(connector, key_rows, key.base, truncates if remembered is None else remembered)
    companions = companions_of(events)
    events = [event for event in events if not event.is_duplicate and event.at not in companions]
    positions = [_effective_position(connector, key_rows, event) for event in events]
    of_empty_key = _transactions_of_empty_key(connector, key.base, [*events, *_alone(following, events)], truncates)
    steps: list[tuple[float, Event, Position | None]] = [(i, event, positions[i]) for i, event in enumerate(events)]
    for truncate in truncates:
        before = (i for i, event in enumerate(events) if follows(connector, truncate, event, positions[i]))
        steps.append((max(before, default=-1) + 0.5, truncate, None))
    for _, event, position in sorted(steps, key=lambda entry: entry[0]) if truncates else steps:
        apply_to_rows(connector, key_rows, event, position, was_empty=_transaction(event) in of_empty_key)
    return key_rows


def _alone(following: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """The following events that will be applied: without copies, and without the tombstones of deletes."""
    companions = companions_of([*events, *following])
    return [event for event in following if not event.is_duplicate and event.at not in companions]


def _transactions_of_empty_key(
    connector: str, base: Row | None, events: Sequence[Event], truncates: Sequence[Event]
) -> set[str | None]:
    """The transactions before which the key was empty: those that add more rows than they remove, and those that add as
    many as they remove, if the key was empty before the next transaction. Only for keys with a snapshot
    row that is ordered by arrival: no other key needs this."""
    is_read = (base is not None and base.op == "r") or any(event.op == "r" for event in events)
    if not is_read or not log_traits(connector).snapshot_rows_by_arrival:
        return set()
    added: Counter[str | None] = Counter()
    for event in events:
        if not event.quarantined:
            added[_transaction(event)] += (event.op == "c") - (event.op == "d")
    # Nothing else may have removed the row between two transactions.
    is_whole = not truncates and not any(event.quarantined or event.op == TOMBSTONE for event in events)
    of_empty_key: set[str | None] = set()
    next_found_it_empty = False
    for transaction, rows in reversed(added.items()):
        next_found_it_empty = transaction is not None and (rows > 0 or (rows == 0 and is_whole and next_found_it_empty))
        if next_found_it_empty:
            of_empty_key.add(transaction)
    return of_empty_key


def _transaction(event: Event) -> str | None:
    return None if event.position is None else event.position.transaction


def companions_of(events: Sequence[Event]) -> set[Pointer]:
    """Rule 3.3: the tombstones that arrived behind a delete of their key, and so change nothing. Each delete has one
    tombstone; only copies come between the two."""
    companions: set[Pointer] = set()
    if any(event.op == TOMBSTONE for event in events):
        awaited = 0
        for event in sorted(events, key=lambda event: event.arrival):
            if event.op == "d":
                awaited += 1
            elif event.op != TOMBSTONE:
                awaited = 0
            elif awaited:
                awaited -= 1
                companions.add(event.at)
    return companions


def _begin(connector: str, key_rows: KeyRows, base: Row, truncates: Sequence[Event]) -> None:
    """Starts with `base`. A row that a remembered truncate ended starts as the current row: that truncate is applied
    once more, in order among the events."""
    if not base.ended or is_truncate_remembered(connector, base, truncates):
        base = replace(base, ended="", ended_at=None)
        key_rows.alive = [base]
        key_rows.versions = [Version(base)]
    key_rows.last = base


def _effective_position(connector: str, key_rows: KeyRows, event: Event) -> Position | None:
    """Rule 2.3: the position by which an event is compared with truncates: the higher one of its own position and the
    highest of the key before it. A PostgreSQL snapshot row does not lower the latter."""
    effective = latest(connector, key_rows.highest_position, event.position)
    streamed = _streamed(event)
    highest = key_rows.highest_position
    if streamed is not None and (highest is None or compare(connector, streamed, highest) > 0):
        key_rows.highest_position = streamed
    return effective


def _streamed(event: Event) -> Position | None:
    """The position of a change; None for a snapshot row, a tombstone or a copy."""
    return None if event.op in ("r", TOMBSTONE) or event.is_duplicate else event.position
