"""The state that the rules keep from one batch to the next.

A plain key's state is its row of the table, nothing else. A special key carries `base`, its row after all changes that
are final, and `recent`, its events after that. A key is special while

- a row was moved or inserted to it where it had one already, and that transaction is open;
- its row waits for a value of another key's row (rule 3.4);
- a snapshot row replaced a current one, and changes from before the snapshot may still arrive (rule 2.3);
- one of its events is in quarantine (rule 6.3);
- the topic has got more partitions (rule 2.5), until every partition has passed its events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from distributary.rules.event import TOMBSTONE, Arrival, Event, Pointer, Position
from distributary.rules.high_water_mark import Mark
from distributary.rules.key_parts import is_in_scope

Origin = Pointer | tuple[str, str] | None
"""Where to find a value that a row's own event does not hold: in another event, or in the row that a change moved
away from a key (key, change). None: no record has it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that an event wrote under a key.

    `at` points to that event's record, `origins` to the values of the columns that the event lacks. `position` is the
    event's own, `effective_position` the one by which the row is compared with truncates (rules 2.3, 3.6),
    `highest_position` the highest streamed position of the key. `ended`: empty while the row is current, `d` after a
    delete, `t` after the truncate at `ended_at`. `replaced_row`: the row that this snapshot row of PostgreSQL replaced,
    until no change from before the snapshot can arrive."""

    at: Pointer
    op: str
    position: Position | None = None
    effective_position: Position | None = None
    highest_position: Position | None = None
    origins: tuple[tuple[str, Origin], ...] = ()
    ended: str = ""
    ended_at: Position | None = None
    replaced_row: Row | None = None


@dataclass
class KeyState:
    """A special key: `base`, then `recent` in the source's order. `highest_position`: the highest streamed position of
    the events that became `base`."""

    base: Row | None = None
    highest_position: Position | None = None
    recent: list[Event] = field(default_factory=list)

    @property
    def has_quarantined(self) -> bool:
        """Whether an event of the key is in quarantine."""
        return any(event.quarantined for event in self.recent)

    @property
    def has_tombstone(self) -> bool:
        """Whether `recent` has a tombstone. It may wait for its delete, and take effect in a batch without events of
        the key."""
        return any(event.op == TOMBSTONE and not event.is_duplicate for event in self.recent)


@dataclass(frozen=True)
class Departure:
    """The row that a key change moved away from its old key; None if no row was known there.

    `provisional`: two rows were there, and an unread truncate may have removed the row that the change means.
    """

    position: Position | None
    row: Row | None
    provisional: bool = False


@dataclass
class EqualRows:
    """The newest position of a partition, and how often it had each row."""

    position: Position | None = None
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CaughtUp:
    """A moment at which the table had read its whole topic: the highest position and the latest Kafka timestamp so
    far."""

    position: Position
    kafka_time: int


@dataclass
class RulesState:
    """A table's memory: high-water marks, special keys, and all that unread records may still need.

    `deleted_keys`: the highest streamed position of keys without a row. `truncates` and `departures` (by old key and
    change) are those that a record not read yet may still need. `snapshot_rows`: identities of the newest snapshot
    rows. `partitions`: the number of partitions of the topic. `partitions_changed`: the topic got more partitions, and
    a key may have records in two of them; `partition_change_ends`: this is over once every partition has passed this
    position and this Kafka timestamp (None: records from before may still be unread). `awaiting_tombstone`: deletes
    read before the topic got more partitions, whose tombstones may be in another partition. `equal_rows`, by partition,
    and `seen_changes` are those of a table without key (keyless.py). `compacted_until`: up to this source time, in
    microseconds, records may arrive whose first copies compaction has removed. `caught_up` and, an hour later,
    `caught_up_later`: two moments at which the topic was read to its end; `settled_until`: the newest such moment so
    long ago that no record from before it can arrive any more (passed_positions.py). `without_order`: by key the
    records in quarantine that have no order (quarantine_order.py); the key's delete is remembered until all of them are
    replayed."""

    partitions: int = 1
    marks: dict[int, Mark] = field(default_factory=dict)
    special: dict[str, KeyState] = field(default_factory=dict)
    deleted_keys: dict[str, Position] = field(default_factory=dict)
    truncates: list[Event] = field(default_factory=list)
    departures: dict[tuple[str, str], Departure] = field(default_factory=dict)
    snapshot_rows: dict[str, None] = field(default_factory=dict)
    partitions_changed: bool = False
    partition_change_ends: tuple[Position, int] | None = None
    awaiting_tombstone: dict[str, tuple[Arrival, ...]] = field(default_factory=dict)
    equal_rows: dict[int, EqualRows] = field(default_factory=dict)
    seen_changes: dict[str, Position] = field(default_factory=dict)
    compacted_until: int = 0
    caught_up: CaughtUp | None = None
    caught_up_later: CaughtUp | None = None
    settled_until: CaughtUp | None = None
    without_order: dict[str, tuple[Pointer, ...]] = field(default_factory=dict)

    @property
    def partition_change_unread(self) -> bool:
        """Whether records of the time before the topic got more partitions may be unread."""
        return self.partitions_changed and self.partition_change_ends is None

    @property
    def has_quarantined(self) -> bool:
        """Whether any event is in quarantine. Then no truncate and no key change is forgotten, except in `mode:
        append`."""
        return any(key.has_quarantined for key in self.special.values()) or any(
            truncate.quarantined for truncate in self.truncates
        )

    @property
    def applicable_truncates(self) -> list[Event]:
        """The truncates that are not in quarantine."""
        return [truncate for truncate in self.truncates if not truncate.quarantined]

    def truncates_of(self, key: str, *, with_quarantined: bool = False) -> list[Event]:
        """The truncates that concern a key."""
        truncates = self.truncates if with_quarantined else self.applicable_truncates
        return [truncate for truncate in truncates if truncate.scope is None or is_in_scope(key, truncate.scope)]


@dataclass(frozen=True)
class RuleSettings:
    """A table's settings that the rules need.

    `connector`; `mode`, `deletes` and `truncate` of the config; `deletes_are_null`: tombstones are the only form of
    deletes; `compacted`: Kafka compacts the topic. `keyless`: `mode: append` of a table whose records have no key.
    """

    connector: str
    mode: str = "upsert"
    deletes: str = "hard"
    truncate: str = "apply"
    deletes_are_null: bool = False
    compacted: bool = False
    keyless: bool = False

    @property
    def marks_deleted(self) -> bool:
        """Whether rows stay in the table with a mark when they are deleted."""
        return self.mode == "upsert" and "soft" in (self.deletes, self.truncate)
