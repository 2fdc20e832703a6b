"""Texts and bytes: `string` and all semantic names over it, `bytes` as Base64.

A value of a `string` column that is no text becomes the text of its JSON. A text that `columns` calls a `variant` is
kept as its JSON text, which must be JSON.
"""

from __future__ import annotations

import base64
import binascii

import pyarrow as pa

from distributary.types.base import (
    DATA,
    TIME,
    BadValue,
    ColumnType,
    TypeNote,
    convert_each,
    convert_whole,
    note,
    only_text,
    text_of,
)
from distributary.types.connect_schema import ConnectType
from distributary.types.documents import document_text
from distributary.types.strict_json import Json, has_field_twice


def base64_bytes(value: Json) -> bytes:
    """The bytes of a Base64 text. Raises BadValue."""
    try:
        return base64.b64decode(only_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise BadValue(value) from None


def _hexadecimal(value: str) -> bytes:
    if any(character.isspace() for character in value):  # bytes.fromhex passes over blanks
        raise BadValue(value)
    return bytes.fromhex(value)


def _url_safe(value: str) -> bytes:
    return base64_bytes(value.translate(str.maketrans("-_", "+/")))


def _unchanged(value: str) -> str:
    return value


def _whole_text(value: Json) -> str:
    """The text of a JSON value. Raises BadValue for an object that has a field twice: one of the two would be lost."""
    if has_field_twice(value):
        raise BadValue(value)
    return text_of(value)


STRING = ColumnType("string", pa.string(), str, convert_whole(pa.string(), _unchanged), _whole_text, True)
BINARY = ColumnType("binary", pa.binary(), bytes, convert_whole(pa.binary(), _unchanged), base64_bytes, True)
BINARY_HEX = ColumnType("binary", pa.binary(), str, convert_each(pa.binary(), _hexadecimal), only_text, True)
BINARY_URL_SAFE = ColumnType("binary", pa.binary(), str, convert_each(pa.binary(), _url_safe), only_text, True)
VARIANT = ColumnType("variant", pa.string(), str, convert_each(pa.string(), document_text), _whole_text, True)

_BYTES = "Base64 in JSON, bytes in Avro"
NOTES: tuple[TypeNote, ...] = (
    TypeNote((ConnectType("string"),), "text", "as it is; bytes that are not UTF-8: quarantine"),
    TypeNote((ConnectType("bytes"),), _BYTES, "text that is not Base64: quarantine"),
    note("string", f"{DATA}.Json", wire="text", edges="as it is; `columns: {c: variant}` parses it"),
    note(
        "string",
        *(f"{DATA}.{name}" for name in ("Xml", "Uuid", "Enum", "EnumSet", "Ltree")),
        *(f"{TIME}.{name}" for name in ("Interval", "ZonedTime")),
        wire="text",
        edges="as it is",
    ),
    note("bytes", f"{DATA}.Bits", wire=_BYTES, edges="a single bit is sent as `boolean`"),
)
