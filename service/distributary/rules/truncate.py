"""Rule 3.6: a truncate ends all rows below its position. It has no key and may be in any partition.

1. `add_truncate` remembers it until every partition has passed its position: changes from before it may arrive later.
   A row is not forgotten for a truncate that its own partition has not reached, because changes before the truncate may
   still move its values to another key.
2. The keys of the batch: fold.py puts it in order among the events of each key, and `_truncate` in key_rows.py ends the
   rows below it.
3. All other rows of the table: `AppliedWriter._truncated` in ingest/applied_writer.py finds those below it. They are
   removed, marked as deleted (`truncate: soft`), or end as versions (`mode: history`).

In a table of several source tables it concerns only the rows of its own (`Event.scope`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key

from distributary.rules.event import TOMBSTONE, Event, Position
from distributary.rules.order import compare, precedes_truncate
from distributary.rules.state import Row


def follows(connector: str, truncate: Event, event: Event | None, at: Position | None) -> bool:
    """Whether a truncate comes after a row, or an event of a key, at a position."""
    if truncate.position is None or (event is not None and event.op == TOMBSTONE):
        return False
    return precedes_truncate(connector, at, truncate.position)


def add_truncate(connector: str, truncates: list[Event], truncate: Event) -> bool:
    """Remembers a truncate, in order; False if it is known. When it is sent again it may be in another partition."""
    for index, known in enumerate(truncates):
        if known.change is not None and known.change == truncate.change:
            if known.quarantined and not truncate.quarantined and known.at == truncate.at:
                truncates[index] = truncate
                return True
            return False
    truncates.append(truncate)
    truncates.sort(key=cmp_to_key(lambda one, other: _compare(connector, one, other)))
    return True


def _compare(connector: str, one: Event, other: Event) -> int:
    if one.position is None or other.position is None:
        return (one.position is not None) - (other.position is not None)
    return compare(connector, one.position, other.position)


def end_by_truncate(connector: str, row: Row, truncate: Position) -> Row:
    """A row after a truncate: unchanged if the row is not older, was deleted before, or was removed by an earlier
    truncate."""
    if row.ended == "d" or not precedes_truncate(connector, row.effective_position, truncate):
        return row
    if row.ended and row.ended_at is not None and compare(connector, row.ended_at, truncate) <= 0:
        return row
    return replace(row, ended="t", ended_at=truncate)


def is_truncate_remembered(connector: str, row: Row, truncates: Sequence[Event]) -> bool:
    """Whether the truncate that ended a row is still remembered: events from before it may still arrive, and for them
    the row is current."""
    return row.ended == "t" and any(
        truncate.position is not None
        and follows(connector, truncate, None, row.effective_position)
        and (row.ended_at is None or compare(connector, truncate.position, row.ended_at) <= 0)
        for truncate in truncates
    )
