"""Positions as they come from the decoder and stand in a table's `__position` (their forms: decode/position.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from distributary.rules.event import Position
from distributary.rules.log_traits import BINLOG_CONNECTORS
from distributary.rules.order import compare

EPOCH_END = len("000:")
"""Characters of the epoch that each position begins with."""
_SEPARATOR = "/"
_POSTGRESQL = re.compile(r"([0-9]+)([.?rR])([0-9]+)@([0-9]+)")
BY_OFFSET_SIGN = "@"
"""The first character of a position that is only Kafka's."""
_NO_LSN = re.compile("0*")
_BINLOG_PARTS = 3
_TIME_DIGITS = 13


def read_position(connector: str, text: str, transaction: str | None = None, time: int = 0) -> Position | None:
    """The position that a text names; None for a position that is only Kafka's, and for a PostgreSQL snapshot row's
    without an LSN.

    `transaction` is the change's, `time` its time at the source in microseconds since 1970: a table's rows do not have
    them. Of PostgreSQL the position itself has the time; of MySQL and MariaDB it has the GTID, which
    is the transaction.
    """
    epoch, in_log = int(text[: EPOCH_END - 1]), text[EPOCH_END:]
    if in_log.startswith(BY_OFFSET_SIGN):
        return None
    if connector == "postgresql":
        return _postgresql(in_log, transaction, epoch)
    parts = tuple(in_log.split(_SEPARATOR))
    if connector in BINLOG_CONNECTORS:
        server, origin, number = parts[_BINLOG_PARTS:] or (None, None, None)
        gtid = None if number is None else f"{origin}:{number}"
        return Position(parts[:2], parts[2:3], gtid, time, epoch, None if server is None else int(server))
    if connector in ("sqlserver", "db2"):
        transaction = parts[0]
    return Position(parts[:1], parts[1:], transaction, time, epoch)


def _postgresql(in_log: str, transaction: str | None, epoch: int) -> Position | None:
    match = _POSTGRESQL.fullmatch(in_log)
    if match is None:
        raise ValueError(f"{in_log} is no position of PostgreSQL")
    level, kind, lsn, milliseconds = match.groups()
    if kind in "rR" and _NO_LSN.fullmatch(lsn):
        return None
    return Position(None if kind in "?r" else (level,), (lsn,), transaction, 1000 * int(milliseconds), epoch)


def write_position(connector: str, at: Position) -> str:
    """The text of a streamed change's position, as the decoder writes it."""
    epoch, level = f"{at.epoch:03d}:", at.level or ()
    if connector == "postgresql":
        (lsn,) = at.sub_position
        sign, first = ("?", lsn) if at.level is None else (".", level[0])
        return f"{epoch}{first}{sign}{lsn}@{at.time // 1000:0{_TIME_DIGITS}d}"
    parts = [*level, *at.sub_position]
    if at.server is not None and at.transaction is not None:
        parts += [str(at.server), *at.transaction.rsplit(":", 1)]
    return epoch + _SEPARATOR.join(map(str, parts))


def position_order(connector: str) -> Callable[[str], Any]:
    """A key that sorts positions by the source's log (rule 2.1). Snapshot rows without an LSN sort first; empty
    positions and those that are only Kafka's sort last."""

    def order(one: str, other: str) -> int:
        at, other_at = (read_position(connector, text) if text else None for text in (one, other))
        if at is None or other_at is None:
            return (_rank(one, at) - _rank(other, other_at)) or ((one > other) - (one < other))
        return compare(connector, at, other_at)

    return cmp_to_key(order)


def _rank(text: str, at: Position | None) -> int:
    if at is not None:
        return 1
    return 2 if not text or text.partition(":")[2].startswith("@") else 0


def highest_of(connector: str, texts: Iterable[str | None]) -> str | None:
    """The highest one of a few positions; None without any."""
    return max(filter(None, texts), key=position_order(connector), default=None)


def lowest_of(connector: str, texts: Iterable[str | None]) -> str | None:
    """The lowest one of a few positions; None without any."""
    return min(filter(None, texts), key=position_order(connector), default=None)
