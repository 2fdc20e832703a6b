"""Where a record says which schema of the registry it was written with, and where its Avro bytes begin.

Two forms of Confluent's serializers: a zero byte and the schema's number (four bytes) in front of the Avro bytes, or a
header beside them, with the same five bytes or with a one byte and the schema's GUID (16 bytes). Apicurio's serializers
have headers of their own, with a number of eight bytes. A header counts first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

Side = Literal["key", "value"]
SIDES: tuple[Side, Side] = ("key", "value")
HEADERS: dict[Side, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}
# Apicurio's: the number by which Confluent's API knows the schema too, and one that only its own API knows.
_CONTENT: dict[Side, str] = {"key": "apicurio.key.contentId", "value": "apicurio.value.contentId"}
_GLOBAL: dict[Side, str] = {"key": "apicurio.key.globalId", "value": "apicurio.value.globalId"}

_NUMBERED = b"\x00"
_GUID = b"\x01"
_NUMBER_BYTES = 4
_GUID_BYTES = 16
_CONTENT_BYTES = 8


def address(data: bytes, headers: Iterable[tuple[str, bytes | None]], side: Side) -> tuple[str, bytes] | None:
    """The schema's address in the registry (its number, or its GUID) and the Avro bytes of a key or a value.

    None where it names no schema.
    """
    known = {name: told for name, told in reversed(list(headers)) if told is not None}
    if (named := _named(known.get(HEADERS[side], b""))) is not None:
        return named, data
    if len(content := known.get(_CONTENT[side], b"")) == _CONTENT_BYTES:
        return str(int.from_bytes(content, "big")), data
    if _GLOBAL[side] in known:
        return None
    body = 1 + _NUMBER_BYTES
    return (str(int.from_bytes(data[1:body], "big")), data[body:]) if data[:1] == _NUMBERED and data[body:] else None


def _named(told: bytes) -> str | None:
    if told[:1] == _NUMBERED and len(told) == 1 + _NUMBER_BYTES:
        return str(int.from_bytes(told[1:], "big"))
    if told[:1] == _GUID and len(told) == 1 + _GUID_BYTES:
        return str(uuid.UUID(bytes=told[1:]))
    return None


def framed(side: Side) -> list[Column]:
    """The same of Kafka's columns: `<side>_schema` STRING, NULL where it names none, and `<side>_body` BINARY."""
    told, content = _header(HEADERS[side]), _header(_CONTENT[side])
    in_header = F.when(_starts(told, _NUMBERED) & (F.length(told) == 1 + _NUMBER_BYTES), _number(told))
    in_header = in_header.when(_starts(told, _GUID) & (F.length(told) == 1 + _GUID_BYTES), _guid(told))
    in_header = in_header.when(F.length(content) == _CONTENT_BYTES, F.conv(F.hex(content), 16, 10))
    data = F.col(side)
    unknown = _header(_GLOBAL[side]).isNotNull()
    in_front = F.when(~unknown & _starts(data, _NUMBERED) & (F.length(data) > 1 + _NUMBER_BYTES), _number(data))
    body = F.when(in_header.isNull() & in_front.isNotNull(), F.expr(f"substring({side}, {2 + _NUMBER_BYTES})"))
    return [
        F.when(data.isNotNull(), F.coalesce(in_header, in_front)).alias(f"{side}_schema"),
        body.otherwise(data).alias(f"{side}_body"),
    ]


def _header(name: str) -> Column:
    """BINARY: the header's value, NULL where there is none."""
    return F.try_element_at(F.filter("headers", lambda h: (h["key"] == name) & h["value"].isNotNull()), F.lit(1))[
        "value"
    ]


def _starts(data: Column, byte: bytes) -> Column:
    return F.substring(data, 1, 1) == F.lit(bytearray(byte))


def _number(data: Column) -> Column:
    return F.conv(F.hex(F.substring(data, 2, _NUMBER_BYTES)), 16, 10)


def _guid(data: Column) -> Column:
    digits = F.lower(F.hex(F.substring(data, 2, _GUID_BYTES)))
    return F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
