"""What the rules know of one record: its operation, key, position and the other key of a key change; no values.

Rule 1.2: `op` is Debezium's letter (`c`, `u`, `d`, `r`, `t`), or `x` for a tombstone (rule 1.1). A logical message
(`m`) is counted before the rules and never gets here; any other operation is quarantined by the decoder. Rule 1.6: a
keyed table's event has a key unless it is a truncate; records that break this are quarantined before the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TOMBSTONE = "x"
Part = int | str

Scope = tuple[int, str]

Arrival = tuple[int, int, int]
"""When a record came: the latest Kafka timestamp of its partition up to it, the partition, the offset."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the source's log.

    `level` orders transactions (None: unknown, for PostgreSQL only), `sub_position` orders the changes of one level.
    `transaction` is an id that all changes of one transaction share, and no others (None: the connector does not send
    it). `time` is the source's own time of the change or of its commit, in microseconds since 1970. `epoch` sorts
    before all else: an operator raises it after the source went back (rule 2.6). `server` is the binlog's server id.
    """

    level: tuple[Part, ...] | None
    sub_position: tuple[Part, ...]
    transaction: str | None = None
    time: int = 0
    epoch: int = 0
    server: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One record.

    `change` identifies the change in its table: it is the same when the change is sent again, and for both halves of a
    key change. None if the record has no identity. `timestamp`: the record's in Kafka, in
    microseconds since 1970. `snapshot_identity` identifies a snapshot row, by its source block.
    `moved_from` and `moved_to` are the keys in the headers of a key change (rule 3.4). `unavailable` names the columns
    whose values the record does not hold (rule 3.7). `quarantined` marks an event in quarantine: it keeps its order
    among its key's events, and does nothing until it is replayed. `is_duplicate` marks a delete that was sent again, or
    its tombstone, kept only to match tombstones with their deletes (rule 3.3). `content` is a digest of the row, for
    tables that keep every change: a key may have several changes at one position there, because it need not be unique
    (message.key.columns). Of a truncate of one of several source tables, `content` is that table's name, and `scope` is
    the index of the key column that has this name, and the name; `scope` is None for a truncate of all rows."""

    op: str
    key: str | None
    partition: int
    offset: int
    timestamp: int = 0
    position: Position | None = None
    change: str | None = None
    snapshot_identity: str | None = None
    moved_from: str | None = None
    moved_to: str | None = None
    unavailable: tuple[str, ...] = ()
    quarantined: bool = False
    is_duplicate: bool = False
    arrival: Arrival = field(default=(0, 0, 0), compare=False)
    """Set by `deduplicate`."""
    content: str | None = None
    scope: Scope | None = None

    @property
    def at(self) -> Pointer:
        """Pointer to the record's values."""
        return (self.partition, self.offset)

    @property
    def is_move(self) -> bool:
        """Whether the event is the second half of a key change: its row comes from another key."""
        return self.op == "c" and self.moved_from is not None


Pointer = tuple[int, int]
"""(partition, offset) of the record that holds a value."""

ADOPTED = -1
"""Instead of a partition, for rows that no record of the topic wrote: they were in the table before it was adopted."""

JsonValue = Any
"""A value that JSON can hold."""
