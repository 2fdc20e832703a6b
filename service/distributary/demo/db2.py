"""A simulated Db2 table and the change events of Debezium's Db2 connector.

Db2's position has no serial number: the two events of a key change have the same position, and carry each
other's key in a header. TRUNCATE is not captured, so there is no truncate event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from distributary.demo.connect import STRING, Column, to_json
from distributary.demo.record import Headers, Origin, Row
from distributary.demo.simulated import Change, Event, LogPosition, SimulatedTable


class Db2Table(SimulatedTable):
    """Db2 for Linux, Unix and Windows; topics are `<prefix>.<schema>.<table>`, the database is not in the name."""

    origin = Origin.SIMULATED_DB2
    connector = "db2"
    positions = (Column("change_lsn", STRING, optional=True), Column("commit_lsn", STRING, optional=True))

    def __init__(
        self, prefix: str, database: str, schema: str, table: str, columns: Sequence[Column], key: Sequence[str]
    ) -> None:
        super().__init__(prefix, f"{prefix}.{schema}.{table}", database, schema, table, columns, key)
        self._log_end = 0x55FB1F3

    def next_lsn(self) -> str:
        """8:8:16 hex digits."""
        self._log_end += 0x37
        return f"{0:08x}:{0:08x}:{self._log_end:016x}"

    def position_fields(self, at: LogPosition) -> dict[str, Any]:
        return {"change_lsn": at.change_lsn, "commit_lsn": at.commit_lsn}

    def events(self, change: Change) -> Iterator[Event]:
        before, after = change.before, change.after
        if before is None:
            yield Event("c", None, after)
        elif after is None:
            yield Event("d", before, None)
        elif self.key_of(before) != self.key_of(after):
            yield Event("d", before, None, headers=self._header("newkey", after))
            yield Event("c", None, after, headers=self._header("oldkey", before))
        else:
            yield Event("u", before, after)

    def _header(self, name: str, row: Row) -> Headers:
        """A key as the default SimpleHeaderConverter writes a struct: its JSON without a schema."""
        return ((f"__debezium.{name}", to_json(self.key_payload(row))),)
