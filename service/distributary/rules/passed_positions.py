"""The positions that every partition has passed: all records below them were read, so one that arrives later with a
lower position was sent again.

A change is passed once a change of a later transaction was read from each partition. An event that is ordered by its
arrival is passed once a later timestamp was read from each partition. A new partition starts at the mark that all
others had reached: older records in it were sent again (rule 2.5).

A partition that gets no records would hold this up for ever. So the service notes a moment at which it had read the
whole topic. If it has done so again when the source is an hour further, and once more when Kafka is some minutes
further, all partitions count as having passed the positions that were read by the first of these moments: nothing is
sent again so late. The minutes are for a connector that was down for an hour: the first records that it sends are those
that it sends again.
"""

from __future__ import annotations

from dataclasses import replace

from distributary.rules.event import Event, Position
from distributary.rules.high_water_mark import Mark
from distributary.rules.log_traits import log_traits
from distributary.rules.order import compare, is_ordered_by_arrival
from distributary.rules.state import CaughtUp, Row, RulesState

RESEND_WINDOW = 3_600_000_000
"""Microseconds at the source after which no record is sent again: Kafka Connect saves a connector's offsets once a
minute, and a connector that restarts sends everything after them again."""
MOST_REMEMBERED = 100_000
"""The most changes that a table remembers after its topic got more partitions: about 90 MB, and 23 MB of the state's
text."""
_ARRIVES_WITHIN = 600_000_000
"""Microseconds at Kafka. Within this time a restarted connector has sent again, to all partitions, all that it sends
again."""


def is_passed(connector: str, state: RulesState, position: Position | None) -> bool:
    """Whether a change of a later transaction than that of `position` was read from each partition."""
    if position is None:
        return True
    if state.settled_until is not None and _is_before(connector, position, state.settled_until.position):
        return True
    for partition in range(state.partitions):
        mark = state.marks.get(partition)
        top = None if mark is None else mark.top
        if top is None or not _is_before(connector, position, top):
            return False
    return True


def _is_before(connector: str, position: Position, top: Position) -> bool:
    """Whether `top` is of a later transaction."""
    is_same = position.transaction is not None and position.transaction == top.transaction
    return not is_same and compare(connector, position, top) < 0


def note_caught_up(connector: str, state: RulesState) -> None:
    """Notes that the whole topic, as it was a moment ago, is read. To be called after a batch."""
    highest = _highest(connector, state)
    if highest is None or not highest.time:
        return
    now = CaughtUp(highest, max(mark.kafka_time for mark in state.marks.values()))
    known, later = state.caught_up, state.caught_up_later
    # A source whose clock ran ahead once must not hold this up for ever.
    if known is None or now.position.epoch != known.position.epoch or now.position.time < known.position.time:
        state.caught_up, state.caught_up_later = now, None
    elif later is None or now.position.time < later.position.time:
        state.caught_up_later = now if now.position.time - known.position.time > RESEND_WINDOW else None
    elif now.kafka_time - later.kafka_time > _ARRIVES_WITHIN:
        state.settled_until, state.caught_up, state.caught_up_later = known, later, None


def is_snapshot_row_passed(connector: str, state: RulesState, row: Row) -> bool:
    """Whether no change from before a settled snapshot row can arrive any more. Where snapshot rows are
    ordered by arrival this is so once all partitions have read a transaction with a commit level above the lsn at which
    the row was read."""
    if not log_traits(connector).snapshot_rows_by_arrival or row.op != "r" or row.position is None:
        return True
    marks = [state.marks.get(partition) for partition in range(state.partitions)]
    levels = [None if mark is None or mark.position is None else mark.position.level for mark in marks]
    settled_until = None if state.settled_until is None else state.settled_until.position.level
    if settled_until is not None and settled_until > row.position.sub_position:
        return True
    return all(level is not None and level > row.position.sub_position for level in levels)


def is_settled(connector: str, state: RulesState, event: Event) -> bool:
    """Whether no unread record can belong before an event of a key."""
    if event.quarantined:
        return False
    if not is_ordered_by_arrival(connector, event):
        return is_passed(connector, state, event.position)
    return not state.partitions_changed or event.arrival[0] < timestamp_read_everywhere(state)


def timestamp_read_everywhere(state: RulesState) -> int:
    """The latest timestamp that every partition has reached."""
    lowest = min((state.marks.get(partition) or Mark()).kafka_time for partition in range(state.partitions))
    return lowest if state.settled_until is None else max(lowest, state.settled_until.kafka_time)


def add_partitions(connector: str, state: RulesState, partitions: int) -> None:
    """The topic has got more partitions. To be called before a record of the new ones is read.

    The new partitions start at the lowest mark of the others; with empty marks if one of these has read no change yet.
    """
    lowest = _lowest(connector, state)
    for partition in range(state.partitions, partitions):
        state.marks[partition] = (
            Mark() if lowest is None else replace(lowest.copy(), kafka_time=0, awaiting_tombstone={})
        )
    for partition in range(partitions):
        state.marks.setdefault(partition, Mark())
    for mark in state.marks.values():
        # The tombstone of a delete may be in another partition: from now on the order of arrival decides which delete
        # it belongs to.
        for key, arrivals in mark.awaiting_tombstone.items():
            state.awaiting_tombstone[key] = (*state.awaiting_tombstone.get(key, ()), *arrivals)
        mark.awaiting_tombstone, mark.cleared = {}, set()
    state.partitions = partitions
    state.partitions_changed = True
    state.partition_change_ends = None


def _lowest(connector: str, state: RulesState) -> Mark | None:
    marks = [state.marks.get(partition) for partition in range(state.partitions)]
    lowest: Mark | None = None
    for mark in marks:
        if mark is None or mark.top is None:
            return None
        if lowest is None or lowest.top is None or compare(connector, mark.top, lowest.top) < 0:
            lowest = mark
    return lowest


def _highest(connector: str, state: RulesState) -> Position | None:
    highest: Position | None = None
    for mark in state.marks.values():
        if mark.top is not None and (highest is None or compare(connector, mark.top, highest) > 0):
            highest = mark.top
    return highest


def schedule_partition_change_end(connector: str, state: RulesState) -> None:
    """To be called when every record from before the topic grew has been read. The growth ends once all partitions have
    passed the positions read so far: from then on each key is in one partition."""
    highest = _highest(connector, state)
    if state.partitions_changed and highest is not None:
        state.partition_change_ends = highest, max(mark.kafka_time for mark in state.marks.values())


def end_partition_change(connector: str, state: RulesState) -> bool:
    """Ends the time in which every key is special, if it is over. True if it ends too early, because too many changes
    are remembered (one partition gets no records): from then on changes are compared with their key's row by position
    alone. next_range_by_time explains why that is seldom wrong."""
    if not state.partitions_changed:
        return False
    is_over, kafka_time = False, 0
    if state.partition_change_ends is not None:
        position, kafka_time = state.partition_change_ends
        is_over = is_passed(connector, state, position) and timestamp_read_everywhere(state) > kafka_time
    is_too_large = not is_over and sum(len(key.recent) for key in state.special.values()) > MOST_REMEMBERED
    if is_over or is_too_large:
        state.partitions_changed, state.partition_change_ends = False, None
    if is_over:
        state.awaiting_tombstone = {}
        for mark in state.marks.values():
            mark.awaiting_tombstone = {
                key: arrivals for key, arrivals in mark.awaiting_tombstone.items() if arrivals[-1][0] > kafka_time
            }
    return is_too_large
