"""Connect schemas and values as Kafka Connect's JsonConverter writes them with `schemas.enable=true`."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a column without time zone is meant


@dataclass(frozen=True)
class ConnectType:
    """A Connect type: its name on the wire, its semantic name if it has one, and how a Python value becomes JSON."""

    type: str
    name: str | None = None
    version: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    encode: Callable[[Any], Any] = field(default=lambda value: value)


INT16 = ConnectType("int16")
INT32 = ConnectType("int32")
INT64 = ConnectType("int64")
BOOLEAN = ConnectType("boolean")
STRING = ConnectType("string")
DATE = ConnectType("int32", "io.debezium.time.Date", 1, encode=lambda day: (day - EPOCH.date()).days)
TIMESTAMP = ConnectType(
    "int64", "io.debezium.time.Timestamp", 1, encode=lambda at: (at - EPOCH) // dt.timedelta(milliseconds=1)
)
MICRO_TIMESTAMP = ConnectType(
    "int64", "io.debezium.time.MicroTimestamp", 1, encode=lambda at: (at - EPOCH) // dt.timedelta(microseconds=1)
)


def decimal(precision: int, scale: int) -> ConnectType:
    """Connect's Decimal: the unscaled number as big-endian two's complement bytes, in base64."""

    def encode(value: Decimal) -> str:
        unscaled = int(value.scaleb(scale))
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()

    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return ConnectType("bytes", "org.apache.kafka.connect.data.Decimal", 1, parameters, encode)


@dataclass(frozen=True)
class Column:
    """A column of a source table."""

    name: str
    type: ConnectType
    optional: bool = False

    def schema(self) -> dict[str, Any]:
        """The column as a field of a struct's schema, attributes in JsonConverter's order."""
        schema: dict[str, Any] = {"type": self.type.type, "optional": self.optional}
        if self.type.name is not None:
            schema |= {"name": self.type.name, "version": self.type.version}
        if self.type.parameters:
            schema["parameters"] = dict(self.type.parameters)
        return schema | {"field": self.name}

    def encode(self, value: Any) -> Any:
        """`value` as JSON. Raises ValueError for a None that the column can't hold."""
        if value is None:
            if not self.optional:
                raise ValueError(f"column {self.name} can't be NULL")
            return None
        return self.type.encode(value)


def struct(
    name: str,
    fields: list[dict[str, Any]],
    *,
    optional: bool = False,
    version: int | None = None,
    at: str | None = None,
) -> dict[str, Any]:
    """A struct's schema; `at` is the field of the outer struct that it stands in."""
    schema: dict[str, Any] = {"type": "struct", "fields": fields, "optional": optional, "name": name}
    if version is not None:
        schema["version"] = version
    if at is not None:
        schema["field"] = at
    return schema


def to_json(value: Any) -> bytes:
    """JSON as JsonConverter writes it: no blanks, non-ASCII characters unescaped."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def with_schema(schema: dict[str, Any], payload: Any) -> bytes:
    """A record's key or value: the payload and, in front of it, its schema."""
    return to_json({"schema": schema, "payload": payload})
