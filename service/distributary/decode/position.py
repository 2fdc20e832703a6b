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

A malformed field, or one that exceeds its database's type, makes no position: its bytes could sort after all real
positions (see is_malformed). A malformed GTID or server id counts as not sent.
"""

from __future__ import annotations

from distributary.decode import sql

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

# The fields that make a position.
_ORDERING = {
    "sqlserver": ("commit_lsn", "change_lsn", "event_serial_no"),
    "db2": ("commit_lsn", "change_lsn"),
    "postgresql": ("sequence", "lsn"),
    "mysql": ("file", "pos", "row"),
    "mariadb": ("file", "pos", "row"),
    "oracle": ("commit_scn", "scn", "rs_id", "ssn"),
    BY_OFFSET: (),
}
_LARGEST_LONG = 2**63 - 1
_LARGEST_INT = 2**31 - 1  # also of the numbers that MySQL and MariaDB give their log files
_LARGEST_LSN = 2**64 - 1
_HEX = "[0-9a-fA-F]"
_LSN_FORM = rf"\A(?:{_HEX}{{8}}:{_HEX}{{8}}:{_HEX}{{%d}}|NULL)\z"
_LAST_PART = {"sqlserver": 4, "db2": 16}  # hexadecimal digits
_SEQUENCE_PART = r'(?:null|[0-9]{1,20}|"[0-9]{1,20}")'
_SEQUENCE_FORM = rf"\A *\[ *{_SEQUENCE_PART} *, *{_SEQUENCE_PART} *\] *\z"
_FILE_FORM = r"\A(?:|(?s:.*)[^0-9][0-9]{1,10}|[0-9]{1,10})\z"  # none: a snapshot of a server that writes no log
_REDO_FORM = r"\A *[0-9A-Za-z.]{1,64} *\z"
# Without a slash, which parts a position.
_GTID_FORM = r"\A[0-9A-Za-z_.:-]{1,128}[:-][0-9]{1,20}\z"

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

    `op` is an expression of the record's operation. NULL, too, where is_malformed() holds.
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
    return f"CASE WHEN NOT ({is_malformed(connector, source)}) THEN concat('{epoch:03d}:', {parts}) END"


def is_malformed(connector: str, source: str) -> str:
    """BOOLEAN: a field that makes the position is not in its database's form, or exceeds its database's type."""
    at = {name: f"{source}.{name}" for name in _ORDERING[connector]}
    if connector in _LAST_PART:
        lsn_form = _LSN_FORM % _LAST_PART[connector]
        faults = [_differs(at[name], lsn_form) for name in ("commit_lsn", "change_lsn")]
        if "event_serial_no" in at:
            faults.append(_exceeds(at["event_serial_no"], _LARGEST_LONG))
    elif connector == "postgresql":
        level, lsn = _sequence_parts(at["sequence"])
        too_large = f"coalesce(greatest({_wide(level)}, {_wide(lsn)}) > '{_LARGEST_LSN}', false)"
        faults = [_differs(at["sequence"], _SEQUENCE_FORM), too_large, _exceeds(at["lsn"], _LARGEST_LSN)]
    elif connector in ("mysql", "mariadb"):
        largest = {"pos": _LARGEST_LONG, "row": _LARGEST_INT}
        faults = [_differs(at["file"], _FILE_FORM), _exceeds(f"nullif({_file_number(at['file'])}, '')", _LARGEST_INT)]
        faults += [_exceeds(at[name], limit) for name, limit in largest.items()]
    elif connector == "oracle":
        largest = {"commit_scn": _LARGEST_LSN, "scn": _LARGEST_LSN, "ssn": _LARGEST_INT}
        faults = [_exceeds(at[name], limit) for name, limit in largest.items()]
        faults.append(_differs(at["rs_id"], _REDO_FORM))
    else:
        faults = ["false"]
    return " OR ".join(faults)


def _differs(value: str, form: str) -> str:
    """BOOLEAN: there is a value, and it does not match the form."""
    return f"NOT coalesce({value} RLIKE {sql.text(form)}, true)"


def _exceeds(value: str, largest: int) -> str:
    """BOOLEAN: there is a value, and it is no whole number from 0 to `largest`."""
    return f"({value} IS NOT NULL AND NOT coalesce({_number(value, len(str(largest)))} <= '{largest}', false))"


def _number(value: str, digits: int = _UNSIGNED_DIGITS) -> str:
    form = sql.text(rf"\A[0-9]{{1,{digits}}}\z")
    return f"CASE WHEN {value} RLIKE {form} THEN lpad({value}, {digits}, '0') END"


def _lsn(value: str) -> str:
    return f"coalesce({_known_lsn(value)}, '')"


def _known_lsn(value: str) -> str:
    """The connector's own text for no LSN is `NULL`."""
    return f"nullif(lower({value}), 'null')"


def _sqlserver(s: str, op: str) -> str:
    serial = f"coalesce({_number(f'{s}.event_serial_no')}, '')"
    return (
        f"CASE WHEN {_known_lsn(f'{s}.commit_lsn')} IS NOT NULL OR {op} = 'r'"
        f" THEN concat({_lsn(f'{s}.commit_lsn')}, '/', {_lsn(f'{s}.change_lsn')}, '/', {serial}) END"
    )


def _db2(s: str, op: str) -> str:
    return (
        f"CASE WHEN {_known_lsn(f'{s}.commit_lsn')} IS NOT NULL OR {op} = 'r'"
        f" THEN concat({_lsn(f'{s}.commit_lsn')}, '/', {_lsn(f'{s}.change_lsn')}) END"
    )


def _postgresql(s: str, op: str) -> str:
    first, second = _sequence_parts(f"{s}.sequence")
    read = f"greatest({_wide(f'{s}.lsn')}, {_wide(first)}, {_wide(second)}, repeat('0', {_UNSIGNED_DIGITS}))"
    lsn = _wide(f"coalesce({second}, {s}.lsn)")
    body = (
        f"CASE WHEN {op} = 'r' THEN concat({read}, 'r', {read})"
        f" WHEN coalesce({first}, 'null') = 'null' THEN concat({lsn}, '?', {lsn})"
        f" ELSE concat({_wide(first)}, '.', {lsn}) END"
    )
    time = f"coalesce({_number(f'{s}.ts_ms', _TIME_DIGITS)}, repeat('0', {_TIME_DIGITS}))"
    return f"concat({body}, '@', {time})"


def _sequence_parts(sequence: str) -> tuple[str, str]:
    """Of `["12","34"]` or `[null,"34"]`; connectors before 1.5 have no sequence: the lsn is all there is."""
    # No array and lambda: Spark generates no code for lambdas.
    parts = f"translate({sequence}, '[]\" ', '')"
    return (
        f"substring_index({parts}, ',', 1)",
        f"CASE WHEN contains({parts}, ',') THEN substring_index(substring_index({parts}, ',', 2), ',', -1) END",
    )


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
    number = _file_number(f"{s}.file")
    row = f"coalesce({_number(f'{s}.row', 10)}, '0000000000')"
    return f"concat({_number(number)}, '/', {_number(f'{s}.pos')}, '/', {row}, {_transaction_of_binlog(s)})"


def _file_number(file: str) -> str:
    """The digits at the end; empty where there are none."""
    return f"regexp_extract({file}, '([0-9]+)$', 1)"


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
    known = f"{gtid} RLIKE {sql.text(_GTID_FORM)} AND {_number(f'{s}.server_id', 10)} IS NOT NULL"
    return f"CASE WHEN {known} THEN coalesce(concat('/', {s}.server_id, '/', {origin}, '/', {wide}), '') ELSE '' END"


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
