"""A simulated SQL Server table and the change events of Debezium's SQL Server connector.

SQL Server logs an update of the primary key, and one of a column under a unique index, as a delete and an insert: the
connector sends two events without anything that connects them, not even a header. It refuses TRUNCATE on a table under
change data capture, so there is no truncate event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from distributary.demo.connect import INT64, STRING, Column
from distributary.demo.record import Origin
from distributary.demo.simulated import Change, Event, LogPosition, SimulatedTable


class SqlServerTable(SimulatedTable):
    """`unique` names the columns (beside the key) that are under a unique index."""

    origin = Origin.SIMULATED_SQLSERVER
    connector = "sqlserver"
    positions = (
        Column("change_lsn", STRING, optional=True),
        Column("commit_lsn", STRING, optional=True),
        Column("event_serial_no", INT64, optional=True),
    )

    def __init__(
        self,
        prefix: str,
        database: str,
        schema: str,
        table: str,
        columns: Sequence[Column],
        key: Sequence[str],
        unique: Sequence[str] = (),
    ) -> None:
        super().__init__(prefix, f"{prefix}.{database}.{schema}.{table}", database, schema, table, columns, key)
        self._unique = tuple(unique)
        self._slot = 0

    def next_lsn(self) -> str:
        """8:8:4 hex digits: virtual log file, block in it, slot in the block. 24 slots make a block here."""
        self._slot += 1
        block, slot = divmod(self._slot, 24)
        return f"{0x2C:08x}:{0x1A0 + block * 0x18:08x}:{slot + 1:04x}"

    def position_fields(self, at: LogPosition) -> dict[str, Any]:
        return {"change_lsn": at.change_lsn, "commit_lsn": at.commit_lsn, "event_serial_no": at.serial}

    def events(self, change: Change) -> Iterator[Event]:
        before, after = change.before, change.after
        if before is None:
            yield Event("c", None, after, serial=1)
        elif after is None:
            yield Event("d", before, None, serial=1)
        elif self.key_of(before) != self.key_of(after):
            yield Event("d", before, None, serial=1)
            yield Event("c", None, after, serial=2)
        elif any(before[name] != after[name] for name in self._unique):
            # Same key and the same three numbers: only the operations show which event is later.
            yield Event("d", before, None, serial=1)
            yield Event("c", None, after, serial=1)
        else:
            # The log has the old row as number 1 and the new one as number 2; the connector sends one event of both.
            yield Event("u", before, after, serial=2)
