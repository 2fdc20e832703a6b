"""A source table of SQL Server and its change events, as JsonConverter writes them with their schema: some 4 kB."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.support.kafka import Record

COLUMNS: Mapping[str, str] = {
    "id": "bigint", "name": "string", "mail": "string", "street": "string", "city": "string", "credit": "decimal(18,2)",
    "rate": "double", "active": "boolean", "born": "date", "created": "timestamp_ntz", "visits": "int",
    "note": "string",
}  # fmt: skip
"""The table's columns, name to Spark type; the first is its key."""

ARROW = pa.schema(
    {
        "id": pa.int64(), "name": pa.string(), "mail": pa.string(), "street": pa.string(), "city": pa.string(),
        "credit": pa.decimal128(18, 2), "rate": pa.float64(), "active": pa.bool_(), "born": pa.date32(),
        "created": pa.timestamp("us"), "visits": pa.int32(), "note": pa.string(),
    }
)  # fmt: skip
_CONNECT: Mapping[str, Mapping[str, Any]] = {
    "bigint": {"type": "int64"},
    "int": {"type": "int32"},
    "string": {"type": "string"},
    "double": {"type": "double"},
    "boolean": {"type": "boolean"},
    "decimal(18,2)": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "18"},
    },
    "date": {"type": "int32", "name": "io.debezium.time.Date", "version": 1},
    "timestamp_ntz": {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
}
_EPOCH = date(1970, 1, 1)
_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001 - the column has no zone
_SNAPSHOT_AT = "00000025:00000001:0001"
NAMESPACE = "server1.shop.dbo.customers"


def _struct(fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, **more}


def _field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": False, **more, "field": name}


def _schemas() -> tuple[str, str]:
    """Key's and value's, as Debezium's SQL Server connector has them."""
    key = {**_CONNECT["bigint"], "optional": False, "field": "id"}
    row = [key, *({**_CONNECT[kind], "optional": True, "field": name} for name, kind in list(COLUMNS.items())[1:])]
    enum = {"name": "io.debezium.data.Enum", "version": 1, "default": "false"}
    allowed = {"parameters": {"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false"}}
    source = [
        *(_field(name, "string") for name in ("version", "connector", "name")),
        _field("ts_ms", "int64"),
        {**_field("snapshot", "string"), "optional": True, **enum, **allowed},
        _field("db", "string"),
        {**_field("sequence", "string"), "optional": True},
        *({**_field(name, "int64"), "optional": True} for name in ("ts_us", "ts_ns")),
        *(_field(name, "string") for name in ("schema", "table")),
        *({**_field(name, "string"), "optional": True} for name in ("change_lsn", "commit_lsn")),
        {**_field("event_serial_no", "int64"), "optional": True},
    ]
    transaction = [_field("id", "string"), _field("total_order", "int64"), _field("data_collection_order", "int64")]
    envelope = [
        _struct(row, optional=True, name=f"{NAMESPACE}.Value", field="before"),
        _struct(row, optional=True, name=f"{NAMESPACE}.Value", field="after"),
        _struct(source, optional=False, name="io.debezium.connector.sqlserver.Source", field="source"),
        _struct(transaction, optional=True, name="event.block", version=1, field="transaction"),
        _field("op", "string"),
        *({**_field(name, "int64"), "optional": True} for name in ("ts_ms", "ts_us", "ts_ns")),
    ]
    schemas = (
        _struct([key], optional=False, name=f"{NAMESPACE}.Key"),
        _struct(envelope, optional=False, name=f"{NAMESPACE}.Envelope", version=2),
    )
    key_schema, value_schema = (json.dumps(schema, separators=(",", ":")) for schema in schemas)
    return key_schema, value_schema


_KEY_SCHEMA, _VALUE_SCHEMA = _schemas()


@dataclass
class Source:
    """The source table: makes its change events, and knows what it holds.

    A row follows from its key and the number in `rows`. `schema`: the events have their schema beside. `now`: the
    events' time of commit is the time at which they are made, else one that follows from their place in the log.
    """

    seed: int = 7
    schema: bool = True
    now: bool = False
    rows: dict[int, int] = field(default_factory=dict)
    at: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._next = 0

    def snapshot(self, count: int) -> Iterator[Record]:
        """Rows that the connector reads when it starts."""
        for _ in range(count):
            self._next += 1
            self.rows[self._next] = self._random.randrange(10**9)
            yield self._record("r", self._next, None, self._row(self._next))

    def changes(self, count: int, *, only_updates: bool = False) -> Iterator[Record]:
        """65 % updates, 25 % inserts, 10 % deletes with their tombstones."""
        for _ in range(count):
            what = 1.0 if only_updates else self._random.random()
            if what < 0.25:
                self._next += 1
                self.rows[self._next] = self._random.randrange(10**9)
                yield self._record("c", self._next, None, self._row(self._next))
                continue
            key = self._key()
            before = self._row(key)
            if what < 0.35:
                del self.rows[key]
                yield self._record("d", key, before, None)
                yield Record("", None, self._key_bytes(key), None)
            else:
                self.rows[key] = self._random.randrange(10**9)
                yield self._record("u", key, before, self._row(key))

    def touched(self) -> Iterator[Record]:
        """An update of each row, to what it is."""
        for key in self.rows:
            row = self._row(key)
            yield self._record("u", key, row, row)

    def truth(self) -> pa.Table:
        """The table's rows in the order of their keys."""
        rows = [_values(key, some) for key, some in sorted(self.rows.items())]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, ARROW.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=ARROW)

    def _key(self) -> int:
        while True:
            if (key := self._random.randint(1, self._next)) in self.rows:
                return key

    def _row(self, key: int) -> str:
        id_, name, mail, street, city, credit, rate, active, born, created, visits, note = _values(key, self.rows[key])
        unscaled = int(credit.scaleb(2))
        decimal = base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
        return (
            f'{{"id":{id_},"name":"{name}","mail":"{mail}","street":"{street}","city":"{city}","credit":"{decimal}",'
            f'"rate":{rate},"active":{"true" if active else "false"},"born":{(born - _EPOCH).days},'
            f'"created":{(created - _MIDNIGHT) // timedelta(microseconds=1)},"visits":{visits},"note":"{note}"}}'
        )

    def _record(self, op: str, key: int, before: str | None, after: str | None) -> Record:
        ms = 1_700_000_000_000 + self.at
        if self.now:
            ms = round(datetime.now(timezone.utc).timestamp() * 1000)
        if op == "r":
            snapshot, change, commit, serial = "true", "null", f'"{_SNAPSHOT_AT}"', "null"
        else:
            self.at += 1
            snapshot, serial = "false", "2" if op == "u" else "1"
            change, commit = f'"00000027:{self.at:08x}:0002"', f'"00000027:{self.at:08x}:0003"'
        payload = (
            f'{{"before":{before or "null"},"after":{after or "null"},"source":{{"version":"3.6.0.Final",'
            f'"connector":"sqlserver","name":"server1","ts_ms":{ms},"snapshot":"{snapshot}","db":"shop",'
            f'"sequence":null,"ts_us":{ms}000,"ts_ns":{ms}000000,"schema":"dbo","table":"customers",'
            f'"change_lsn":{change},"commit_lsn":{commit},"event_serial_no":{serial}}},"transaction":null,'
            f'"op":"{op}","ts_ms":{ms + 400},"ts_us":{ms + 400}000,"ts_ns":{ms + 400}000000}}'
        )
        value = f'{{"schema":{_VALUE_SCHEMA},"payload":{payload}}}' if self.schema else payload
        return Record("", None, self._key_bytes(key), value.encode())

    def _key_bytes(self, key: int) -> bytes:
        payload = f'{{"id":{key}}}'
        return (f'{{"schema":{_KEY_SCHEMA},"payload":{payload}}}' if self.schema else payload).encode()


def _values(key: int, some: int) -> tuple[Any, ...]:
    created = _MIDNIGHT + timedelta(days=19_844 + some % 9, microseconds=37_230_000_000 + some % 10**6)
    return (
        key, f"name {some}", f"{some}@example.org", f"street {some % 9999}", f"city {some % 500}",
        Decimal(some % 10**7).scaleb(-2), some / 7, some % 2 == 0, date(1910 + some % 90, 1 + some % 9, 11),
        created, some % 1000, f"note {some} " * 4,
    )  # fmt: skip
