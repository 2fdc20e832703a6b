"""The rows that one key's records produce, in order, each with the origin of missing values."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.reference.event import TOMBSTONE, Event, Position
from tests.model.reference.order import later, precedes, stands_by_arrival

Json = Any
PLACEHOLDER = "__debezium_unavailable_value"


@dataclass
class Row:
    """A row that an event wrote under a key. `older` is the row whose values it keeps for columns that it lacks;
    `position` is compared with truncates."""

    event: Event
    position: Position | None
    older: Row | None = None
    closed_by: Event | None = None

    def closed(self, by: Event) -> None:
        """Ends the row, unless it has ended already."""
        self.closed_by = self.closed_by or by


@dataclass
class Line:
    """All rows that were ever under one key, in order. `left` are the rows that key changes moved away, by their
    deletes."""

    rows: list[Row] = field(default_factory=list)
    left: dict[str, Row] = field(default_factory=dict)
    alive: list[Row] = field(default_factory=list)
    """The current rows of the key: two while a transaction has moved a new row there, and not yet moved the old one
    away."""
    emptied: bool = False
    """A truncate came after the last row."""

    @property
    def row(self) -> Row | None:
        """The row under the key at the end."""
        return self.alive[-1] if self.alive else None


def follow(events: list[Event], truncates: list[Event]) -> Line:
    """The line of a key; its events and the table's truncates are in order."""
    line = Line()
    known: Position | None = None
    places = []
    for event in events:
        place = later(known, event.position)
        known = known if stands_by_arrival(event) else place
        places.append(place)
    steps: list[tuple[float, Event, Position | None]] = [(i, event, places[i]) for i, event in enumerate(events)]
    for truncate in truncates:
        after = max((i for i, event in enumerate(events) if _empties(truncate, event, places[i])), default=-1)
        steps.append((after + 0.5, truncate, truncate.position))
    running = None
    for _, event, place in sorted(steps, key=lambda step: step[0]):
        if event.transaction is None or event.transaction != running:
            # Of two rows the older one's delete is lost: there can't be two.
            line.alive = line.alive[-1:]
        running = event.transaction
        _step(line, event, place)
    return line


def _empties(truncate: Event, event: Event, place: Position | None) -> bool:
    return event.op != TOMBSTONE and precedes(place, truncate.position)


def _step(line: Line, event: Event, place: Position | None) -> None:
    if event.op in (TOMBSTONE, "t"):
        for row in line.alive:
            row.closed(event)
        line.alive = []
        line.emptied = line.emptied or event.op == "t"
    elif event.op == "d":
        _leave(line, event)
    else:
        older = line.row if event.op != "c" else None
        line.rows.append(Row(event, place, older))
        line.emptied = False
        brought = event.old_key is not None and event.op == "c"
        for row in line.alive:
            row.closed(event)
        line.alive = [*(line.alive if brought else line.alive[:-1]), line.rows[-1]]


def _leave(line: Line, event: Event) -> None:
    """Under a deferred constraint a transaction may bring a row to a key before it moves the old one away: the delete
    that follows means the old one."""
    if line.alive:
        row = line.alive.pop(0)
        row.closed(event)
        if event.change is not None:
            line.left[event.change] = row


class Values:
    """Rows with their unavailable values. `missing` counts values that no record has."""

    def __init__(self, lines: Mapping[str, Line], placeholder: str = PLACEHOLDER) -> None:
        self._lines = lines
        self._forms = placeholder_forms(placeholder)
        self._known: dict[tuple[int, str], Json] = {}
        self.missing = 0

    def of(self, row: Row) -> dict[str, Json]:
        """The row's columns."""
        return {name: self._value(row, name) for name in row.event.after or {}}

    def unavailable(self, row: Mapping[str, Json] | None) -> list[str]:
        """The columns whose values an event's row does not hold."""
        return [name for name, value in (row or {}).items() if value in self._forms]

    def _value(self, row: Row, name: str) -> Json:
        value = (row.event.after or {}).get(name)
        if value not in self._forms:
            return value
        at = (id(row), name)
        if at not in self._known:
            older = self._older(row)
            self.missing += older is None
            self._known[at] = None if older is None else self._value(older, name)
        return self._known[at]

    def _older(self, row: Row) -> Row | None:
        event = row.event
        if event.old_key is None or event.op != "c":
            return row.older
        line = self._lines.get(event.old_key)
        if line is None:
            return None
        if event.change in line.left:
            return line.left[event.change]
        before = [other for other in line.rows if precedes(other.position, event.position)]
        return before[-1] if before else None


def placeholder_forms(placeholder: str) -> list[Json]:
    """How the connector writes the placeholder into columns of different types."""
    raw = placeholder.encode()
    encoded = base64.b64encode(raw).decode()
    derived = str(uuid.UUID(bytes=hashlib.md5(raw, usedforsecurity=False).digest(), version=3))
    pair = {placeholder: placeholder}
    return [placeholder, encoded, [placeholder], [encoded], [derived], list(raw), pair, _text(pair)]


def _text(pair: Json) -> str:
    """A map in a column of text, as the connector writes it by default."""
    return json.dumps(pair, separators=(",", ":"))
