"""Debezium's envelope: how it differs from a row, and the fields of one record, the same for all wire formats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from distributary.decode.source_block import Source

TOMBSTONE = "x"
MESSAGE = "m"
OPERATIONS = frozenset("curdtm")
KEPT_ROW = frozenset("cur")
"""The operations whose row is written to the table."""

ENVELOPE_FIELDS = frozenset(
    ("before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction", "updateDescription")
)
"""All that connectors put into an envelope."""

OLD_KEY_HEADER = "__debezium.oldkey"
NEW_KEY_HEADER = "__debezium.newkey"
UNREADABLE_HEADERS = "__distributary.unreadable"
"""The only header of a record whose headers can't be read: a name that is not UTF-8."""


def is_envelope(value: Mapping[str, Any]) -> bool:
    """Whether an object is an envelope, and not a row: rows may have columns called as an envelope's fields, also a
    JSON or struct column `source`.

    The source block of an envelope names its connector; transforms may remove the rows and add fields.
    """
    source, op = value.get("source"), value.get("op")
    if "op" not in value or not isinstance(source, dict):
        return False
    has_no_other_field = value.keys() <= ENVELOPE_FIELDS
    if not isinstance(source.get("connector"), str):
        return has_no_other_field and has_rows(value)
    is_operation = isinstance(op, str) and op in OPERATIONS
    return has_rows(value) or (is_operation and (has_no_other_field or "ts_ms" in source))


def has_rows(fields: Collection[str]) -> bool:
    """Whether an object with these fields has those of an envelope that hold its rows."""
    return "before" in fields or "after" in fields


class Change:
    """A parsed envelope. `after` and `before` are rows of wire values (msgspec structs) or None.

    `bad` and `unavailable` are indexes of columns in the row that the change writes or deletes: those whose values
    can't be restated, and those whose values the source did not send. `ts_ms` is the envelope's: when the connector
    processed the change.
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
