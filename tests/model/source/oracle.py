"""Oracle by LogMiner: changes that follow each other closely share one system change number.

They are distinguished by the address of their redo record (`rs_id`, and `ssn` inside it). The source time is that of
the change. A large value that an update does not name is missing, in `before`, too.
"""

from __future__ import annotations

from typing import Any

from tests.model.source.database import LONG, Committed, Dialect, Snapshot
from tests.model.source.layout import Row
from tests.model.source.postgresql import without_long
from tests.model.source.sent import PLACEHOLDER, Connector

_TICKS = 24
"""The number of ticks with one SCN: about three changes, but never two commits."""


class Oracle(Connector):
    """With `lob.enabled`, and `rs_id` in the source block as since Debezium 2.0."""

    name = "oracle"
    schema = "APP"
    dialect = Dialect(deferred_keys=True, truncates=True, keys_at_commit=True)
    source_fields = (
        *(("txId", "string"), ("scn", "string"), ("commit_scn", "string"), ("lcr_position", "string")),
        *(("rs_id", "string"), ("ssn", "int64"), ("redo_thread", "int32"), ("user_name", "string")),
    )

    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.kind == "incremental" and self.last:
            return self.last
        return {"scn": _scn(snapshot.tick)}

    def transaction(self, number: int, entry: Committed) -> None:
        for change in entry.changes:
            place = {
                "txId": f"0a00{entry.number:04x}",
                "scn": _scn(change.tick),
                "commit_scn": _scn(entry.tick),
                "rs_id": f" 0x0000a1.{change.tick:08x}.0010 ",
                "ssn": 0,
                "redo_thread": 1,
                "user_name": "APP",
            }
            self.emit_change(number, change, place, change.tick)

    def old_image(self, op: str, row: Row) -> Row | None:
        del op
        return {**row, "big": PLACEHOLDER} if (row["big"] or "").startswith(LONG) else row

    def new_image(self, before: Row | None, after: Row) -> Row:
        return without_long(before, after)


def _scn(tick: int) -> str:
    """Chosen so that the numbers get one more digit during a history."""
    return str(10**7 - 345 + tick // _TICKS)
