"""Sent records as bytes, as Kafka Connect's JsonConverter writes them: with a schema beside each value, or without.

`envelope` is Debezium's own form. The other forms are those of ExtractNewRecordState.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.model.delivery import Arrived
from tests.model.source.layout import Field, Layout
from tests.model.source.sent import TOMBSTONE, Connector, Sent
from tests.support.recorded import Record

Json = Any
_TIMES = ("ts_ms", "ts_us", "ts_ns")


@dataclass(frozen=True)
class Form:
    """How records are written.

    `schema`: with the Connect schema. `unwrapped`: None for the envelope, else delete.tombstone.handling.mode.
    `added`: add.fields, under the connector's names (`op`, `source.lsn`, …).
    """

    schema: bool = True
    unwrapped: str | None = None
    added: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Words and truth values."""
        return {"schema": self.schema, "unwrapped": self.unwrapped, "added": list(self.added)}

    @staticmethod
    def from_json(document: Json) -> Form:
        """The inverse of to_json."""
        return Form(document["schema"], document["unwrapped"], tuple(document["added"]))


POSITIONED = {
    "sqlserver": ("op", "commit_lsn", "source.change_lsn", "event_serial_no"),
    "db2": ("op", "source.commit_lsn", "change_lsn"),
    "postgresql": ("op", "source.sequence", "lsn", "txId"),
    "mysql": ("op", "file", "source.pos", "row", "gtid"),
    "mariadb": ("op", "file", "source.pos", "row", "gtid"),
    "oracle": ("op", "commit_scn", "scn", "rs_id", "ssn", "txId"),
}
"""By connector an add.fields that keeps a change's position and transaction."""


def records(arrived: Iterable[Arrived], connector: Connector, form: Form) -> list[Record]:
    """The records of the topic, see written()."""
    return [record for _, record in written(arrived, connector, form)]


def written(
    arrived: Iterable[Arrived], connector: Connector, form: Form, topic: str = "s.dbo.t"
) -> list[tuple[Arrived, Record]]:
    """The records of the topic, each with the sent record that it comes from. Records that the form leaves out are
    missing, and have no offsets."""
    writer = RecordWriter(connector, form)
    ends: dict[int, int] = {}
    found = []
    for record in arrived:
        value = writer.value(record.sent)
        if value is _LEFT_OUT:
            continue
        offset = ends.get(record.partition, 0)
        ends[record.partition] = offset + 1
        key = writer.key(record.sent)
        headers = writer.headers(record.sent)
        found.append((record, Record(topic, record.partition, offset, record.timestamp, key, value, headers)))
    return found


_LEFT_OUT = b"left out"


class RecordWriter:
    """Writes the keys, values and headers of sent records."""

    def __init__(self, connector: Connector, form: Form) -> None:
        self._form = form
        self._layout: Layout = connector.layout
        self._key_schema = _struct([_field(part) for part in self._layout.key], "s.dbo.t.Key")
        row = [_field(part) for part in self._layout.fields]
        self._row = _struct(row, "s.dbo.t.Value", optional=True)
        source = [_field(Field(name, kind, optional=True)) for name, kind in _source_fields(connector)]
        self._source_kinds = dict(_source_fields(connector))
        self._envelope = _struct(
            [
                {**self._row, "field": "before"},
                {**self._row, "field": "after"},
                {**_struct(source, f"io.debezium.connector.{connector.name}.Source"), "field": "source"},
                {"type": "struct", "fields": [], "optional": True, "name": "event.block", "field": "transaction"},
                _field(Field("op", "string")),
                *(_field(Field(name, "int64", optional=True)) for name in _TIMES),
            ],
            "s.dbo.t.Envelope",
        )

    def key(self, sent: Sent) -> bytes | None:
        return None if sent.key is None else self._bytes(self._key_schema, dict(sent.key))

    def headers(self, sent: Sent) -> tuple[tuple[str, bytes | None], ...]:
        """As the usual converter of headers writes them, whatever the form."""
        moved = tuple((f"__debezium.{name}", _json(dict(row))) for name, row in sent.headers)
        return (*moved, ("__debezium.context.connectorName", b"s"))

    def value(self, sent: Sent) -> bytes | None:
        """The value; _LEFT_OUT for a record that the form leaves out."""
        if self._form.unwrapped is not None:
            return self._unwrapped(sent, self._form.unwrapped)
        return None if sent.op == TOMBSTONE else self._bytes(self._envelope, self._payload(sent))

    def _payload(self, sent: Sent) -> Json:
        before, after = self._layout.payload(sent.before), self._layout.payload(sent.after)
        times = {name: sent.source[name] + 400 for name in _TIMES}
        return {"before": before, "after": after, "source": sent.source, "transaction": None, "op": sent.op, **times}

    def _unwrapped(self, sent: Sent, mode: str) -> bytes | None:
        rewritten = mode.startswith("rewrite")
        if sent.op == "t" or (sent.op == TOMBSTONE and mode != "rewrite-with-tombstone"):
            return _LEFT_OUT
        if sent.op == TOMBSTONE:
            return None
        if sent.op == "d" and mode == "drop":
            return _LEFT_OUT
        if sent.op == "d" and mode == "delete-to-tombstone":
            return None
        if sent.op == "d" and mode == "tombstone":
            return self._bytes(self._row, None)
        row: Json = self._layout.payload(sent.after or sent.before)
        if rewritten:
            row["__deleted"] = "true" if sent.op == "d" else "false"
        for name in self._form.added:
            row[_added_name(name)] = sent.op if name == "op" else sent.source[name.removeprefix("source.")]
        return self._bytes(self._row_schema(rewritten), row)

    def _row_schema(self, rewritten: bool) -> Json:
        names = ["__deleted"] if rewritten else []
        fields = [_field(Field(name, "string", optional=True)) for name in names]
        for name in self._form.added:
            kind = "string" if name == "op" else self._source_kinds[name.removeprefix("source.")]
            fields.append(_field(Field(_added_name(name), kind, optional=True)))
        return {**self._row, "fields": [*self._row["fields"], *fields]}

    def _bytes(self, schema: Json, payload: Json) -> bytes | None:
        if self._form.schema:
            return _json({"schema": schema, "payload": payload})
        return _json(payload)


def _added_name(name: str) -> str:
    return "__" + name.replace(".", "_")


def _source_fields(connector: Connector) -> Sequence[tuple[str, str]]:
    schema = [("schema", "string")] if connector.schema else []
    return (
        *((name, "string") for name in ("version", "connector", "name")),
        *(("ts_ms", "int64"), ("snapshot", "string"), ("db", "string"), ("sequence", "string")),
        *(("ts_us", "int64"), ("ts_ns", "int64"), *schema, ("table", "string")),
        *connector.source_fields,
    )


def _field(part: Field) -> Json:
    semantic = {"name": part.semantic, "version": 1} if part.semantic else {}
    return {"type": part.type, "optional": part.optional, **semantic, "field": part.name}


def _struct(fields: list[Json], name: str, *, optional: bool = False) -> Json:
    return {"type": "struct", "fields": fields, "optional": optional, "name": name}


def _json(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
