"""The source's own place in its log, as a text that sorts as the source's order; tables keep it in `__position`.

Every position starts with the table's epoch (`000:`), which an operator raises after the source went back to an earlier
position. Missing parts sort lowest, except for PostgreSQL's commit level, which is then unknown:

| connector      | position                                                                                   |
| ---            | ---                                                                                        |
| sqlserver      | commit_lsn / change_lsn / event_serial_no                                                  |
| db2            | commit_lsn / change_lsn                                                                    |
| postgresql     | commit level . lsn @ commit time, the first two from `source.sequence`; `lsn ? lsn @ time` |
|                | where the commit level is not known; `lsn r lsn @ time` for a row that a snapshot read     |
| mysql, mariadb | number in `file` / pos / row, and where there is a GTID / server_id / its origin / number  |
| oracle         | commit_scn / scn / rs_id / ssn; a row that a snapshot read has no commit_scn, its scn      |
|                | stands for it                                                                              |
| offset         | @ timestamp / partition / offset, all Kafka's: rows that say nothing of the log            |
"""

from __future__ import annotations

import re
from collections.abc import Callable

from distributary.decoding.source_block import BY_OFFSET, Source

_LSN_DIGITS = 20
"""A log sequence number of 64 bits has at most 20 decimal digits."""
_TIME_DIGITS = 13
_MILLIS_DIGITS = 15
_PARTITION_DIGITS = 10
_FILE_NUMBER = re.compile(r"[0-9]+$")
_NO_SEQUENCE = str.maketrans("", "", '[]" ')
_MARIADB_GTID = "-"

PositionOf = Callable[[Source, "str | None"], "str | None"]

NEEDED = {
    "sqlserver": ("commit_lsn", "change_lsn"),
    "db2": ("commit_lsn", "change_lsn"),
    "postgresql": ("sequence",),
    "mysql": ("file", "pos"),
    "mariadb": ("file", "pos"),
    "oracle": ("commit_scn", "scn"),
}
"""The fields of a source block without which a connector's changes can't be ordered."""


def position_of(connector: str) -> PositionOf:
    """The function from a source block and the operation to the position, without its epoch; None if there is none."""
    return _BY_CONNECTOR[connector]


def offset_position(milliseconds: int, partition: int, offset: int) -> str:
    """The position of a record whose source tells none: Kafka's timestamp and place."""
    return f"@{max(milliseconds, 0):0{_MILLIS_DIGITS}d}/{partition:0{_PARTITION_DIGITS}d}/{offset:0{_LSN_DIGITS}d}"


def padded(told: int | str | None, digits: int = _LSN_DIGITS) -> str | None:
    """A number that is not negative, with all its digits; None for anything else."""
    if isinstance(told, bool) or told is None:
        return None
    text = str(told) if isinstance(told, str) or abs(told) < 10**digits else ""
    return text.zfill(digits) if text.isascii() and text.isdigit() and len(text) <= digits else None


def _lower(told: int | str | None) -> str:
    return "" if told is None else str(told).lower()


def _sqlserver(source: Source, op: str | None) -> str | None:
    if source.commit_lsn is None and op != "r":
        return None
    serial = source.event_serial_no
    number = "" if serial is None else padded(serial) or ""
    return f"{_lower(source.commit_lsn)}/{_lower(source.change_lsn)}/{number}"


def _db2(source: Source, op: str | None) -> str | None:
    if source.commit_lsn is None and op != "r":
        return None
    return f"{_lower(source.commit_lsn)}/{_lower(source.change_lsn)}"


def _postgresql(source: Source, op: str | None) -> str | None:
    """`sequence` is `["12","34"]` or `[null,"34"]`; connectors before 1.5 have none, and the lsn is all there is."""
    first, _, rest = (source.sequence or "").translate(_NO_SEQUENCE).partition(",")
    second = rest.partition(",")[0]
    commit = None if first in ("", "null") else padded(first)
    lsn = padded(second if second not in ("", "null") else source.lsn)
    time = padded(source.ts_ms, _TIME_DIGITS) or "0" * _TIME_DIGITS
    if op == "r":
        read = max(filter(None, (padded(source.lsn), commit, lsn, "0" * _LSN_DIGITS)))
        return f"{read}r{read}@{time}"
    if lsn is None or (commit is None and first not in ("", "null")):
        return None
    return f"{lsn}?{lsn}@{time}" if commit is None else f"{commit}.{lsn}@{time}"


def _binlog(source: Source, _op: str | None) -> str | None:
    found = _FILE_NUMBER.search(source.file) if source.file else None
    number, pos = padded(found[0]) if found else None, padded(source.pos)
    if number is None or pos is None:
        return None
    return f"{number}/{pos}/{padded(source.row, 10) or '0000000000'}{_gtid(source)}"


def _gtid(source: Source) -> str:
    """`/server/origin/number` of the GTID: MySQL's `uuid:number`, MariaDB's `domain-server-number`; else empty."""
    gtid = source.gtid
    if gtid is None or source.server_id is None:
        return ""
    if ":" in gtid:
        origin, _, number = gtid.rpartition(":")
    else:
        origin, number = gtid.partition(_MARIADB_GTID)[0], gtid.rpartition(_MARIADB_GTID)[2]
    wide = padded(number, 19)
    return "" if wide is None else f"/{source.server_id}/{origin}/0{wide}"


def _oracle(source: Source, _op: str | None) -> str | None:
    scn = padded(source.scn)
    commit = padded(source.commit_scn) or scn
    if commit is None:
        return None
    # Changes of one transaction can share an scn, even those of one row.
    return f"{commit}/{scn or ''}/{(source.rs_id or '').strip(' ').lower()}/{padded(source.ssn, 10) or ''}"


def _nowhere(_source: Source, _op: str | None) -> None:
    return None


_BY_CONNECTOR: dict[str, PositionOf] = {
    "sqlserver": _sqlserver,
    "db2": _db2,
    "postgresql": _postgresql,
    "mysql": _binlog,
    "mariadb": _binlog,
    "oracle": _oracle,
    BY_OFFSET: _nowhere,
}
