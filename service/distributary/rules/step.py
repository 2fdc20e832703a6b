"""One step: one event changes the rows under its key.

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
from distributary.rules.order import is_ahead, precedes_truncate
from distributary.rules.pointers import origins_of
from distributary.rules.state import Departure, Row
from distributary.rules.truncate import end_by_truncate


@dataclass
class Version:
    """A row's time as the row of its key: a version of `mode: history` (rule 4.2). `end` is the event that ended it."""

    row: Row
    end: Event | None = None


@dataclass
class Line:
    """The rows of one key after some of its events.

    `alive`: the rows under the key now. `last`: the row that soft deletes keep; `emptied`: a truncate came after it.
    `known`: the key's highest streamed position. `transaction`: that of the last event. `incomplete`: an event is
    missing, because it is in quarantine. `stacked`: a row came to the key while it had one; `inserted_over`: this
    happened in the current transaction, and no header of a key change explains it. `ambiguous` counts deletes that may
    have meant either of two rows (rule 2.7).
    """

    alive: list[Row] = field(default_factory=list)
    last: Row | None = None
    emptied: bool = False
    known: Position | None = None
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


def step(
    connector: str, line: Line, event: Event, effective_position: Position | None, *, was_empty: bool = False
) -> None:
    """Applies one event. `effective_position`: see Row. `was_empty`: whether the key is known to have been empty before
    the event's transaction."""
    if event.quarantined:
        line.incomplete = True
        return
    if event.op == "t":
        _truncate(connector, line, event)
        return
    transaction = None if event.position is None else event.position.transaction
    if transaction is None or transaction != line.transaction:
        # Rule 2.7: the delete of the older row is missing. A key can't have two rows after a transaction.
        line.alive = line.alive[-1:]
        line.inserted_over = False
    line.transaction = transaction
    if event.op in ("c", "u", "d"):
        _uncover(connector, line, event, was_empty=was_empty)
    if event.op == TOMBSTONE:
        _end(line, line.alive, event)
        line.alive = []
        _end_last(line)
    elif event.op == "d":
        _delete(line, event)
    else:
        _put(line, event, effective_position)


def _uncover(connector: str, line: Line, event: Event, *, was_empty: bool) -> None:
    """Rule 2.3: changes from before a blocking snapshot may come after its rows. They mean the row that the snapshot
    row replaced. If the change committed only after the snapshot read the row, both rows have the same values, because
    the change had locked the row.

    A create for a key that was empty before such a snapshot replaces no row.
    """
    while line.alive:
        top = line.alive[-1]
        if top.op != "r" or not is_ahead(connector, top.position, event.position):
            return
        if top.covered is not None:
            _end(line, [top], event)
            line.alive[-1] = replace(top.covered, known=top.known)
        elif event.op == "c" and was_empty:
            # A later event of the transaction may show that the key was not empty.
            line.stacked = True
            _end(line, [line.alive.pop()], event)
        else:
            return


def _put(line: Line, event: Event, effective_position: Position | None) -> None:
    below = line.top
    if below is not None and event.op in ("c", "r"):
        # A source can't insert a row under a key that has one: either it moves the old row away afterwards, or a
        # truncate is still unread.
        line.stacked = True
        line.inserted_over = line.inserted_over or (event.op == "c" and not event.is_move)
    row = Row(event.at, event.op, event.position, effective_position, origins=origins_of(event, below))
    if event.op == "r":
        row = replace(row, covered=below)
    _end(line, line.alive, event)
    line.alive = [*(line.alive if event.is_move else line.alive[:-1]), row]
    line.last, line.emptied = row, False
    line.versions.append(Version(row))


def _delete(line: Line, event: Event) -> None:
    row = line.alive.pop(0) if line.alive else None
    if row is not None:
        _end(line, [row], event)
        line.ambiguous += line.inserted_over
    line.inserted_over = False
    if event.change is not None and event.moved_to is not None and not line.incomplete:
        line.departed[event.change] = Departure(event.position, row, line.stacked)
    if not line.alive:
        _end_last(line)


def _truncate(connector: str, line: Line, truncate: Event) -> None:
    at = truncate.position
    assert at is not None
    emptied = [row for row in line.alive if precedes_truncate(connector, row.effective_position, at)]
    _end(line, emptied, truncate)
    line.alive = [_uncovered(connector, row, at) for row in line.alive if row not in emptied]
    if line.last is not None and precedes_truncate(connector, line.last.effective_position, at):
        line.last = end_by_truncate(connector, line.last, at)
        line.emptied = True


def _uncovered(connector: str, row: Row, truncate: Position) -> Row:
    if row.covered is not None and precedes_truncate(connector, row.covered.effective_position, truncate):
        return replace(row, covered=None)
    return row


def _end_last(line: Line) -> None:
    if line.last is not None:
        line.last = replace(line.last, ended=line.last.ended or "d")


def _end(line: Line, rows: list[Row], event: Event) -> None:
    ended: set[Pointer] = {row.at for row in rows}
    for version in line.versions:
        if version.end is None and version.row.at in ended:
            version.end = event
