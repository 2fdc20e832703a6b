"""PostgreSQL: changes of transactions that ran at the same time come commit by commit, their lsns in between.

`source.sequence` has the commit that was streamed before, which the first transaction after a start does not know, and
the change's own lsn. Under REPLICA IDENTITY DEFAULT the old row is its key, and a large value that an update does not
name is missing.
"""

from __future__ import annotations

import json
from typing import Any

from tests.model.source.database import LONG, Committed, Dialect, Snapshot
from tests.model.source.layout import Layout, Row
from tests.model.source.sent import PLACEHOLDER, Connector

_FIRST_LSN = 10**10 - 9000
"""Chosen so that the LSNs get one more digit during a history."""


class PostgreSql(Connector):
    """`full`: REPLICA IDENTITY FULL."""

    name = "postgresql"
    schema = "public"
    dialect = Dialect(
        deferred_keys=True, truncates=True, keys_at_commit=True, truncates_in_transactions=True, races=True
    )
    source_fields = (("txId", "int64"), ("lsn", "int64"), ("xmin", "int64"))

    def __init__(self, layout: Layout, *, full: bool = False) -> None:
        super().__init__(layout)
        self._full = full
        self._level: int | None = None
        self._lsn: int | None = None

    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.kind == "incremental":
            return {"sequence": _sequence(self._level, self._lsn or _lsn(snapshot.tick))}
        lsn = _lsn(snapshot.tick)
        return {"sequence": _sequence(self._level, lsn), "lsn": lsn, "txId": snapshot.tick}

    def transaction(self, number: int, entry: Committed) -> None:
        for change in entry.changes:
            self._lsn = _lsn(change.tick)
            place = {"sequence": _sequence(self._level, self._lsn), "lsn": self._lsn, "txId": entry.number}
            self.emit_change(number, change, place, entry.tick)
        self._level = _lsn(entry.tick)

    def restarted(self) -> None:
        self._level = None

    def old_image(self, op: str, row: Row) -> Row | None:
        if self._full:
            return row
        if op == "u":
            return None
        # Columns that may not be NULL are made up.
        return {**dict.fromkeys(("v", "u"), ""), **self.layout.key_payload(row), "big": None}

    def new_image(self, before: Row | None, after: Row) -> Row:
        return after if self._full else without_long(before, after)


def without_long(before: Row | None, after: Row) -> Row:
    """A changed row with the placeholder for a large value that the change did not touch."""
    if before is not None and (after["big"] or "").startswith(LONG) and after["big"] == before["big"]:
        return {**after, "big": PLACEHOLDER}
    return after


def _lsn(tick: int) -> int:
    return _FIRST_LSN + tick


def _sequence(level: int | None, lsn: int) -> str:
    return json.dumps([None if level is None else str(level), str(lsn)], separators=(",", ":"))
