"""The source's own place in its log, as a STRING that sorts as the source's order.

Every position starts with the table's epoch (`000:`), which an operator raises after the source went back to an
earlier position. Missing parts sort lowest, except for PostgreSQL's commit level, which is then unknown:

| connector      | position                                                                                   |
| ---            | ---                                                                                        |
| sqlserver      | commit_lsn / change_lsn / event_serial_no                                                  |
| db2            | commit_lsn / change_lsn                                                                    |
| postgresql     | commit level . lsn @ commit time, the first two from `source.sequence`; `lsn ? lsn @ time` |
|                | where the commit level is not known; `lsn r lsn @ time` for a row that a snapshot read     |
| mysql, mariadb | number in `file` / pos / row, and where there is a GTID / server_id / its origin / number  |
| oracle         | commit_scn / scn / rs_id / ssn, as numbers; rs_id, a place in the redo log, is text. A row |
|                | that a snapshot read has no commit_scn: its scn, as of which it was read, stands for it    |
| offset         | @ timestamp / partition / offset, all Kafka's: unwrapped rows that say nothing of the log  |

The first transaction after a start of the PostgreSQL connector has no commit level, also when it is sent again. Its
lsn alone is no order (a transaction may log a change before another one that commits first), so it is compared with
others by the commit time, then the lsn. A snapshot row is compared, with truncates alone, by its lsn: the highest that
its source block names, as an incremental snapshot's row has only those of the stream around it.
"""

from __future__ import annotations

BY_OFFSET = "offset"
"""The name that stands for a connector's where the source's own positions are not known."""

# What of a source block is needed to order changes.
_NEEDED = {
    "sqlserver": ("commit_lsn", "change_lsn"),
    "db2": ("commit_lsn", "change_lsn"),
    "postgresql": ("sequence",),
    "mysql": ("file", "pos"),
    "mariadb": ("file", "pos"),
    "oracle": ("commit_scn", "scn"),
}

_TIME_DIGITS = 13  # milliseconds since 1970, until the year 2286
_UNSIGNED_DIGITS = 20  # a 64-bit log sequence number has at most 20 decimal digits
_MILLIS_DIGITS = 15
_PARTITION_DIGITS = 10
_PLACE_WIDTH = len("000:") + _UNSIGNED_DIGITS + len("/") + _UNSIGNED_DIGITS + len("/") + 10  # file/pos/row
_PARTITION_AT = len("000:@") + _MILLIS_DIGITS + len("/") + 1


def needed_for_order(connector: str) -> tuple[str, ...]:
    """The fields of a source block without which the connector's changes can't be ordered."""
    return _NEEDED[connector]


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
        "oracle": _oracle,
        BY_OFFSET: _offset,
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
    # `["12","34"]` or `[null,"34"]`; connectors before 1.5 have no sequence: the lsn is all there is. Not split into an
    # array that a lambda looks at: for lambdas Spark generates no code.
    parts = f"translate({s}.sequence, '[]\" ', '')"
    first = f"substring_index({parts}, ',', 1)"
    second = f"CASE WHEN contains({parts}, ',') THEN substring_index(substring_index({parts}, ',', 2), ',', -1) END"
    read = f"greatest({_wide(f'{s}.lsn')}, {_wide(first)}, {_wide(second)}, repeat('0', {_UNSIGNED_DIGITS}))"
    lsn = _wide(f"coalesce({second}, {s}.lsn)")
    body = (
        f"CASE WHEN {op} = 'r' THEN concat({read}, 'r', {read})"
        f" WHEN coalesce({first}, 'null') = 'null' THEN concat({lsn}, '?', {lsn})"
        f" ELSE concat({_wide(first)}, '.', {lsn}) END"
    )
    time = f"coalesce({_number(f'{s}.ts_ms', _TIME_DIGITS)}, repeat('0', {_TIME_DIGITS}))"
    return f"concat({body}, '@', {time})"


def _wide(number: str) -> str:
    """An lsn in all its digits; NULL for `null`."""
    return f"lpad(nullif({number}, 'null'), {_UNSIGNED_DIGITS}, '0')"


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
    return position.replace("r", "?")


def _binlog(s: str, _op: str) -> str:
    number = f"regexp_extract({s}.file, '([0-9]+)$', 1)"
    row = f"coalesce({_number(f'{s}.row', 10)}, '0000000000')"
    return f"concat({_number(number)}, '/', {_number(f'{s}.pos')}, '/', {row}, {_transaction_of_binlog(s)})"


def _transaction_of_binlog(s: str) -> str:
    """`/server/origin/number` of the GTID: MySQL's `uuid:number`, MariaDB's `domain-server-number`; else empty."""
    gtid = f"{s}.gtid"
    is_mysql = f"contains({gtid}, ':')"
    number = f"substring_index({gtid}, CASE WHEN {is_mysql} THEN ':' ELSE '-' END, -1)"
    origin = (
        f"CASE WHEN {is_mysql} THEN left({gtid}, length({gtid}) - length({number}) - 1)"
        f" ELSE substring_index({gtid}, '-', 1) END"
    )
    wide = f"lpad(try_cast({number} AS BIGINT), {_UNSIGNED_DIGITS}, '0')"
    return (
        f"CASE WHEN {gtid} IS NOT NULL THEN coalesce(concat('/', {s}.server_id, '/', {origin}, '/', {wide}), '')"
        " ELSE '' END"
    )


def _oracle(s: str, _op: str) -> str:
    commit = f"coalesce({_number(f'{s}.commit_scn')}, {_number(f'{s}.scn')})"
    scn = f"coalesce({_number(f'{s}.scn')}, '')"
    # Changes of one transaction can share an scn, even those of one row.
    place = f"coalesce(lower(trim({s}.rs_id)), ''), '/', coalesce({_number(f'{s}.ssn', 10)}, '')"
    return f"concat({commit}, '/', {scn}, '/', {place})"


def _offset(_s: str, _op: str) -> str:
    at = f"lpad(greatest(unix_millis(timestamp), 0), {_MILLIS_DIGITS}, '0')"
    return (
        f"concat('@', {at}, '/', lpad(partition, {_PARTITION_DIGITS}, '0'), '/', lpad(offset, {_UNSIGNED_DIGITS}, '0'))"
    )


def is_later(connector: str, a: str, b: str) -> str:
    """BOOLEAN: position `a` comes after position `b`; both not NULL.

    In SQL that Spark and DataFusion understand alike: slices are merged by either of them.
    """
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
        f"(CASE WHEN {of_one_epoch} AND (contains({a}, 'r') OR contains({b}, 'r')) THEN {lsn_of(a)} > {lsn_of(b)}"
        f" WHEN {of_one_epoch} AND (contains({a}, '?') OR contains({b}, '?'))"
        f" THEN {a_time} > {b_time} OR ({a_time} = {b_time} AND {lsn_of(a)} > {lsn_of(b)})"
        f" ELSE {a} > {b} END)"
    )


def transaction_sql(connector: str, source: str, position: str) -> str:
    """STRING: what the changes of one transaction share, and no others; NULL where nothing tells."""
    if connector in ("mysql", "mariadb"):
        return f"{source}.gtid"
    if connector in ("postgresql", "oracle"):
        return f"{source}.txId"
    if connector == BY_OFFSET:
        return f"coalesce({source}.txId, {source}.gtid)"
    return f"substring_index({position}, '/', 1)"
