"""What writers put around the JSON of a key or a value, beside Connect's schema.

| writer                                      | what it puts there                            |
| ---                                         | ---                                           |
| Confluent's serializer for JSON Schema      | a zero byte and the schema's number, 4 bytes  |
| AWS Glue's serializer for JSON Schema       | a 3, the compression, the schema's id: 18 bytes |
| a JSON writer that knows payloads alone     | `{"payload": …}` around the JSON              |
"""

from __future__ import annotations

import zlib
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.bounds import Bounds

_NUMBERED = b"\x00"
_SCHEMA_ID = 5
"""Bytes: no JSON begins with a zero byte, so that nothing else can be meant."""
_GLUE = b"\x03"
_PLAIN, _ZLIB = b"\x03\x00", b"\x03\x05"
_GLUE_HEADER = 18
_MOST_INFLATED = Bounds().record_bytes
_LONGEST = 2**31 - 1
_NAME = b'"payload"'

_Data = TypeVar("_Data", bytes, bytes | None)


class _Alone(msgspec.Struct, forbid_unknown_fields=True):
    payload: msgspec.Raw


_ALONE = msgspec.json.Decoder(_Alone)


def without_schema_id(data: bytes) -> bytes:
    """The JSON behind the number of its schema; as it is where there is none."""
    if data[:1] == _NUMBERED:
        return data[_SCHEMA_ID:]
    if data[:2] == _PLAIN and len(data) > _GLUE_HEADER:
        return data[_GLUE_HEADER:]
    return _inflated(data[_GLUE_HEADER:]) if data[:2] == _ZLIB and len(data) > _GLUE_HEADER else data


def _inflated(data: bytes) -> bytes:
    """What zlib compressed; empty, which is no JSON, where it is something else or more than a record may have."""
    inflate = zlib.decompressobj()
    try:
        found = inflate.decompress(data, _MOST_INFLATED)
    except zlib.error:
        return b""
    return found if inflate.eof else b""


def without_schema_ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same of a column."""
    first = pc.binary_slice(column, 0, 1)
    if pc.any(pc.equal(first, _GLUE)).as_py():
        bare = [None if data is None else without_schema_id(data) for data in column.to_pylist()]
        return pa.chunked_array([pa.array(bare, column.type)])
    is_numbered = pc.equal(first, _NUMBERED)
    if not pc.any(is_numbered).as_py():
        return column
    return pc.if_else(is_numbered, pc.binary_slice(column, _SCHEMA_ID, _LONGEST), column)


def without_payload_alone(data: _Data) -> _Data:
    """What the object's one field `payload` holds; as it is where it is another object, or has the field twice."""
    if data is None:
        return data
    try:
        found = bytes(_ALONE.decode(without_schema_id(data)).payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return data
    # The name twice and one value: a field that occurs twice, or a name within the payload.
    return data if data.count(_NAME) > 1 + found.count(_NAME) else found
