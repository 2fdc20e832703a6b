"""The source's own place in its log, as a STRING that sorts as the source's order.

Every position starts with the table's epoch (`000:`), which an operator raises after the source went back to an
earlier position. Missing parts sort lowest, except for PostgreSQL's commit level, which is then unknown:

| connector      | position                                                                                   |
| ---            | ---                                                                                        |
| sqlserver      | commit_lsn / change_lsn / event_serial_no                                                  |
| db2            | commit_lsn / change_lsn                                                                    |
| postgresql     | commit level . lsn @ commit time, the first two from `source.sequence`; `lsn ? lsn @ time` |
|                | where the commit level is not known; `lsn r lsn @ time` for a row that a snapshot read     |
| mysql, mariadb | number in `file` / pos / row                                                               |

The first transaction after a start of the PostgreSQL connector has no commit level, also when it is sent again. Its
lsn alone is no order (a transaction may log a change before another one that commits first), so it is compared with
others by the commit time, then the lsn. A snapshot row is compared, with truncates alone, by its lsn: the highest that
its source block names, as an incremental snapshot's row has only those of the stream around it.
"""

from __future__ import annotations

from distributary.decode.sql import let

_TIME_DIGITS = 13  # milliseconds since 1970, until the year 2286
_UNSIGNED_DIGITS = 20  # a 64-bit log sequence number has at most 20 decimal digits


def position_sql(connector: str, source: str, op: str, epoch: int) -> str:
    """STRING: the position of a record from its `source` struct (all fields STRING); NULL where it has none.

    `op` is an expression of the record's operation.
    """
    parts = {
        "sqlserver": _sqlserver,
        "db2": _db2,
        "postgresql": _postgresql,
        "mysql": _binlog,
        "mariadb": _binlog,
    }[connector](source, op)
    return f"concat('{epoch:03d}:', {parts})"


def _number(value: str, digits: int = _UNSIGNED_DIGITS) -> str:
    return f"CASE WHEN {value} RLIKE '^[0-9]{{1,{digits}}}$' THEN lpad({value}, {digits}, '0') END"


def _lsn(value: str) -> str:
    return f"coalesce(lower({value}), '')"


def _sqlserver(s: str, op: str) -> str:
    serial = f"coalesce({_number(f'{s}.event_serial_no')}, '')"
    return (
        f"CASE WHEN {s}.commit_lsn IS NOT NULL OR {op} = 'r'"
        f" THEN concat({_lsn(f'{s}.commit_lsn')}, '/', {_lsn(f'{s}.change_lsn')}, '/', {serial}) END"
    )


def _db2(s: str, op: str) -> str:
    return (
        f"CASE WHEN {s}.commit_lsn IS NOT NULL OR {op} = 'r'"
        f" THEN concat({_lsn(f'{s}.commit_lsn')}, '/', {_lsn(f'{s}.change_lsn')}) END"
    )


def _postgresql(s: str, op: str) -> str:
    # `["12","34"]` or `[null,"34"]`; connectors before 1.5 have no sequence: the lsn is all there is.
    parts = f"split(translate({s}.sequence, '[]\" ', ''), ',')"
    read = f"greatest({_wide(f'{s}.lsn')}, {_wide('part_[0]')}, {_wide('part_[1]')}, repeat('0', {_UNSIGNED_DIGITS}))"
    lsn = _wide(f"coalesce(part_[1], {s}.lsn)")
    twice = let("read_", read, "concat(read_, 'r', read_)")
    body = (
        f"CASE WHEN {op} = 'r' THEN {twice}"
        f" WHEN coalesce(part_[0], 'null') = 'null' THEN concat({lsn}, '?', {lsn})"
        f" ELSE concat({_wide('part_[0]')}, '.', {lsn}) END"
    )
    time = f"coalesce({_number(f'{s}.ts_ms', _TIME_DIGITS)}, repeat('0', {_TIME_DIGITS}))"
    return f"concat({let('part_', parts, body)}, '@', {time})"


def _wide(number: str) -> str:
    """An lsn in all its digits; NULL for `null`."""
    return f"lpad(nullif({number}, 'null'), {_UNSIGNED_DIGITS}, '0')"


def lsn_of(position: str) -> str:
    """STRING: the lsn of a PostgreSQL position, which the two halves of a key change share."""
    return f"substring({position}, -{_UNSIGNED_DIGITS + 1 + _TIME_DIGITS}, {_UNSIGNED_DIGITS})"


def _binlog(s: str, _op: str) -> str:
    number = f"regexp_extract({s}.file, '([0-9]+)$', 1)"
    row = f"coalesce({_number(f'{s}.row', 10)}, '0000000000')"
    return f"concat({_number(number)}, '/', {_number(f'{s}.pos')}, '/', {row})"


def is_later(connector: str, a: str, b: str) -> str:
    """BOOLEAN: position `a` comes after position `b`; both not NULL."""
    if connector != "postgresql":
        return f"({a} > {b})"
    of_one_epoch = f"left({a}, 3) = left({b}, 3)"
    a_time, b_time = (f"right({p}, {_TIME_DIGITS})" for p in (a, b))
    return (
        f"(CASE WHEN {of_one_epoch} AND (contains({a}, 'r') OR contains({b}, 'r')) THEN {lsn_of(a)} > {lsn_of(b)}"
        f" WHEN {of_one_epoch} AND (contains({a}, '?') OR contains({b}, '?'))"
        f" THEN {a_time} > {b_time} OR ({a_time} = {b_time} AND {lsn_of(a)} > {lsn_of(b)})"
        f" ELSE {a} > {b} END)"
    )


def transaction_sql(connector: str, source: str, position: str) -> str:
    """STRING: what the changes of one transaction share, and no others; NULL where nothing tells."""
    if connector in ("mysql", "mariadb"):
        return f"{source}.gtid"
    if connector == "postgresql":
        return f"{source}.txId"
    return f"substring_index({position}, '/', 1)"
