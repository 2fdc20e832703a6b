"""The order of positions (rules/order.py) as SQL, so that Spark compares millions of rows without Python.

`tests/spark/test_positions.py` holds the two orders against each other.

The first transaction after a start of the PostgreSQL connector has no commit LSN, also when it is sent again. Its LSN
does not order it, because a transaction may log a change before another one that commits first. So it is compared by
commit time, then by LSN. A snapshot row is compared only with truncates, by the highest LSN in its source block: a row
of an incremental snapshot has only LSNs of the surrounding stream.

decode/position.py describes the parts of a position.
"""

from __future__ import annotations

from distributary.decode.source_block import BY_OFFSET
from distributary.rules.log_traits import BINLOG_CONNECTORS

_TIME_DIGITS = 13  # milliseconds since 1970, until the year 2286
_UNSIGNED_DIGITS = 20  # a 64-bit log sequence number has at most 20 decimal digits
_MILLIS_DIGITS = 15
_PARTITION_DIGITS = 10
_IN_BINLOG_WIDTH = len("000:") + _UNSIGNED_DIGITS + len("/") + _UNSIGNED_DIGITS + len("/") + 10  # file/pos/row
_PARTITION_AT = len("000:@") + _MILLIS_DIGITS + len("/") + 1


def lsn_of(position: str) -> str:
    """STRING: the LSN of a PostgreSQL position. Both records of a key change have the same."""
    return f"left(right({position}, {_UNSIGNED_DIGITS + 1 + _TIME_DIGITS}), {_UNSIGNED_DIGITS})"


def is_snapshot_row(position: str) -> str:
    """BOOLEAN: the PostgreSQL position is that of a snapshot row."""
    return f"contains(lower({position}), 'r')"


def is_later(connector: str, a: str, b: str) -> str:
    """BOOLEAN: position `a` comes after position `b`; both not NULL."""
    if connector == BY_OFFSET:
        # Timestamps may go backwards within a partition, offsets never do.
        a_series, b_series = (
            f"concat(left({p}, 3), substring({p}, {_PARTITION_AT}, {_PARTITION_DIGITS}))" for p in (a, b)
        )
        last = f"right({{}}, {_UNSIGNED_DIGITS})"
        return f"(CASE WHEN {a_series} = {b_series} THEN {last.format(a)} > {last.format(b)} ELSE {a} > {b} END)"
    if connector in BINLOG_CONNECTORS:
        server, origin, number = 4, 5, 6  # parts of the position
        # Files of two servers can't be compared. There GTIDs decide, if both have the same origin.
        by_gtid = (
            f"split_part({a}, '/', {server}) <> split_part({b}, '/', {server})"
            f" AND split_part({a}, '/', {origin}) = split_part({b}, '/', {origin})"
            f" AND split_part({a}, '/', {origin}) <> '' AND left({a}, 3) = left({b}, 3)"
        )
        return (
            f"(CASE WHEN {by_gtid} THEN split_part({a}, '/', {number}) > split_part({b}, '/', {number})"
            f" ELSE left({a}, {_IN_BINLOG_WIDTH}) > left({b}, {_IN_BINLOG_WIDTH}) END)"
        )
    if connector != "postgresql":
        return f"({a} > {b})"
    of_one_epoch = f"left({a}, 3) = left({b}, 3)"
    a_time, b_time = (f"right({p}, {_TIME_DIGITS})" for p in (a, b))
    a_log, b_log = (f"left({p}, length({p}) - {1 + _TIME_DIGITS})" for p in (a, b))  # without the time
    return (
        f"(CASE WHEN {of_one_epoch} AND ({is_snapshot_row(a)} OR {is_snapshot_row(b)}) THEN {lsn_of(a)} > {lsn_of(b)}"
        f" WHEN {of_one_epoch} AND (contains({a}, '?') OR contains({b}, '?'))"
        f" THEN {a_time} > {b_time} OR ({a_time} = {b_time} AND {lsn_of(a)} > {lsn_of(b)})"
        f" ELSE {a_log} > {b_log} END)"
    )
