"""Records as Kafka Connect's Avro converter writes them, made from those that JsonConverter wrote with their schema.

It follows the form of the converter's own schemas and uses none of the service's code.
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from confluent_kafka.schema_registry import Schema
from fastavro import parse_schema, schemaless_writer

_PRIMITIVES = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float": "float", "double": "double",
    "boolean": "boolean", "string": "string", "bytes": "bytes",
}  # fmt: skip
_LOGICAL = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISION = "connect.decimal.precision"


class Registering(Protocol):
    """The part of a registry's client that registers schemas."""

    def register_schema(self, subject_name: str, schema: Schema) -> int: ...


class Recorded(Protocol):
    """The part of a record that is transcoded."""

    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


Record = TypeVar("Record", bound=Recorded)


class NoAvroName(ValueError):
    """A field's name that Avro does not allow."""


@dataclass
class AvroWriter:
    """Writes Avro instead of JSON, and registers the schemas."""

    registry: Registering
    _schemas: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)

    def written(self, data: bytes | None, subject: str) -> bytes | None:
        """`{"schema":…,"payload":…}` as a zero byte, the schema's id and Avro. Raises NoAvroName."""
        if data is None:
            return None
        schema_id, avro = self.schema_of(data, subject)
        return struct.pack(">bI", 0, schema_id) + self.body(data, avro)

    def schema_of(self, data: bytes, subject: str) -> tuple[int, Any]:
        """The id of the registered Avro schema, and the schema."""
        connect = json.loads(data)["schema"]
        at = subject, json.dumps(connect, sort_keys=True)
        if at not in self._schemas:
            avro = avro_of(connect)
            schema_id = self.registry.register_schema(subject, Schema(json.dumps(avro), "AVRO"))
            # The values are given as their types are on the wire, and a decimal may have a negative scale.
            without_logical_types = json.dumps(avro).replace('"logicalType"', '"wasLogicalType"')
            self._schemas[at] = schema_id, parse_schema(json.loads(without_logical_types))
        return self._schemas[at]

    @staticmethod
    def body(data: bytes, avro: Any) -> bytes:
        """The Avro bytes alone."""
        record = json.loads(data)
        written = io.BytesIO()
        schemaless_writer(written, avro, value_of(record["schema"], record["payload"]))
        return written.getvalue()


def avro_of(connect: Mapping[str, Any]) -> Any:
    """The Avro schema that stands for a Connect schema. Raises NoAvroName."""
    return _type(connect, {})


def _type(connect: Mapping[str, Any], defined: dict[str, Any]) -> Any:
    plain = _required(connect, defined)
    if not connect.get("optional"):
        return plain
    return ["null", plain] if connect.get("default") is None else [plain, "null"]


def _required(connect: Mapping[str, Any], defined: dict[str, Any]) -> Any:
    kind, name = connect["type"], connect.get("name")
    more: dict[str, Any] = {}
    if name is not None:
        more = {"connect.version": connect.get("version") or 1, "connect.name": name}
    if connect.get("parameters"):
        more["connect.parameters"] = connect["parameters"]
    if connect.get("default") is not None:
        given = connect["default"]
        more["connect.default"] = base64.b64decode(given).decode("latin-1") if kind == "bytes" else given
    if kind == "struct":
        return _record(connect, more, defined)
    if kind == "array":
        return {"type": "array", "items": _type(connect["items"], defined), **more}
    if kind == "map" and connect["keys"]["type"] != "string":
        return {"type": "array", "items": _map_entry(connect, more, defined), **more}
    if kind == "map":
        return {"type": "map", "values": _type(connect["values"], defined), **more}
    if kind in ("int8", "int16"):
        more["connect.type"] = kind
    if name == _DECIMAL:
        parameters = connect["parameters"]
        more |= {
            "scale": int(parameters["scale"]),
            "precision": int(parameters.get(_PRECISION, 64)),
            "logicalType": "decimal",
        }
    if name in _LOGICAL:
        more["logicalType"] = _LOGICAL[name]
    return {"type": _PRIMITIVES[kind], **more} if more else _PRIMITIVES[kind]


def _record(connect: Mapping[str, Any], more: dict[str, Any], defined: dict[str, Any]) -> Any:
    full = ".".join(
        re.sub("[^A-Za-z0-9_]", "_", part) for part in (connect.get("name") or f"Record{len(defined)}").split(".")
    )
    shape = json.dumps([(f["field"], f["type"], f.get("name")) for f in connect["fields"]])
    while defined.get(full, shape) != shape:
        full += "_"
    if full in defined:
        return full
    defined[full] = shape
    namespace, _, name = full.rpartition(".")
    fields = []
    for each in connect["fields"]:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", each["field"]):
            raise NoAvroName(each["field"])
        type_ = _type(each, defined)
        nothing = {"default": None} if isinstance(type_, list) and type_[0] == "null" else {}
        fields.append({"name": each["field"], "type": type_, **nothing})
    space = {"namespace": namespace} if namespace else {}
    return {"type": "record", "name": name, **space, "fields": fields, **more}


def _map_entry(connect: Mapping[str, Any], more: Mapping[str, Any], defined: dict[str, Any]) -> Any:
    """The record of a map's entry; it has the map's own name where there is one."""
    fields = [{**connect["keys"], "field": "key"}, {**connect["values"], "field": "value"}]
    own = {"connect.internal.type": "MapEntry"} if more else {}
    name = connect.get("name") or "io.confluent.connect.avro.MapEntry"
    return _record({"type": "struct", "name": name, "fields": fields}, own, defined)


def value_of(connect: Mapping[str, Any], value: Any) -> Any:
    """A JSON value in the form that the Avro writer accepts."""
    if value is None:
        return None
    kind = connect["type"]
    if kind == "bytes":
        return base64.b64decode(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "struct":
        return {f["field"]: value_of(f, value.get(f["field"])) for f in connect["fields"]}
    if kind == "array":
        return [value_of(connect["items"], item) for item in value]
    if kind == "map" and connect["keys"]["type"] != "string":
        return [
            {"key": value_of(connect["keys"], key), "value": value_of(connect["values"], item)} for key, item in value
        ]
    if kind == "map":
        return {key: value_of(connect["values"], item) for key, item in value.items()}
    return value
