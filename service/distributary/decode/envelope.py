"""The fields of one record, the same for all wire formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from distributary.decode.source_block import Source

TOMBSTONE = "x"
MESSAGE = "m"
OPERATIONS = frozenset("curdtm")
KEPT_ROW = frozenset("cur")
"""The operations whose row is written to the table."""

OLD_KEY_HEADER = "__debezium.oldkey"
NEW_KEY_HEADER = "__debezium.newkey"
UNREADABLE_HEADERS = "__distributary.unreadable"
"""The only header of a record whose headers can't be read: a name that is not UTF-8."""


class Change:
    """A parsed envelope. `after` and `before` are rows of wire values (msgspec structs) or None.

    `bad` and `unavailable` are places of columns in the row that the change writes or deletes: those whose values can't
    be restated, and those whose values the source did not send. `ts_ms` is the envelope's: when the connector processed
    the change.
    """

    __slots__ = (
        "after",
        "bad",
        "bad_before",
        "before",
        "op",
        "source",
        "transaction",
        "ts_ms",
        "unavailable",
        "unavailable_before",
    )

    def __init__(self, op: str | None, source: Source | None) -> None:
        self.op = op
        self.source = source
        self.after: Any = None
        self.before: Any = None
        self.transaction: Any = None
        self.ts_ms: int | str | None = None
        self.bad: Iterable[int] = ()
        self.bad_before: Iterable[int] = ()
        self.unavailable: Iterable[int] = ()
        self.unavailable_before: Iterable[int] = ()
