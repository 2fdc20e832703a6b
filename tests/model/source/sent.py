"""Change events before they are encoded, and the common parts of all relational connectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.model.source.database import Change, Committed, Dialect, Entry, Snapshot
from tests.model.source.layout import Layout, Row

PLACEHOLDER = "__debezium_unavailable_value"
TOMBSTONE = "x"
_EPOCH_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Sent:
    """One record. `op` is Debezium's letter, or `x` for a tombstone; `headers` holds the other key of a key change.

    `entry` is the number of its entry in the database's log, `group` that of its change: records of one group are sent
    again together.
    """

    op: str
    key: Row | None
    before: Row | None
    after: Row | None
    source: dict[str, Any]
    headers: tuple[tuple[str, Row], ...]
    entry: int
    group: int


@dataclass(frozen=True)
class Part:
    """One event of a change, without its position: op, old and new row, the other row of a key change."""

    op: str
    before: Row | None
    after: Row | None
    moved: Row | None = None


def time_ms(tick: int) -> int:
    """The source's clock."""
    return _EPOCH_MS + tick * 7


class Connector(ABC):
    """Reads a database's log and sends events. Used for one log only."""

    name: ClassVar[str]
    dialect: ClassVar[Dialect]
    source_fields: ClassVar[tuple[tuple[str, str], ...]]
    """The connector's own fields of the source block, each with its Connect type; all may be null."""
    database: ClassVar[str] = "db"
    schema: ClassVar[str] = "dbo"

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.last: dict[str, Any] = {}
        """The position of the last event of the stream."""
        self._sent: list[Sent] = []
        self._group = 0

    def send(self, log: list[Entry]) -> list[Sent]:
        """All records, in the order in which the connector hands them to Kafka."""
        for number, entry in _as_streamed(log):
            if isinstance(entry, Snapshot):
                for _, row in entry.rows:
                    self._emit(number, "r", None, row, self.read_place(entry), entry.tick, kind=entry.kind)
            elif isinstance(entry, Committed):
                self.transaction(number, entry)
            else:
                self.restarted()
        return self._sent

    @abstractmethod
    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        """The position of a snapshot's rows."""

    @abstractmethod
    def transaction(self, number: int, entry: Committed) -> None:
        """Emits a transaction's events."""

    def restarted(self) -> None:
        """The connector was started again."""
        return

    def parts(self, change: Change) -> Iterator[Part]:
        """The events of one change, as connectors send them that see an update of the key as one change."""
        before, after = change.before, change.after
        if before is None:
            yield Part("t" if after is None else "c", None, after)
        elif after is None:
            yield Part("d", before, None)
        elif self.layout.key_of(before) != self.layout.key_of(after):
            yield Part("d", before, None, after)
            yield Part("c", None, after, before)
        else:
            yield Part("u", before, after)

    def old_image(self, op: str, row: Row) -> Row | None:
        """The `before` of an `u` or `d`."""
        del op
        return row

    def new_image(self, before: Row | None, after: Row) -> Row:
        """The `after` of a change; `before` is the row before it, None for a new row."""
        del before
        return after

    def emit_change(self, number: int, change: Change, place: dict[str, Any], tick: int) -> None:
        """Emits the events of one change, all at one position."""
        for part in self.parts(change):
            self.emit_part(number, part, place, tick, before=change.before)
        self._group += 1

    def emit_part(
        self, number: int, part: Part, place: dict[str, Any], tick: int, before: Row | None, *, alone: bool = False
    ) -> None:
        """Emits one event; `before` is the changed row as it was. `alone`: it is a group of its own."""
        header = "newkey" if part.op == "d" else "oldkey"
        headers = () if part.moved is None else ((header, self.layout.key_payload(part.moved)),)
        old = None if part.before is None else self.old_image(part.op, part.before)
        new = None if part.after is None else self.new_image(before, part.after)
        self._emit(number, part.op, old, new, place, tick, headers=headers)
        self.last = place
        self._group += alone

    def _emit(
        self,
        number: int,
        op: str,
        before: Row | None,
        after: Row | None,
        place: dict[str, Any],
        tick: int,
        *,
        headers: tuple[tuple[str, Row], ...] = (),
        kind: str = "",
    ) -> None:
        row = after or before
        key = None if row is None else self.layout.key_payload(row)
        source = self._source(place, tick, {"incremental": "incremental", "": "false"}.get(kind, "true"))
        self._sent.append(Sent(op, key, before, after, source, headers, number, self._group))
        if op == "d":
            self._sent.append(Sent(TOMBSTONE, key, None, None, {}, headers, number, self._group))
        if op == "r":
            self._group += 1

    def _source(self, place: dict[str, Any], tick: int, snapshot: str) -> dict[str, Any]:
        ms = time_ms(tick)
        named = dict.fromkeys((name for name, _ in self.source_fields), None)
        return {
            "version": "3.6.1.Final",
            "connector": self.name,
            "name": "s",
            "ts_ms": ms,
            "snapshot": snapshot,
            "db": self.database,
            "sequence": None,
            "ts_us": ms * 1000,
            "ts_ns": ms * 1_000_000,
            "schema": self.schema,
            "table": "t",
            **named,
            **place,
        }


def _as_streamed(log: Iterable[Entry]) -> list[tuple[int, Entry]]:
    """The log's entries with their numbers, in the order in which they are streamed: a blocking snapshot comes before
    the transactions that it kept the connector from streaming."""
    order: list[tuple[int, Entry]] = []
    for number, entry in enumerate(log):
        place = len(order)
        if isinstance(entry, Snapshot) and entry.kind == "blocking":
            behind = entry.behind
            while behind and place and isinstance(order[place - 1][1], Committed):
                place, behind = place - 1, behind - 1
        order.insert(place, (number, entry))
    return order
