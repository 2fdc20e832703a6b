"""A source table in memory, and the change events that Debezium would send for its changes.

This module has the parts that all connectors share: rows, transactions, envelope, tombstones. The parts of each
connector (log sequence numbers, source block, the form of updates in the log) are in `sqlserver` and `db2`.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from distributary.demo.connect import Column, struct, with_schema
from distributary.demo.envelope import times, value_schema
from distributary.demo.record import Headers, Origin, Record, Row, Truth

VERSION = "3.6.1.Final"
"""The Debezium whose events are simulated."""

# When the simulated databases start their work, and how long they need for one transaction.
STARTED_AT = dt.datetime(2026, 3, 2, 8, 0, 0, 123456)  # noqa: DTZ001 - in UTC
STEP = dt.timedelta(milliseconds=137)
# How long after a commit the connector sees it.
DELAY = dt.timedelta(milliseconds=412)

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """One row's change inside a transaction. No `before`: an insert. No `after`: a delete."""

    before: Row | None
    after: Row | None
    change_lsn: str


@dataclass(frozen=True)
class Event:
    """An event that the connector sends for a change; `serial` counts the events of one log record (SQL Server
    only)."""

    op: str
    before: Row | None
    after: Row | None
    serial: int | None = None
    headers: Headers = ()


@dataclass(frozen=True)
class LogPosition:
    """An event's position in the source's log, by the fields of its source block. `snapshot` is Debezium's marker."""

    commit_lsn: str
    change_lsn: str | None = None
    serial: int | None = None
    snapshot: str = "false"


class SimulatedTable(ABC):
    """One table under change data capture. Keeps its true rows; gives the records that its connector would send."""

    origin: ClassVar[Origin]
    connector: ClassVar[str]
    positions: ClassVar[tuple[Column, ...]]
    """The connector's own fields of the source block."""

    def __init__(
        self,
        prefix: str,
        topic: str,
        database: str,
        schema: str,
        table: str,
        columns: Sequence[Column],
        key: Sequence[str],
    ) -> None:
        self.topic = topic
        self.columns = tuple(columns)
        self.key = tuple(key)
        self._prefix, self._database, self._schema, self._table = prefix, database, schema, table
        self._rows: dict[Key, Row] = {}
        self._now = STARTED_AT
        row = [column.schema() for column in columns]
        self._key_schema = struct(f"{topic}.Key", [column.schema() for column in columns if column.name in self.key])
        self._value_schema = value_schema(topic, row, self.connector, self.positions)

    @abstractmethod
    def next_lsn(self) -> str:
        """Write to the log: a sequence number above all before it, in the connector's spelling."""

    @abstractmethod
    def position_fields(self, at: LogPosition) -> dict[str, Any]:
        """The values of `positions` for an event at `at`."""

    @abstractmethod
    def events(self, change: Change) -> Iterator[Event]:
        """The events for one row's change, without tombstones."""

    def load(self, rows: Iterable[Row]) -> None:
        """Fill the table before the connector starts: these rows are only in the snapshot."""
        for row in rows:
            self._rows[self.key_of(row)] = dict(row)

    def snapshot(self) -> list[Record]:
        """The connector's first records: every current row as `r`, at the current end of the log."""
        commit_lsn = self.next_lsn()
        last = len(self._rows) - 1
        return [
            self._record(
                Event("r", None, row),
                LogPosition(commit_lsn, snapshot="last" if number == last else "first" if number == 0 else "true"),
            )
            for number, row in enumerate(self._rows.values())
        ]

    def begin(self) -> Transaction:
        """Start a transaction; nothing is sent before it commits."""
        return Transaction(self)

    def truth(self) -> Truth:
        """The rows that are in the table now."""
        table = f"{self._schema}.{self._table}"
        names = tuple(column.name for column in self.columns)
        return Truth(table, self.origin, self.key, names, list(self._rows.values()))

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def key_payload(self, row: Row) -> dict[str, Any]:
        """The key of `row` as it stands in a record's key."""
        return {column.name: column.encode(row[column.name]) for column in self.columns if column.name in self.key}

    def _replace(self, key: Key | None, row: Row | None) -> Row | None:
        before = self._rows.pop(key) if key is not None else None
        if row is not None:
            new_key = self.key_of(row)
            if new_key in self._rows:
                raise ValueError(f"{self._table} has a row with the key {new_key} already")
            self._rows[new_key] = row
        return before

    def _send(self, changes: Sequence[Change]) -> list[Record]:
        commit_lsn = self.next_lsn()
        self._now += STEP
        records = []
        for change in changes:
            for event in self.events(change):
                records.append(self._record(event, LogPosition(commit_lsn, change.change_lsn, event.serial)))
                if event.op == "d":
                    records.append(Record(self.topic, records[-1].key, None, records[-1].headers))
        return records

    def _record(self, event: Event, at: LogPosition) -> Record:
        row = event.after if event.after is not None else event.before
        assert row is not None
        payload = {
            "before": self._payload(event.before),
            "after": self._payload(event.after),
            "source": self._source(at),
            "transaction": None,
            "op": event.op,
            **times(self._now + DELAY),
        }
        return Record(
            self.topic,
            with_schema(self._key_schema, self.key_payload(row)),
            with_schema(self._value_schema, payload),
            (*event.headers, *self._context()),
        )

    def _payload(self, row: Row | None) -> dict[str, Any] | None:
        return None if row is None else {column.name: column.encode(row[column.name]) for column in self.columns}

    def _source(self, at: LogPosition) -> dict[str, Any]:
        now = times(self._now)
        return {
            "version": VERSION,
            "connector": self.connector,
            "name": self._prefix,
            "ts_ms": now["ts_ms"],
            "snapshot": at.snapshot,
            "db": self._database,
            "sequence": None,
            "ts_us": now["ts_us"],
            "ts_ns": now["ts_ns"],
            "schema": self._schema,
            "table": self._table,
            **self.position_fields(at),
        }

    def _context(self) -> Headers:
        """The headers that every record of Debezium 3.6 has, as the default SimpleHeaderConverter writes text."""
        values = {
            "connectorLogicalName": self._prefix,
            "taskId": "0",
            "connectorName": self.connector,
            "runId": "019c8f3e-52a0-7d41-9b6e-3f1d2c4b5a69",
        }
        return tuple((f"__debezium.context.{name}", value.encode()) for name, value in values.items())


class Transaction:
    """Changes that are sent together when it commits. The table has them at once, because nobody else reads it."""

    def __init__(self, table: SimulatedTable) -> None:
        self._table = table
        self._changes: list[Change] = []

    def insert(self, row: Row) -> Transaction:
        """Raises ValueError if the key is there already."""
        self._table._replace(None, dict(row))
        return self._log(None, dict(row))

    def update(self, *key: Any, **values: Any) -> Transaction:
        """Set columns of the row with `key`, its key columns perhaps. Raises KeyError if there is no such row."""
        after = {**self._table._rows[key], **values}
        return self._log(self._table._replace(key, after), after)

    def delete(self, *key: Any) -> Transaction:
        """Raises KeyError if there is no such row."""
        return self._log(self._table._replace(key, None), None)

    def commit(self) -> list[Record]:
        """The records that the connector sends for this transaction, in the order of its log."""
        changes, self._changes = self._changes, []
        return self._table._send(changes)

    def _log(self, before: Row | None, after: Row | None) -> Transaction:
        self._changes.append(Change(before, after, self._table.next_lsn()))
        return self
