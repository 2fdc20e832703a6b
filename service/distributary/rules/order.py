"""Rule 2.1: the source's own order, by connector.

| connector | level | sub_position | transaction |
| --- | --- | --- | --- |
| sqlserver | commit_lsn | change_lsn, event_serial_no; a null sorts lowest | commit_lsn |
| db2 | commit_lsn | change_lsn | commit_lsn |
| postgresql | sequence[0], null is unknown | sequence[1], else lsn | txId |
| mysql, mariadb | number in file, pos | row | GTID, as origin:number |
| oracle | commit_scn, else scn | scn, rs_id, ssn | txId |

Rule 1.3: records without such fields are ordered by offset alone.
"""

from __future__ import annotations

import json
from typing import Any

from distributary.rules.event import TOMBSTONE, Event, Position, Scope
from distributary.rules.log_traits import BINLOG_CONNECTORS, log_traits


def change_id(connector: str, at: Position | None, scope: Scope | None = None) -> str | None:
    """The value of Event.change: the transaction stands for a level that a restarted connector may no longer know. One
    statement may truncate several tables at one position: `scope` is that of a truncate."""
    if at is None:
        return None
    level = at.transaction if log_traits(connector).level_may_be_unknown else at.level
    return json.dumps([at.epoch, level, at.sub_position, *(scope or ())])


def is_ordered_by_arrival(connector: str, event: Event) -> bool:
    """Whether an event is ordered among its key's events by arrival alone: a tombstone, a row without position (rule
    1.3), and a snapshot row whose position does not order it (rule 2.3)."""
    if event.op == TOMBSTONE or event.is_duplicate or event.position is None:
        return True
    return event.op == "r" and log_traits(connector).snapshot_rows_by_arrival


def compare(connector: str, one: Position, other: Position) -> int:
    """Below zero: `one` is before `other`; zero: at the same position.

    A PostgreSQL transaction of unknown level is compared by the time of its commit, then by lsn. A MySQL server that
    took over starts its file numbers again: then GTIDs decide, if one origin numbered both.
    """
    if one.epoch != other.epoch:
        return one.epoch - other.epoch
    if one.level is None or other.level is None:
        if one.transaction is not None and one.transaction == other.transaction:
            return _sign(one.sub_position, other.sub_position)
        return _sign((one.time, *one.sub_position), (other.time, *other.sub_position))
    if connector in BINLOG_CONNECTORS and one.server != other.server:
        by_gtid = _by_gtid(one.transaction, other.transaction)
        if by_gtid is not None:
            return by_gtid
    return _sign(one.level, other.level) or _sign(one.sub_position, other.sub_position)


def compare_events(connector: str, one: Event, other: Event) -> int:
    """The order of two events of one key that have positions: rule 2.1. At an equal position a delete is first
    (rule 2.2), except where ties are ordered by arrival."""
    assert one.position is not None
    assert other.position is not None
    sign = compare(connector, one.position, other.position)
    if sign or log_traits(connector).ties_by_arrival:
        return sign
    return (one.op != "d") - (other.op != "d")


def precedes_truncate(connector: str, at: Position | None, truncate: Position) -> bool:
    """Whether a row at a position is older than a truncate (rule 3.6). A row without a position counts as older."""
    if at is None:
        return True
    if log_traits(connector).truncates_by_sub_position and at.epoch == truncate.epoch:
        return at.sub_position < truncate.sub_position
    return compare(connector, at, truncate) < 0


def may_show_change(connector: str, read: Position | None, change: Position | None) -> bool:
    """Whether a snapshot row at `read`, ordered by arrival, may show the result of a change (rule 2.3): its lsn is
    higher. A change that was committed only after the row was read is not in it: the row then has the values from
    before the change.
    """
    if (
        not log_traits(connector).snapshot_rows_by_arrival
        or read is None
        or change is None
        or read.epoch != change.epoch
    ):
        return False
    return read.sub_position > change.sub_position


def latest(connector: str, one: Position | None, other: Position | None) -> Position | None:
    """The higher of two positions, in the order of precedes_truncate."""
    if one is None or other is None:
        return one or other
    return other if precedes_truncate(connector, one, other) else one


def sort_key(connector: str, at: Position) -> tuple[Any, ...]:
    """A key by which a partition's changes arrive in ascending order; equal for changes whose order their positions do
    not show. Not for PostgreSQL positions of unknown level."""
    level = at.level or ()
    return (at.epoch, level) if log_traits(connector).grouped_by_level else (at.epoch, level, at.sub_position)


def compare_arrival(connector: str, one: Position, other: Position) -> int:
    """The order in which a partition gets two changes: that of their sort keys, except after a failover of MySQL."""
    if one.epoch == other.epoch and one.server != other.server:
        by_gtid = _by_gtid(one.transaction, other.transaction)
        if by_gtid is not None:
            return by_gtid
    key, other_key = sort_key(connector, one), sort_key(connector, other)
    return (key > other_key) - (key < other_key)


def _by_gtid(one: str | None, other: str | None) -> int | None:
    """The order of two GTIDs, if one origin numbered both."""
    if not one or not other:
        return None
    (origin, _, number), (other_origin, _, other_number) = one.rpartition(":"), other.rpartition(":")
    return int(number) - int(other_number) if origin == other_origin else None


def _sign(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    return (one > other) - (one < other)
