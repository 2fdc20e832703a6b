"""The high-water mark of a partition: how far it was read, and what the deduplication (deduplicate.py) has to know of
the changes read there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from distributary.rules.event import TOMBSTONE, Arrival, Event, Position
from distributary.rules.order import sort_key

DELETES_REMEMBERED = 1_000
"""Keys of a partition with deletes whose tombstones are awaited. A producer may repeat a batch between the two."""

CLOCK_AHEAD = 86_400_000_000
"""Microseconds by which the time of a change may be after its record's Kafka timestamp: clocks differ, and some
connectors write local times. A time beyond it may be wrong."""


@dataclass
class Mark:
    """How far one partition was read.

    `position` is the highest position of a streamed change of known level, `ties` are the identities read there.
    `unknown` holds the transactions of unknown level read since, each with its highest position and identities there.
    `time` is the latest source time, `likely_time` the latest one that was likely (see is_likely), `reach` the highest
    lsn that a position named, `kafka_time` the latest timestamp of a record in Kafka. `awaiting_tombstone`: the newest
    deletes whose tombstones have not arrived, by key. `cleared`: the keys of tombstones by themselves, see
    deduplicate.py.
    """

    position: Position | None = None
    ties: set[str] = field(default_factory=set)
    unknown: dict[str, tuple[Position, set[str]]] = field(default_factory=dict)
    time: int = 0
    reach: tuple[int | str, ...] = ()
    kafka_time: int = 0
    awaiting_tombstone: dict[str, tuple[Arrival, ...]] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)
    likely_time: int = 0

    def latest_time(self, event: Event) -> int:
        """The latest source time, to compare with that of an event; 0 before the first. A time in the future must not
        make all later changes look like ones that are sent again: it counts for events of such times alone."""
        time = 0 if event.position is None else event.position.time
        if is_likely(self.time, event.timestamp) or not is_likely(time, event.timestamp):
            return self.time
        return self.likely_time or 1

    @property
    def top(self) -> Position | None:
        """The position of the newest streamed change."""
        return next(reversed(self.unknown.values()))[0] if self.unknown else self.position

    def copy(self) -> Mark:
        """An independent copy."""
        unknown = {name: (position, set(ties)) for name, (position, ties) in self.unknown.items()}
        return replace(
            self,
            ties=set(self.ties),
            unknown=unknown,
            awaiting_tombstone=dict(self.awaiting_tombstone),
            cleared=set(self.cleared),
        )


def await_tombstone(mark: Mark, op: str, key: str, arrival: Arrival, *, is_new: bool) -> None:
    """Rule 3.3: each delete has a tombstone. Only copies come between the two: a producer may repeat a batch there."""
    if op == "d":
        mark.awaiting_tombstone[key] = (*mark.awaiting_tombstone.pop(key, ()), arrival)
        while len(mark.awaiting_tombstone) > DELETES_REMEMBERED:
            del mark.awaiting_tombstone[next(iter(mark.awaiting_tombstone))]
    elif op == TOMBSTONE:
        rest = mark.awaiting_tombstone.pop(key, ())[1:]
        if rest:
            mark.awaiting_tombstone[key] = rest
    elif is_new:
        mark.awaiting_tombstone.pop(key, None)


def is_likely(time: int, kafka_time: int) -> bool:
    """Whether a source time may be right that was read from a record with this timestamp, or before it: it is at most
    CLOCK_AHEAD later."""
    return time <= kafka_time + CLOCK_AHEAD


def identity_of(event: Event, position: Position) -> str:
    """The identity of a change among those of its level."""
    content = "" if event.content is None else f" {event.content}"
    return f"{event.op} {event.key} {position.sub_position}{content}"


def move_mark(connector: str, mark: Mark, event: Event, position: Position) -> None:
    """Advances a mark to a streamed change at this position, which lies above it or shares its position."""
    identity = identity_of(event, position)
    mark.cleared.clear()
    mark.time = max(mark.time, position.time)
    if is_likely(position.time, event.timestamp):
        mark.likely_time = max(mark.likely_time, position.time)
    mark.reach = max(mark.reach, position.sub_position, position.level or ())
    if position.level is None and (mark.position is None or position.transaction != mark.position.transaction):
        before = mark.unknown.pop(position.transaction or "", None)
        tied = before[1] if before is not None and before[0].sub_position == position.sub_position else set[str]()
        mark.unknown[position.transaction or ""] = (position, {*tied, identity})
        return
    if position.level is None:
        assert mark.position is not None
        position = replace(position, level=mark.position.level)
    same = mark.position is not None and sort_key(connector, position) == sort_key(connector, mark.position)
    if not same:
        mark.ties = set()
    mark.ties.add(identity)
    mark.position = position
    mark.unknown.clear()
