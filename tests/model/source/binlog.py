"""MySQL and MariaDB: a transaction is written to the binary log when it commits, one event per statement.

A position is a file's number, a position in the file and a row in the event. The source time is that of the statement,
in whole seconds. A restart of the server, which a restart stands for here, begins a new file.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from tests.model.source.database import Committed, Dialect, Snapshot
from tests.model.source.layout import Layout
from tests.model.source.sent import Connector

_START = 4


class Binlog(Connector):
    """The common parts of MySQL and MariaDB."""

    schema = ""
    dialect = Dialect(deferred_keys=False, truncates=True)
    source_fields = (
        *(("server_id", "int64"), ("gtid", "string"), ("file", "string"), ("pos", "int64"), ("row", "int32")),
        *(("thread", "int64"), ("query", "string")),
    )

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._file = 999_998
        self._position = 900
        self._transaction = 90

    def gtid(self, number: int) -> str:
        """The name of a transaction."""
        raise NotImplementedError

    def read_place(self, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.kind == "incremental" and self.last:
            return self.last
        return {"server_id": 0, "gtid": None, **self._place(row=0)}

    def transaction(self, number: int, entry: Committed) -> None:
        self._transaction += 1
        self._position += 77
        for _, statement in groupby(entry.changes, key=lambda change: change.statement):
            for row, change in enumerate(statement):
                place = {"server_id": 42, "gtid": self.gtid(self._transaction), **self._place(row)}
                self.emit_change(number, change, place, change.tick)
            self._position += 113

    def restarted(self) -> None:
        self._file += 1
        self._position = _START

    def _place(self, row: int) -> dict[str, Any]:
        return {"file": f"binlog.{self._file:06d}", "pos": self._position, "row": row}

    def _source(self, place: dict[str, Any], tick: int, snapshot: str) -> dict[str, Any]:
        source = super()._source(place, tick, snapshot)
        del source["schema"]
        if snapshot == "false":
            seconds = source["ts_ms"] // 1000
            source.update(ts_ms=seconds * 1000, ts_us=seconds * 1_000_000, ts_ns=seconds * 1_000_000_000)
        return source


class MySql(Binlog):
    name = "mysql"

    def gtid(self, number: int) -> str:
        return f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}"


class MariaDb(Binlog):
    name = "mariadb"

    def gtid(self, number: int) -> str:
        return f"0-42-{number}"
