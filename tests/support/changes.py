"""Change events written by hand, as the connectors write them, with and without a schema beside."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.kafka import Record

Row = dict[str, Any]

SHORT, INT, LONG = {"type": "int16"}, {"type": "int32"}, {"type": "int64"}
FLOAT, DOUBLE, BOOLEAN, TEXT = ({"type": name} for name in ("float", "double", "boolean", "string"))
DAY = {"type": "int32", "name": "io.debezium.time.Date"}
INSTANT = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
VARIABLE_SCALE: Row = {
    "type": "struct",
    "name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
}


def key(number: int) -> Row:
    """The key of a row: its column `id`."""
    return {"id": number}


def row(number: int, value: Any, **more: Any) -> Row:
    """A row with the key `id`, a column `v`, and others."""
    return {"id": number, "v": value, **more}


def decimal(precision: int, scale: int) -> Row:
    """The schema of a decimal."""
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}


@dataclass
class Topic:
    """Makes the records of one topic. `at` is the position in the source's log; commit times rise with it."""

    name: str
    connector: str = "sqlserver"
    key: tuple[str, ...] = ("id",)
    records: list[Record] = field(default_factory=list)

    def change(
        self,
        op: str,
        key: Row | None,
        after: Row | None = None,
        at: int = 0,
        *,
        step: int = 1,
        tx: int | None = None,
        headers: dict[str, Row] | None = None,
        partition: int = 0,
        ts_ms: int | None = None,
        before: Row | None = None,
        level: bool = True,
        transaction: tuple[str, int] | None = None,
        snapshot: str | None = None,
        names: Row | None = None,
    ) -> Record:
        """One event; it is added to the topic's records, too. `level`: PostgreSQL's commit level is known.
        `transaction`: its id, and the event's number among those of this table; `snapshot`: the source block's field;
        `names`: database, schema and table."""
        value: Row = {
            "before": before,
            "after": after,
            "source": self._source(op, at, step, tx, 1_700_000_000_000 + at * 1_000 if ts_ms is None else ts_ms, level),
            "op": op,
        }
        if transaction is not None:
            id_, order = transaction
            value["transaction"] = {"id": id_, "total_order": order, "data_collection_order": order}
        value["source"].update(names or {})
        if snapshot is not None:
            value["source"]["snapshot"] = snapshot
        return self.add(key, json.dumps(value).encode(), headers=headers, partition=partition)

    def with_schema(self, record: Record, row: dict[str, Row]) -> Record:
        """The topic's last record once more, with the schema of such a row beside key and value; it replaces that
        record."""
        envelope = [_struct(row, field=place) for place in ("before", "after")]
        payload = json.loads(record.value or b"")
        source = {name: LONG if isinstance(found, int) else TEXT for name, found in payload["source"].items()}
        envelope += [_struct(source, field="source"), {**TEXT, "field": "op"}]
        key = {"schema": _struct({name: row[name] for name in self.key}), "payload": json.loads(record.key or b"null")}
        value = {"schema": {"type": "struct", "fields": envelope}, "payload": payload}
        data = [json.dumps(one, separators=(",", ":")).encode() for one in (key, value)]
        self.records[-1] = record._replace(key=None if record.key is None else data[0], value=data[1])
        return self.records[-1]

    def move(self, old: int, new: int, row: Row, **place: Any) -> None:
        """A change of a row's key `id`: the delete of the old one, and the create of the new one with such a row."""
        self.change("d", key(old), **place, headers={"newkey": key(new)})
        self.change("c", key(new), {**row, "id": new}, **place, headers={"oldkey": key(old)})

    def tombstone(self, key: Row, partition: int = 0) -> Record:
        """A record with the key and no value."""
        return self.add(key, None, partition=partition)

    def add(
        self, key: Row | None, value: bytes | None, *, headers: dict[str, Row] | None = None, partition: int = 0
    ) -> Record:
        """A record with any value."""
        encoded = [(f"__debezium.{name}", json.dumps(v).encode()) for name, v in (headers or {}).items()]
        data = None if key is None else json.dumps(key).encode()
        self.records.append(Record(self.name, partition, data, value, encoded))
        return self.records[-1]

    def _source(self, op: str, at: int, step: int, tx: int | None, ts_ms: int, level: bool) -> Row:
        source: Row = {"connector": self.connector, "ts_ms": ts_ms, "snapshot": "true" if op == "r" else "false"}
        if self.connector == "postgresql":
            commit = str(at) if level and op != "r" else None
            return {**source, "sequence": json.dumps([commit, str(at + step)]), "lsn": at + step, "txId": tx or at}
        if self.connector == "oracle":
            place = {"commit_scn": None if op == "r" else str(at), "scn": str(at if op == "r" else at - 1)}
            return {**source, **place, "txId": f"{tx or at:016x}", "rs_id": None, "ssn": step, "redo_thread": 1}
        if self.connector == "mysql":
            return {**source, "file": f"binlog.{at // 100:06d}", "pos": at % 100, "row": step, "server_id": 1}
        if self.connector == "informix":
            return {**source, "commit_lsn": str(at * 1_000), "change_lsn": str(at * 1_000 - 500 + step)}
        if self.connector == "TiCDC":
            return {**source, "commit_ts": at}
        digits = 16 if self.connector == "db2" else 4
        change = None if op == "r" else f"00000027:{at:08x}:{step:0{digits}x}"
        commit = f"00000027:{at:08x}:{0xFFFF:0{digits}x}"
        return {**source, "commit_lsn": commit, "change_lsn": change, "event_serial_no": None}


def snapshot_and_changes(name: str, connector: str) -> Topic:
    """The records of two rows of a snapshot, then of an insert, an update, a delete and a change of a key."""
    topic = Topic(name, connector)
    for number in (1, 2):
        topic.change("r", key(number), row(number, "a"), at=1)
    topic.change("c", key(3), row(3, "a"), at=3)
    topic.change("u", key(1), row(1, "b"), at=4)
    topic.change("d", key(2), at=5)
    topic.tombstone(key(2))
    topic.move(3, 30, row(3, "a"), at=6)
    return topic


def changes_without_key_at_first(name: str) -> Topic:
    """The records of a PostgreSQL table that gets its primary key after four records, and has none again at the last
    one. At the end its rows are (2, "c"), (4, "d") and (10, "b")."""
    topic = Topic(name, "postgresql")
    for number in (1, 2, 3):
        topic.change("c", None, row(number, "a"), at=number)
    topic.change("u", None, row(1, "b"), at=4, before=row(1, "a"))
    topic.change("u", key(2), row(2, "c"), at=5)
    topic.change("d", key(3), at=6, before=key(3))
    topic.tombstone(key(3))
    topic.move(1, 10, row(1, "b"), at=7)
    topic.change("c", None, row(4, "d"), at=8)
    return topic


def _struct(fields: dict[str, Row], **more: Any) -> Row:
    named = [{"optional": True, **kind, "field": name} for name, kind in fields.items()]
    return {"type": "struct", "fields": named, "optional": True, **more}
