"""Db2: two log numbers, no serial number; an update of the key names the other key in a header."""

from __future__ import annotations

from typing import Any

from tests.model.source.database import Committed, Dialect, Snapshot
from tests.model.source.sent import Connector


class Db2(Connector):
    """Db2 for Linux, UNIX and Windows: keys are checked after the statement, truncates are not captured."""

    name = "db2"
    schema = "DB2INST1"
    dialect = Dialect(deferred_keys=True, truncates=False)
    source_fields = (("change_lsn", "string"), ("commit_lsn", "string"))

    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.kind == "incremental" and self.last:
            return self.last
        return {"commit_lsn": _lsn(snapshot.tick), "change_lsn": None}

    def transaction(self, number: int, entry: Committed) -> None:
        for change in entry.changes:
            place = {"commit_lsn": _lsn(entry.tick), "change_lsn": _lsn(change.tick)}
            self.emit_change(number, change, place, entry.tick)


def _lsn(tick: int) -> str:
    """8:8:16 hex digits."""
    return f"{0:08x}:{0:08x}:{0xF0FF0000 + tick * 9:016x}"
