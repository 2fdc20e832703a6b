"""The rows under one key, and how one event changes them.

A key has one row; it has two during a transaction that has written the new row and not yet moved away the old one
(rules 2.7 and 3.4).

| event | rows under the key |
| --- | --- |
| of another transaction | only the top one stays |
| put (3.1) | replaces the top one |
| put by a key change (3.4) | lies on top |
| delete (3.2) | the lowest one leaves |
| tombstone by itself (3.3) | all leave |
| truncate (3.6) | those below its position leave |

An update for a key without row inserts, a create for one with a row replaces (3.1). Db2 for z/OS sends a key change as
an update of the new key: it is a put like any other, and the old row stays (3.5).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from distributary.rules.event import TOMBSTONE, Event, Pointer, Position
from distributary.rules.order import may_show_change, precedes_truncate
from distributary.rules.pointers import origins_of
from distributary.rules.state import Departure, Row
from distributary.rules.truncate import end_by_truncate


@dataclass
class Version:
    """A row's time as the row of its key: a version of `mode: history` (rule 4.2). `end` is the event that ended it."""

    row: Row
    end: Event | None = None


@dataclass
class KeyRows:
    """The rows of one key after some of its events.

    `alive`: the rows under the key now. `last`: the row that soft deletes keep; `emptied`: a truncate came after it.
    `highest_position`: the key's highest streamed position. `transaction`: that of the last event. `incomplete`: an
    event is missing, because it is in quarantine. `stacked`: a row came to the key while it had one; `inserted_over`:
    this happened in the current transaction, and no header of a key change explains it. `ambiguous` counts deletes that
    may have meant either of two rows (rule 2.7)."""

    alive: list[Row] = field(default_factory=list)
    last: Row | None = None
    emptied: bool = False
    highest_position: Position | None = None
    transaction: str | None = None
    incomplete: bool = False
    stacked: bool = False
    inserted_over: bool = False
    ambiguous: int = 0
    versions: list[Version] = field(default_factory=list)
    departed: dict[str, Departure] = field(default_factory=dict)

    @property
    def top(self) -> Row | None:
        """The current row of the key."""
        return self.alive[-1] if self.alive else None


def apply_to_rows(
    connector: str, key_rows: KeyRows, event: Event, effective_position: Position | None, *, was_empty: bool = False
) -> None:
    """Applies one event. `effective_position`: see Row. `was_empty`: whether the key is known to have been empty before
    the event's transaction."""
    if event.quarantined:
        key_rows.incomplete = True
        return
    if event.op == "t":
        _truncate(connector, key_rows, event)
        return
    transaction = None if event.position is None else event.position.transaction
    if transaction is None or transaction != key_rows.transaction:
        # Rule 2.7: the delete of the older row is missing. A key can't have two rows after a transaction.
        key_rows.alive = key_rows.alive[-1:]
        key_rows.inserted_over = False
    key_rows.transaction = transaction
    if event.op in ("c", "u", "d"):
        _restore_replaced_row(connector, key_rows, event, was_empty=was_empty)
    if event.op == TOMBSTONE:
        _end(key_rows, key_rows.alive, event)
        key_rows.alive = []
        _end_last(key_rows)
    elif event.op == "d":
        _delete(key_rows, event)
    else:
        _put(key_rows, event, effective_position)


def _restore_replaced_row(connector: str, key_rows: KeyRows, event: Event, *, was_empty: bool) -> None:
    """Rule 2.3: changes from before a blocking snapshot may come after its rows. They mean the row that the snapshot
    row replaced. If the change committed only after the snapshot read the row, both rows have the same values, because
    the change had locked the row.

    A create for a key that was empty before such a snapshot replaces no row.
    """
    while key_rows.alive:
        top = key_rows.alive[-1]
        if top.op != "r" or not may_show_change(connector, top.position, event.position):
            return
        if top.replaced_row is not None:
            _end(key_rows, [top], event)
            key_rows.alive[-1] = replace(top.replaced_row, highest_position=top.highest_position)
        elif event.op == "c" and was_empty:
            # A later event of the transaction may show that the key was not empty.
            key_rows.stacked = True
            _end(key_rows, [key_rows.alive.pop()], event)
        else:
            return


def _put(key_rows: KeyRows, event: Event, effective_position: Position | None) -> None:
    below = key_rows.top
    if below is not None and event.op in ("c", "r"):
        # A source can't insert a row under a key that has one: either it moves the old row away afterwards, or a
        # truncate is still unread.
        key_rows.stacked = True
        key_rows.inserted_over = key_rows.inserted_over or (event.op == "c" and not event.is_move)
    row = Row(event.at, event.op, event.position, effective_position, origins=origins_of(event, below))
    if event.op == "r":
        row = replace(row, replaced_row=below)
    _end(key_rows, key_rows.alive, event)
    key_rows.alive = [*(key_rows.alive if event.is_move else key_rows.alive[:-1]), row]
    key_rows.last, key_rows.emptied = row, False
    key_rows.versions.append(Version(row))


def _delete(key_rows: KeyRows, event: Event) -> None:
    row = key_rows.alive.pop(0) if key_rows.alive else None
    if row is not None:
        _end(key_rows, [row], event)
        key_rows.ambiguous += key_rows.inserted_over
    key_rows.inserted_over = False
    if event.change is not None and event.moved_to is not None and not key_rows.incomplete:
        key_rows.departed[event.change] = Departure(event.position, row, key_rows.stacked)
    if not key_rows.alive:
        _end_last(key_rows)


def _truncate(connector: str, key_rows: KeyRows, truncate: Event) -> None:
    at = truncate.position
    assert at is not None
    emptied = [row for row in key_rows.alive if precedes_truncate(connector, row.effective_position, at)]
    _end(key_rows, emptied, truncate)
    key_rows.alive = [
        _without_truncated_replaced_row(connector, row, at) for row in key_rows.alive if row not in emptied
    ]
    if key_rows.last is not None and precedes_truncate(connector, key_rows.last.effective_position, at):
        key_rows.last = end_by_truncate(connector, key_rows.last, at)
        key_rows.emptied = True


def _without_truncated_replaced_row(connector: str, row: Row, truncate: Position) -> Row:
    if row.replaced_row is not None and precedes_truncate(connector, row.replaced_row.effective_position, truncate):
        return replace(row, replaced_row=None)
    return row


def _end_last(key_rows: KeyRows) -> None:
    if key_rows.last is not None:
        key_rows.last = replace(key_rows.last, ended=key_rows.last.ended or "d")


def _end(key_rows: KeyRows, rows: list[Row], event: Event) -> None:
    ended: set[Pointer] = {row.at for row in rows}
    for version in key_rows.versions:
        if version.end is None and version.row.at in ended:
            version.end = event
