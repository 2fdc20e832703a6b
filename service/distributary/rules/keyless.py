"""Rules 3.8 and 4.3: a table without key keeps every change once.

There, a copy of a record may be in any partition, because the record has no key. And several rows of one position may
be equal (a COPY into PostgreSQL). So a change is identified by its row's content and by its ordinal among equal rows of
the same position in its partition. `Event.key` holds the content.

| answer | when |
| --- | --- |
| seen | its position is at or below its partition's mark (deduplicate.py): it was read before, from some partition |
| seen | the change was read from another partition, and not all partitions have passed it |
| new | else |

Counting starts again where the position changes: a connector that starts again goes back, or (PostgreSQL) does not know
the commit of its first transaction. Only snapshot rows and PostgreSQL's inserts can be equal at one position; any other
equal change is a copy. A snapshot is never sent again, so equal snapshot rows of two partitions are two rows. In a
topic of several partitions PostgreSQL's equal inserts of one position can't be distinguished from copies: only one of
them is kept."""

from __future__ import annotations

from dataclasses import replace

from distributary.rules.event import TOMBSTONE, Event, Position
from distributary.rules.log_traits import log_traits
from distributary.rules.passed_positions import is_passed
from distributary.rules.state import EqualRows, RulesState


def number_equal_rows(connector: str, state: RulesState, event: Event) -> Event:
    """The event with its ordinal among equal rows of its position added to its key. To be called for each record of a
    partition, in order."""
    if event.op == TOMBSTONE or event.position is None:
        return event
    equal_rows = state.equal_rows.setdefault(event.partition, EqualRows())
    if equal_rows.position is None or _without_time(equal_rows.position) != _without_time(event.position):
        equal_rows.position, equal_rows.counts = event.position, {}
    content = f"{event.op} {event.key}"
    ordinal = equal_rows.counts[content] = equal_rows.counts.get(content, 0) + 1
    if event.op == "r":
        return replace(event, key=f"{event.key} {event.partition} {ordinal}")
    if event.op == "c" and log_traits(connector).inserts_share_positions:
        return replace(event, key=f"{event.key} {ordinal if state.partitions == 1 else 1}")
    return event


def _without_time(position: Position) -> tuple[object, ...]:
    return position.epoch, position.level, position.sub_position, position.transaction


def remember_change(state: RulesState, event: Event) -> bool:
    """Whether a change is new: it was not read from another partition. Remembers it."""
    if state.partitions == 1 or event.change is None or event.position is None:
        return True
    identity = f"{event.op} {event.key} {event.change}"
    if identity in state.seen_changes:
        return False
    state.seen_changes[identity] = event.position
    return True


def forget_changes(connector: str, state: RulesState) -> None:
    """Forgets the changes that all partitions have passed: their copies are below the marks."""
    state.seen_changes = {name: at for name, at in state.seen_changes.items() if not is_passed(connector, state, at)}
