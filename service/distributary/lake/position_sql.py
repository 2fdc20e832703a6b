"""How positions are compared, in SQL that Spark and DataFusion understand alike: batches are merged by either of them.

The first transaction after a start of the PostgreSQL connector has no commit level, also when it is sent again. Its
lsn alone is no order (a transaction may log a change before another one that commits first), so it is compared with
others by the commit time, then the lsn. A snapshot row is compared, with truncates alone, by its lsn: the highest that
its source block names, as an incremental snapshot's row has only those of the stream around it.

decode/position.py has the positions' parts.
"""

from __future__ import annotations

from distributary.decode.source_block import BY_OFFSET

_TIME_DIGITS = 13  # milliseconds since 1970, until the year 2286
_UNSIGNED_DIGITS = 20  # a 64-bit log sequence number has at most 20 decimal digits
_MILLIS_DIGITS = 15
_PARTITION_DIGITS = 10
_PLACE_WIDTH = len("000:") + _UNSIGNED_DIGITS + len("/") + _UNSIGNED_DIGITS + len("/") + 10  # file/pos/row
_PARTITION_AT = len("000:@") + _MILLIS_DIGITS + len("/") + 1


def lsn_of(position: str) -> str:
    """STRING: the lsn of a PostgreSQL position, which the two halves of a key change share."""
    return f"left(right({position}, {_UNSIGNED_DIGITS + 1 + _TIME_DIGITS}), {_UNSIGNED_DIGITS})"


def committed_before(position: str, other: str, by_ms: int) -> str:
    """BOOLEAN: the commit time that a PostgreSQL position ends with is earlier than that of the position `other` (a
    value, no expression), by more than so many milliseconds."""
    until = str(max(0, int(other[-_TIME_DIGITS:]) - by_ms)).zfill(_TIME_DIGITS)
    return f"right({position}, {_TIME_DIGITS}) < '{until}'"


def as_committed(position: str) -> str:
    """The place of a row that PostgreSQL's snapshot read, as one among the changes: by the time, then the lsn."""
    return position.replace("r", "?").replace("R", "?")


def is_snapshot_row(position: str) -> str:
    """BOOLEAN: the PostgreSQL position is that of a row that a snapshot read."""
    return f"contains(lower({position}), 'r')"


def is_later(connector: str, a: str, b: str) -> str:
    """BOOLEAN: position `a` comes after position `b`; both not NULL."""
    if connector == BY_OFFSET:
        # Timestamps may go backwards within a partition, offsets never do.
        a_place, b_place = (
            f"concat(left({p}, 3), substring({p}, {_PARTITION_AT}, {_PARTITION_DIGITS}))" for p in (a, b)
        )
        last = f"right({{}}, {_UNSIGNED_DIGITS})"
        return f"(CASE WHEN {a_place} = {b_place} THEN {last.format(a)} > {last.format(b)} ELSE {a} > {b} END)"
    if connector in ("mysql", "mariadb"):
        server, origin, number = 4, 5, 6  # parts of the position
        # Files of two servers have nothing to do with each other: there the GTID tells, if one origin counted both.
        by_gtid = (
            f"split_part({a}, '/', {server}) <> split_part({b}, '/', {server})"
            f" AND split_part({a}, '/', {origin}) = split_part({b}, '/', {origin})"
            f" AND split_part({a}, '/', {origin}) <> '' AND left({a}, 3) = left({b}, 3)"
        )
        return (
            f"(CASE WHEN {by_gtid} THEN split_part({a}, '/', {number}) > split_part({b}, '/', {number})"
            f" ELSE left({a}, {_PLACE_WIDTH}) > left({b}, {_PLACE_WIDTH}) END)"
        )
    if connector != "postgresql":
        return f"({a} > {b})"
    of_one_epoch = f"left({a}, 3) = left({b}, 3)"
    a_time, b_time = (f"right({p}, {_TIME_DIGITS})" for p in (a, b))
    return (
        f"(CASE WHEN {of_one_epoch} AND ({is_snapshot_row(a)} OR {is_snapshot_row(b)}) THEN {lsn_of(a)} > {lsn_of(b)}"
        f" WHEN {of_one_epoch} AND (contains({a}, '?') OR contains({b}, '?'))"
        f" THEN {a_time} > {b_time} OR ({a_time} = {b_time} AND {lsn_of(a)} > {lsn_of(b)})"
        f" ELSE {a} > {b} END)"
    )
