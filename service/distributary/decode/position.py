"""The source's own place in its log, as a text that sorts as the source's order; tables keep it in `__position`.

Every position starts with the table's epoch (`000:`), which an operator raises after the source went back to an earlier
position. Missing parts sort lowest, except for PostgreSQL's commit level, which is then unknown:

| connector      | position                                                                                   |
| ---            | ---                                                                                        |
| sqlserver      | commit_lsn / change_lsn / event_serial_no                                                  |
| db2            | commit_lsn / change_lsn                                                                    |
| postgresql     | commit level . lsn @ commit time, the first two from `source.sequence`; `lsn ? lsn @ time` |
|                | where the commit level is not known; `lsn r lsn @ time` for a row that a snapshot read, or |
|                | `lsn R lsn @ time` where its connector had streamed before                                 |
| mysql, mariadb | number in `file` / pos / row, and where there is a GTID / server_id / its origin / number  |
| oracle         | commit_scn / scn / rs_id / ssn; a row that a snapshot read has no commit_scn, its scn      |
|                | stands for it                                                                              |
| offset         | @ timestamp / partition / offset, all Kafka's: rows without a place in the source's log    |

A field that is not in its connector's form, or exceeds its database's type, makes no position: its text could sort
after all real positions, and no later change of its key would ever be applied. The same holds for the largest value of
a log's numbers, which databases and connectors use for "no end", and for a change at LSN 0, which they use for
"nowhere": it would look as if the source went back. A wrong place within these bounds can't be distinguished from a
real one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from distributary.decode.source_block import BY_OFFSET, Source

_LSN_DIGITS = 20
"""A log sequence number of 64 bits has at most 20 decimal digits."""
_TIME_DIGITS = 13
_MILLIS_DIGITS = 15
_PARTITION_DIGITS = 10
_LARGEST_LONG = 2**63 - 1
_LARGEST_INT = 2**31 - 1
"""Also the largest number that MySQL and MariaDB give a log file."""
_LARGEST_POSTGRESQL_LSN = 2**63 - 2
"""Debezium writes a signed number, and uses the largest one for "no end"."""
_LARGEST_SCN = 2**64 - 2
"""Oracle uses the largest number of 64 bits for "no end"."""
_LARGEST_SEQUENCE_LSN = str(_LARGEST_POSTGRESQL_LSN).zfill(_LSN_DIGITS)
_NO_LSN = "0" * _LSN_DIGITS
_HEX = "[0-9a-fA-F]"
_NOT_LAST = "(?![fF:]*$)"
_SQLSERVER_LSN = re.compile(rf"{_NOT_LAST}{_HEX}{{8}}:{_HEX}{{8}}:{_HEX}{{4}}")
_DB2_LSN = re.compile(rf"{_NOT_LAST}{_HEX}{{8}}:{_HEX}{{8}}:{_HEX}{{16}}")
_SEQUENCE_PART = r'(null|[0-9]{1,20}|"[0-9]{1,20}")'
_SEQUENCE = re.compile(rf" *\[ *{_SEQUENCE_PART} *, *{_SEQUENCE_PART} *\] *")
_FILE = re.compile(r"(?:(?s:.*)[^0-9])?([0-9]{1,10})|")
"""The field is empty in a snapshot of a server that writes no log."""
_REDO_PLACE = re.compile(r" *[0-9A-Za-z.]{1,64} *")
_GTID = re.compile(r"[0-9A-Za-z_.:-]{1,128}[:-][0-9]{1,20}")
"""Without a slash, which separates the parts of a position."""
_MARIADB_GTID = "-"

PositionOf = Callable[[Source, "str | None"], "str | None"]


class BadPosition(ValueError):
    """A field of the position is not in its connector's form, or is too large."""


class PositionForm(NamedTuple):
    """How a connector's positions are made: the fields of the source block without which its changes can't be ordered,
    and the function from a source block and the operation to the position, as position_of() returns it."""

    needed: tuple[str, ...]
    position: PositionOf


def position_of(connector: str) -> PositionOf:
    """The function from a source block and the operation to the position without its epoch. It returns None if there is
    no position.

    It raises BadPosition.
    """
    return _nowhere if connector == BY_OFFSET else CONNECTORS[connector].position


def offset_position(milliseconds: int, partition: int, offset: int) -> str:
    """The position of a record without one of its source: Kafka's timestamp, partition and offset."""
    return f"@{max(milliseconds, 0):0{_MILLIS_DIGITS}d}/{partition:0{_PARTITION_DIGITS}d}/{offset:0{_LSN_DIGITS}d}"


def padded(value: int | str | None, digits: int = _LSN_DIGITS) -> str | None:
    """A non-negative number with leading zeros; None for anything else."""
    if type(value) is int:  # nearly always so
        return str(value).zfill(digits) if 0 <= value < 10**digits else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= digits:
        return value.zfill(digits)
    return None


def _number(value: int | str | None, largest: int, digits: int = _LSN_DIGITS) -> str | None:
    """A whole number from 0 to `largest`, with leading zeros. Raises BadPosition."""
    if value is None:
        return None
    if type(value) is int and 0 <= value <= largest:  # nearly always so
        return str(value).zfill(digits)
    padded_value = padded(value, len(str(largest)))
    if padded_value is None or int(padded_value) > largest:
        raise BadPosition(value)
    return padded_value.zfill(digits)


def _hex_lsn(value: int | str | None, form: re.Pattern[str]) -> str:
    """SQL Server's and Db2's LSN in lower case; empty if there is none, which the connector writes as NULL.

    Raises BadPosition."""
    if value is None or value == "NULL":
        return ""
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise BadPosition(value)
    return value.lower()


@lru_cache(maxsize=1024)  # all changes of a transaction have the same, and all rows of a snapshot
def _commit_lsn(value: int | str | None, *, is_snapshot: bool, form: re.Pattern[str]) -> str:
    """The LSN of the change's commit. Raises BadPosition."""
    lsn = _hex_lsn(value, form)
    if lsn and not is_snapshot and not lsn.strip("0:"):
        raise BadPosition(value)
    return lsn


def _sqlserver(source: Source, op: str | None) -> str | None:
    commit = _commit_lsn(source.commit_lsn, is_snapshot=op == "r", form=_SQLSERVER_LSN)
    change = _hex_lsn(source.change_lsn, _SQLSERVER_LSN)
    serial = _number(source.event_serial_no, _LARGEST_LONG) or ""
    return f"{commit}/{change}/{serial}" if commit or op == "r" else None


def _db2(source: Source, op: str | None) -> str | None:
    commit = _commit_lsn(source.commit_lsn, is_snapshot=op == "r", form=_DB2_LSN)
    change = _hex_lsn(source.change_lsn, _DB2_LSN)
    return f"{commit}/{change}" if commit or op == "r" else None


def _sequence_lsn(part: str) -> str | None:
    """An LSN of `sequence` (see _SEQUENCE_PART) with leading zeros; None for null. Raises BadPosition."""
    if part == "null":
        return None
    lsn = part.strip('"').zfill(_LSN_DIGITS)
    if lsn > _LARGEST_SEQUENCE_LSN:
        raise BadPosition(part)
    return lsn


def _postgresql(source: Source, op: str | None) -> str | None:
    """`sequence` is `["12","34"]` or `[null,"34"]`; connectors before 1.5 do not send it, and the position is the lsn
    alone."""
    level = sequence_lsn = None
    if source.sequence is not None:
        sequence = _SEQUENCE.fullmatch(source.sequence)
        if sequence is None:
            raise BadPosition(source.sequence)
        level, sequence_lsn = map(_sequence_lsn, sequence.groups())
    block_lsn = _number(source.lsn, _LARGEST_POSTGRESQL_LSN)
    time = padded(source.ts_ms, _TIME_DIGITS)
    if level is None and source.ts_ms is not None and time is None:
        raise BadPosition(source.ts_ms)  # it orders transactions of unknown level
    time = time or "0" * _TIME_DIGITS
    if op == "r":
        read = max(filter(None, (block_lsn, level, sequence_lsn, _NO_LSN)))
        return f"{read}{'r' if level is None else 'R'}{read}@{time}"
    lsn = sequence_lsn or block_lsn
    if lsn is None:
        return None
    if lsn == _NO_LSN:
        raise BadPosition(lsn)
    return f"{lsn}?{lsn}@{time}" if level is None else f"{level}.{lsn}@{time}"


def _binlog(source: Source, _op: str | None) -> str | None:
    file = None if source.file is None else _FILE.fullmatch(source.file)
    if source.file is not None and file is None:
        raise BadPosition(source.file)
    number = None if file is None else _number(file[1], _LARGEST_INT)
    pos, row = _number(source.pos, _LARGEST_LONG), _number(source.row, _LARGEST_INT, 10)
    if number is None or pos is None:
        return None
    return f"{number}/{pos}/{row or '0000000000'}{_gtid(source)}"


def _gtid(source: Source) -> str:
    """`/server/origin/number` of the GTID: MySQL's `uuid:number`, MariaDB's `domain-server-number`; empty if it is
    malformed, as if it was not sent."""
    gtid = source.gtid
    if gtid is None or padded(source.server_id, 10) is None or _GTID.fullmatch(gtid) is None:
        return ""
    if ":" in gtid:
        origin, _, number = gtid.rpartition(":")
    else:
        origin, number = gtid.partition(_MARIADB_GTID)[0], gtid.rpartition(_MARIADB_GTID)[2]
    is_long = number.isdigit() and int(number) <= _LARGEST_LONG
    return f"/{source.server_id}/{origin}/{int(number):0{_LSN_DIGITS}d}" if is_long else ""


def _oracle(source: Source, _op: str | None) -> str | None:
    commit, scn = _number(source.commit_scn, _LARGEST_SCN), _number(source.scn, _LARGEST_SCN)
    ssn, place = _number(source.ssn, _LARGEST_INT, 10), source.rs_id or ""
    if place and _REDO_PLACE.fullmatch(place) is None:
        raise BadPosition(place)
    if commit is None and scn is None:
        return None
    # Changes of one transaction can share an scn, even those of one row.
    return f"{commit or scn}/{scn or ''}/{place.strip(' ').lower()}/{ssn or ''}"


def _nowhere(_source: Source, _op: str | None) -> None:
    return None


CONNECTORS: Mapping[str, PositionForm] = {
    "sqlserver": PositionForm(("commit_lsn", "change_lsn"), _sqlserver),
    "db2": PositionForm(("commit_lsn", "change_lsn"), _db2),
    "postgresql": PositionForm(("sequence",), _postgresql),
    "mysql": PositionForm(("file", "pos"), _binlog),
    "mariadb": PositionForm(("file", "pos"), _binlog),
    "oracle": PositionForm(("commit_scn", "scn"), _oracle),
}
"""The connectors whose positions have rules of their own. source_order.BUILT_IN has those that fields order."""
