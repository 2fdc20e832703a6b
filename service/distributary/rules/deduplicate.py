"""Rules 2.4 and 2.6: a change that was applied before is dropped before the fold.

Debezium sends a table's changes in the order of its log, and after a restart repeats the last ones; Kafka keeps the
order of a partition. So the first copy of a change is above everything that was read of its partition before, and every
later copy is at or below it. A partition's high-water mark distinguishes the two. At a position that several changes
share (a bulk insert of PostgreSQL, a commit SCN of Oracle) the mark holds the identities of the changes that were read
there.

| answer | when |
| --- | --- |
| new | above the mark; at the mark with another identity; a snapshot row; a tombstone by itself (rule 3.3) |
| seen | below the mark; at the mark with the same identity; the tombstone that belongs to a delete |
| went back | below the mark, but committed later than all that was read: the source was restored (rule 2.6) |
| contradicted | the same, but its time is in the future: by Kafka's time of its record, or of a new change behind it |
| without order | the same, of a record that is in quarantine: it can't show that the source was restored |

A PostgreSQL transaction of unknown level (the first one after a start of the connector) is recognized by its id if it
is the newest one. Else it was read before if both its commit time and its lsn lie at or below the partition's highest:
either alone might mislead after a clock was set back, or for a long transaction.

Rule 3.3: after a tombstone by itself a change at an old position is accepted again. In a stream whose deletes are
nothing but tombstones, a tombstone that is sent again can't be recognized. `Mark.cleared` holds those keys until the
partition's mark moves. In all other streams a change that was applied stays applied.

In a compacted topic the first remaining copy of a change may be one that was sent again. There, a `seen` change may
still be new for its key if the key's highest position is lower: see event_processor.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from distributary.rules.event import TOMBSTONE, Event, Position
from distributary.rules.high_water_mark import Mark, await_tombstone, identity_of, is_likely, move_mark
from distributary.rules.log_traits import log_traits
from distributary.rules.order import compare_arrival

SNAPSHOT_ROWS_REMEMBERED = 10_000
"""Snapshot rows whose identities a table remembers. A producer repeats at most one batch of records, right behind
it."""

FEW_SNAPSHOT_ROWS = 100
"""At most this number of identities stays if no more snapshot rows arrive: each commit writes all of them."""

TIME_TOLERANCE = 600_000_000
"""Microseconds at the source, for compacted topics of connectors whose times do not rise with positions: a change shows
that the source was restored only if it is later than all others by more than this. Of two transactions that overlap,
the one that commits first may have the later change. If compaction removed that change's first copy, a second copy
looks like a change of a restored source."""


class Verdict(Enum):
    """The answer for an event, by its partition's mark."""

    NEW = "new"
    SEEN = "seen"
    WENT_BACK = "source-went-back"
    CONTRADICTED = "contradicted-position"
    WITHOUT_ORDER = "without-order"


@dataclass
class JudgedEvents:
    """The events of a batch, each with its verdict, in the order of the input."""

    verdicts: list[tuple[Event, Verdict]] = field(default_factory=list)

    def of(self, verdict: Verdict) -> list[Event]:
        """The events with this verdict."""
        return [event for event, other in self.verdicts if other is verdict]


def deduplicate(
    connector: str,
    marks: dict[int, Mark],
    events: Iterable[Event],
    *,
    deletes_are_null: bool = False,
    compacted: bool = False,
    partitions_changed: bool = False,
    partition_change_unread: bool = False,
    partitions: int = 1,
) -> JudgedEvents:
    """Returns the events with their verdicts, and moves the marks.

    `events`: of any partitions, each partition's by offset, none twice. `deletes_are_null`: tombstones are the only
    form of deletes. `partitions_changed`: a partition may get records that another partition had before, or
    (`partition_change_unread`) that another partition has and the service has not read yet. Truncates may be in any of
    the `partitions`. An event that went back moves no mark: the table has to halt. Neither does one whose position is
    contradicted: it has to go to quarantine. Of one without order nothing may be applied.
    """
    judged = JudgedEvents()
    moves: list[bool] = []
    mark_times: dict[int, int] = {}
    overlap = TIME_TOLERANCE if compacted and not log_traits(connector).times_follow_positions else 0
    for event in events:
        mark = marks.setdefault(event.partition, Mark())
        mark.kafka_time = max(mark.kafka_time, event.timestamp)
        event = replace(event, arrival=(mark.kafka_time, event.partition, event.offset))
        verdict, is_above = _judge(connector, mark, event, overlap)
        if verdict is Verdict.WENT_BACK and (partitions_changed or event.op == "t"):
            is_reached = _was_time_reached(marks, event)
            may_be_unread = not log_traits(connector).times_follow_positions and (
                partition_change_unread or (event.op == "t" and partitions > 1)
            )
            if may_be_unread and not (is_reached and event.op == "t"):
                verdict = Verdict.NEW  # it may be a copy of a record of another partition that is not read yet
            elif is_reached:
                verdict = Verdict.SEEN  # another partition read it
        if verdict is Verdict.WENT_BACK and event.quarantined:
            verdict = Verdict.WITHOUT_ORDER
        if verdict is Verdict.WENT_BACK:
            mark_times[len(moves)] = mark.time
        if event.key is not None:
            if verdict is Verdict.NEW and event.op == TOMBSTONE and deletes_are_null:
                mark.cleared.add(event.key)
            await_tombstone(mark, event.op, event.key, event.arrival, is_new=verdict is Verdict.NEW)
        judged.verdicts.append((event, verdict))
        moves.append(is_above)
    if mark_times:
        _find_contradicted(judged, moves, mark_times)
    return judged


def _find_contradicted(judged: JudgedEvents, moves: Sequence[bool], mark_times: Mapping[int, int]) -> None:
    """Nothing was committed after its record came to Kafka: a change that went back has a wrong time, and so maybe a
    wrong position, if Kafka's time of its record, or of a change behind it in its partition, is before that. Where the
    source's clock is ahead, that says nothing. `moves`: whether each event moved the mark; `mark_times`: the mark's
    time at each event that went back, by index."""
    kafka_times: dict[int, int] = {}  # the earliest of the changes behind an event that moved the mark, by partition
    for index in range(len(judged.verdicts) - 1, -1, -1):
        event, verdict = judged.verdicts[index]
        if event.position is None or event.op not in ("c", "u", "d"):
            continue
        partition, time = event.partition, event.position.time
        if moves[index] and is_likely(time, event.timestamp):
            kafka_times[partition] = min(event.timestamp, kafka_times.get(partition, event.timestamp))
        elif verdict is Verdict.WENT_BACK:
            for kafka_time in (event.timestamp, kafka_times.get(partition, event.timestamp)):
                if is_likely(mark_times[index], kafka_time) and not is_likely(time, kafka_time):
                    judged.verdicts[index] = (event, Verdict.CONTRADICTED)


def _was_time_reached(marks: dict[int, Mark], event: Event) -> bool:
    at = event.position
    return at is not None and any(at.time <= mark.latest_time(event) for mark in marks.values())


def _judge(connector: str, mark: Mark, event: Event, overlap: int) -> tuple[Verdict, bool]:
    """The verdict, and whether the event moved the mark."""
    if event.op == TOMBSTONE:
        # Rule 3.3: the tombstone of a delete changes nothing.
        return Verdict.SEEN if event.key in mark.awaiting_tombstone else Verdict.NEW, False
    if event.op == "r" or event.position is None:
        return Verdict.NEW, False
    if _seen_or_move_mark(connector, mark, event, event.position):
        latest_time = mark.latest_time(event)
        if event.position.time > latest_time + overlap and latest_time:
            return Verdict.WENT_BACK, False
        return Verdict.NEW if event.key in mark.cleared else Verdict.SEEN, False
    return Verdict.NEW, True


def _seen_or_move_mark(connector: str, mark: Mark, event: Event, position: Position) -> bool:
    """Whether a streamed event was read before. If not, moves the mark to it."""
    identity = identity_of(event, position)
    known = mark.position
    latest_time = mark.latest_time(event)
    newest = next(reversed(mark.unknown), None)
    if newest is not None and newest == (position.transaction or ""):
        was_read = _is_at_or_below(position, *mark.unknown[newest], identity)
    elif position.level is None:
        if known is not None and position.transaction is not None and position.transaction == known.transaction:
            was_read = _is_at_or_below(position, known, mark.ties, identity)
        else:
            was_read = position.time <= latest_time and position.sub_position <= mark.reach
    else:
        was_read = False
        if known is not None:
            sign = compare_arrival(connector, position, known)
            was_read = sign < 0 or (sign == 0 and identity in mark.ties)
        # A truncate may be sent again to a partition of which nothing of that time was read before.
        was_read = was_read or (
            bool(mark.unknown) and position.time <= latest_time and position.sub_position <= mark.reach
        )
    if was_read:
        return True
    move_mark(connector, mark, event, position)
    return False


def _is_at_or_below(position: Position, top: Position, ties: set[str], identity: str) -> bool:
    """Within one transaction: whether the position is lower, or equal and the identity known."""
    return position.sub_position < top.sub_position or (position.sub_position == top.sub_position and identity in ties)


def remember_snapshot_row(remembered: dict[str, None], event: Event) -> bool:
    """Whether a snapshot row is new, and remembers it: no row of its key with the same source block was read before
    (rule 2.3); in a table that keeps every change, none with the same source block and content."""
    identity = f"{event.key} {event.snapshot_identity} {event.content}"
    if event.snapshot_identity is None or identity not in remembered:
        remember_snapshot_rows(remembered, (identity,))
        return True
    return False


def remember_snapshot_rows(remembered: dict[str, None], identities: Iterable[str]) -> None:
    """Remembers snapshot rows, at most the newest SNAPSHOT_ROWS_REMEMBERED."""
    remembered.update(dict.fromkeys(identities))
    while len(remembered) > SNAPSHOT_ROWS_REMEMBERED:
        del remembered[next(iter(remembered))]


def forget_snapshot_rows(remembered: dict[str, None]) -> None:
    """Forgets the older half, if there are more than FEW_SNAPSHOT_ROWS. To be called after a batch without snapshot
    rows."""
    for identity in list(remembered)[: len(remembered) // 2] if len(remembered) > FEW_SNAPSHOT_ROWS else ():
        del remembered[identity]
