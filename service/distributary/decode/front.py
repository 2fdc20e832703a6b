"""Removes what writers put around the JSON of a key or a value, other than Connect's schema.

| writer                                      | addition                                      |
| ---                                         | ---                                           |
| Confluent's serializer for JSON Schema      | a zero byte and the schema's number, 4 bytes  |
| Apicurio's converter for JSON               | the same with a number of 8 bytes             |
| AWS Glue's serializer for JSON Schema       | a 3, the compression, the schema's id: 18 bytes |
| a JSON writer that knows payloads alone     | `{"payload": …}` around the JSON              |
"""

from __future__ import annotations

import zlib
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.bounds import Bounds, TooMuchText

_NUMBERED = b"\x00"
_SCHEMA_ID = 5
"""Bytes. No JSON begins with a zero byte, so a value that does is never JSON alone."""
_LONG_ID = 9
"""Bytes: a number of eight bytes has a zero byte where JSON would begin behind one of four."""
_GLUE = b"\x03"
_PLAIN, _ZLIB = b"\x03\x00", b"\x03\x05"
_GLUE_HEADER = 18
_LONGEST = 2**31 - 1
_NAME = b'"payload"'

_Data = TypeVar("_Data", bytes, bytes | None)


class _Alone(msgspec.Struct, forbid_unknown_fields=True):
    payload: msgspec.Raw


_ALONE = msgspec.json.Decoder(_Alone)


def without_schema_id(data: bytes, most: int = Bounds.record_bytes) -> bytes:
    """The JSON behind the number of its schema; other bytes unchanged. For a compressed record of more than `most`
    bytes empty, which is no JSON."""
    if data[:1] == _NUMBERED:
        return data[_LONG_ID if data[_SCHEMA_ID : _SCHEMA_ID + 1] == _NUMBERED else _SCHEMA_ID :]
    if data[:2] == _PLAIN and len(data) > _GLUE_HEADER:
        return data[_GLUE_HEADER:]
    return _inflated(data[_GLUE_HEADER:], most) if data[:2] == _ZLIB and len(data) > _GLUE_HEADER else data


def _inflated(data: bytes, most: int) -> bytes:
    """The bytes that zlib compressed; empty if `data` is not exactly one zlib stream, or has more than `most` bytes."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(data, most + 1)
    except zlib.error:
        return b""
    is_whole = inflate.eof and not inflate.unused_data
    return content if is_whole and len(content) <= most else b""


def inflated_size(data: bytes, most: int) -> int | None:
    """The size of a zlib-compressed record without compression, at most `most`; None for other records."""
    if data[:2] != _ZLIB or len(data) <= _GLUE_HEADER:
        return None
    try:
        return len(zlib.decompressobj().decompress(data[_GLUE_HEADER:], most))
    except zlib.error:
        return len(data)


def without_schema_ids(column: pa.ChunkedArray, bounds: Bounds) -> pa.ChunkedArray:
    """As without_schema_id, for a column. Raises TooMuchText if several records together become more bytes than one
    record may have: a few kilobytes may become megabytes."""
    first = pc.binary_slice(column, 0, 1)
    if pc.any(pc.equal(first, _GLUE)).as_py():
        return pa.chunked_array([pa.array(_all_inflated(column, bounds), column.type)])
    is_numbered = pc.equal(first, _NUMBERED)
    if not pc.any(is_numbered).as_py():
        return column
    is_long = pc.equal(pc.binary_slice(column, _SCHEMA_ID, _SCHEMA_ID + 1), _NUMBERED)
    short, long = (pc.binary_slice(column, start, _LONGEST) for start in (_SCHEMA_ID, _LONG_ID))
    return pc.if_else(is_numbered, pc.if_else(is_long, long, short), column)


def _all_inflated(column: pa.ChunkedArray, bounds: Bounds) -> list[bytes | None]:
    contents: list[bytes | None] = []
    added = 0
    for data in column.to_pylist():
        bare = None if data is None else without_schema_id(data, bounds.record_bytes)
        added += max(0, len(bare or b"") - len(data or b""))
        if added > bounds.record_bytes and len(column) > 1:
            raise TooMuchText
        contents.append(bare)
    return contents


def without_payload_object(data: _Data) -> _Data:
    """The value of the object's only field `payload`; any other object unchanged, also one with that field twice.
    `data` has nothing in front of its JSON."""
    if data is None:
        return data
    try:
        payload = bytes(_ALONE.decode(data).payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return data
    # The name twice and one value: a field that occurs twice, or a name within the payload.
    return data if data.count(_NAME) > 1 + payload.count(_NAME) else payload
