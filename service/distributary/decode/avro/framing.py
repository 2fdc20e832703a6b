"""Finds the schema that a record names, and where its Avro bytes begin.

| serializer | the schema's address                                                  | where                |
| ---        | ---                                                                   | ---                  |
| Confluent  | a zero byte, then the schema's number in four bytes                   | in front of the Avro |
|            | the same five bytes, or a one byte and the schema's GUID in 16        | header `…_schema_id` |
| Apicurio   | its content id in eight bytes: Confluent's API knows the number too   | header `…contentId`  |
|            | a zero byte, then an id in eight bytes, of which the first are zero   | in front of the Avro |

A header counts before an id in front. Apicurio's global id is no address: only its own API knows it. An id of eight
bytes in front may be either of the two: it is read only if the config declares it the content id. No schema has the
number 0, so four zero bytes always begin an id of eight bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from distributary.decode.headers import find_headers

RecordPart = Literal["key", "value"]
RECORD_PARTS: tuple[RecordPart, RecordPart] = ("key", "value")

_CONFLUENT: dict[RecordPart, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}
_CONTENT: dict[RecordPart, str] = {"key": "apicurio.key.contentId", "value": "apicurio.value.contentId"}
_GLOBAL: dict[RecordPart, str] = {"key": "apicurio.key.globalId", "value": "apicurio.value.globalId"}
_NAMES = tuple(names[side] for names in (_CONFLUENT, _CONTENT, _GLOBAL) for side in RECORD_PARTS)

_NUMBERED = b"\x00"
_GUID = b"\x01"
_NUMBER_BYTES = 4
_GUID_BYTES = 16
_CONTENT_BYTES = 8
_LONG_BODY = 1 + _CONTENT_BYTES
_ZEROS = bytes(_NUMBER_BYTES)
GLUE_HEADER = 18
"""Bytes that AWS Glue's serializers write in front: a 3, the compression, and the id of the schema's version."""
_GLUE = (b"\x03\x00", b"\x03\x05")
"""Without compression, and compressed by zlib."""
BODY = 1 + _NUMBER_BYTES
"""Where the Avro begins behind a number in front."""

FramingHeaders = Mapping[int, Mapping[str, "bytes | None"]]
"""By the record's index: of each name the first header with a value."""


def framing_headers(raw: pa.RecordBatch | pa.Table) -> FramingHeaders:
    """The headers that name schemas."""
    return find_headers(raw, _NAMES, with_value=True)


def find_address(
    data: bytes, headers: Mapping[str, bytes | None], side: RecordPart, *, long_ids: bool = False
) -> tuple[str, int] | None:
    """The schema's address in the registry (its number, or its GUID), and where in a key or a value its Avro begins.
    `long_ids`: ids of eight bytes in front are Apicurio's content ids.

    None if it names no schema.
    """
    if headers:
        if (named := _named(headers.get(_CONFLUENT[side]) or b"")) is not None:
            return named, 0
        if len(content := headers.get(_CONTENT[side]) or b"") == _CONTENT_BYTES:
            return str(int.from_bytes(content, "big")), 0
        if _GLOBAL[side] in headers:
            return None
    if data[:1] != _NUMBERED or len(data) <= BODY:
        return None
    if data[1:BODY] != _ZEROS:
        return str(int.from_bytes(data[1:BODY], "big")), BODY
    if not long_ids or len(data) <= _LONG_BODY:
        return None
    return str(int.from_bytes(data[1:_LONG_BODY], "big")), _LONG_BODY


def unread_form(data: bytes, headers: Mapping[str, bytes | None], side: RecordPart) -> str | None:
    """The known but unreadable form of address that a key or a value has; None if it has none."""
    if _GLOBAL[side] in headers:
        return "Apicurio's global id in a header"
    if data[:2] in _GLUE and len(data) > GLUE_HEADER:
        return "the header of AWS Glue's schema registry (18 bytes)"
    if data[:BODY] == _NUMBERED + _ZEROS and len(data) > _LONG_BODY:
        return "an id of eight bytes, as Apicurio's converter writes it"
    return None


def is_json(data: bytes | None) -> bool:
    """Whether a key or a value without an address is a JSON object: topics may have Avro on one side alone."""
    return data is not None and data[:1] == b"{"


def _named(header: bytes) -> str | None:
    if header[:1] == _NUMBERED and len(header) == BODY:
        return str(int.from_bytes(header[1:], "big"))
    if header[:1] == _GUID and len(header) == 1 + _GUID_BYTES:
        return str(uuid.UUID(bytes=header[1:]))
    return None
