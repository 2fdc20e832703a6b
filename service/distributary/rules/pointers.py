"""Rule 3.7: an unavailable value (TOAST, LOB) is a pointer to the record that holds it, resolved before any value is
copied. For each column that its event lacks, a row names the record that has the value. It gets the name from the row
before it under its key, or from the row that a key change moved away from the old key (rule 3.4).

Within one key this name is always that of a record, so that a chain of updates needs one pointer. Only the second half
of a key change names a row instead, by the old key and the change: the row that left that key. `resolve` follows these
from key to key until it reaches a record.

apply/apply_events.py reads the rows that hold the values, apply/new_rows.py (apply/versions.py of `mode: history`)
copies them."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.rules.event import Event, Pointer
from distributary.rules.state import Departure, Origin, Row

Departures = Mapping[tuple[str, str], Departure]


def origins_of(event: Event, below: Row | None) -> tuple[tuple[str, Origin], ...]:
    """The origins of the values that a create, update or snapshot row lacks; `below` is the row that it replaces."""
    if not event.unavailable:
        return ()
    reference = reference_to(event)
    if reference is not None:
        return tuple((column, reference) for column in event.unavailable)
    if below is None or event.op == "c":
        # A created row has nothing of the row before it.
        return tuple((column, None) for column in event.unavailable)
    known = dict(below.origins)
    return tuple((column, known.get(column, below.at)) for column in event.unavailable)


def reference_to(event: Event) -> tuple[str, str] | None:
    """(key, change) of the departure that the second half of a key change belongs to."""
    if event.moved_from is None or event.change is None or event.op != "c":
        return None
    return event.moved_from, event.change


def reference_of(origin: Origin) -> tuple[str, str] | None:
    """(key, change) of an origin that names the row which left a key; None for a record, or nothing."""
    return origin if origin is not None and isinstance(origin[0], str) else None


def references_of(row: Row) -> set[tuple[str, str]]:
    """(key, change) of the departures that a row, or the one it lies over, may still ask for."""
    references = references_of(row.replaced_row) if row.replaced_row is not None else set()
    for _, origin in row.origins:
        reference = reference_of(origin)
        if reference is not None:
            references.add(reference)
    return references


def resolve(column: str, origin: Origin, departures: Departures, *, exclude_provisional: bool = False) -> Origin:
    """The record that holds a column's value; the reference, if a departure on the way is unknown (or, with
    `exclude_provisional`, may still change); None if no record has the value."""
    visited: set[tuple[str, str]] = set()
    while (reference := reference_of(origin)) is not None:
        if reference in visited:
            return None
        visited.add(reference)
        departure = departures.get(reference)
        if departure is None or (exclude_provisional and departure.provisional):
            return reference
        row = departure.row
        origin = None if row is None else dict(row.origins).get(column, row.at)
    return origin


def resolved(row: Row, departures: Departures, *, exclude_provisional: bool = False) -> tuple[tuple[str, Origin], ...]:
    """All origins of a row, as far as departures are known."""
    return tuple(
        (column, resolve(column, origin, departures, exclude_provisional=exclude_provisional))
        for column, origin in row.origins
    )


def is_waiting(row: Row | None, departures: Departures) -> bool:
    """Whether a value of the row is in a row of another key whose departure is unknown or provisional."""
    return row is not None and any(
        reference_of(origin) for _, origin in resolved(row, departures, exclude_provisional=True)
    )


def records_of(row: Row) -> set[Pointer]:
    """The records that a row names itself as holding its values."""
    records = {row.at} if row.replaced_row is None else {row.at, *records_of(row.replaced_row)}
    for _, origin in row.origins:
        if origin is not None and not isinstance(origin[0], str):
            records.add(origin)
    return records
