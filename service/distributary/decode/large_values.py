"""Puts large values in place of the references that Debezium's S3LargeMessagePostProcessor sent instead.

The caller fetches the values, because decoding does no I/O: decode once to learn the references, fetch, and decode
again with the values. A reference is `__debezium:s3:ref:v1:BUCKET|KEY`, in a text as it is, in bytes as its UTF-8, and
so in Base64 where bytes are a text of JSON. The object has the bytes of the value, or of the text in UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

_REFERENCE = re.compile(rb"__debezium:s3:ref:v1:([A-Za-z0-9._-]{1,255}\|[^\x00]{1,1024})", re.DOTALL)
_NO_TEXT = "its object is no text in UTF-8"
# A client may read `..` as a path to another bucket.
_NO_SEGMENTS = ("", ".", "..")


@dataclass(frozen=True)
class Unreadable:
    """The reason why a large value can't be fetched, as the end of a sentence about its column."""

    why: str


LargeValues = Mapping[str, bytes | Unreadable]
"""The fetched values, or why they can't be fetched, by `BUCKET|KEY`."""
NO_LARGE_VALUES: LargeValues = MappingProxyType({})


@dataclass(frozen=True)
class Referenced:
    """A value that is not in its record. `column` is the column's name for messages, `place` the value's `BUCKET|KEY`
    (None for other kinds of reference), `why` the reason why it can't be fetched (empty: it was not fetched yet)."""

    column: str
    place: str | None
    why: str = ""


def place_of(value: str | bytes) -> str | None:
    """`BUCKET|KEY` of a reference; None for a value that is no reference, or one that the post processor does not
    make."""
    for form in (_plain, _from_base64):
        if (match := _REFERENCE.fullmatch(form(value))) is not None:
            try:
                place = match[1].decode()
            except UnicodeDecodeError:
                return None
            segments = place.partition("|")[2].split("/")
            return None if any(segment in _NO_SEGMENTS for segment in segments) else place
    return None


def total_size(values: LargeValues) -> int:
    """Bytes of all fetched values."""
    return sum(len(content) for content in values.values() if isinstance(content, bytes))


def replace_references(
    values: Sequence[Any], indexes: Sequence[int], fetched: LargeValues
) -> tuple[Sequence[Any], dict[int, Referenced]]:
    """The wire values of a column with large values in place of references at `indexes`, and the references that are
    left, by index, without the column's name."""
    unreplaced: dict[int, Referenced] = {}
    new: list[Any] | None = None
    for index in indexes:
        place = place_of(values[index])
        content = None if place is None else fetched.get(place)
        if content is None:
            unreplaced[index] = Referenced("", place)
        elif isinstance(content, Unreadable):
            unreplaced[index] = Referenced("", place, content.why)
        else:
            try:
                value = _in_the_form_of(values[index], content)
            except UnicodeDecodeError:
                unreplaced[index] = Referenced("", place, _NO_TEXT)
                continue
            new = list(values) if new is None else new
            new[index] = value
    return values if new is None else new, unreplaced


def _in_the_form_of(reference: str | bytes, content: bytes) -> str | bytes:
    if isinstance(reference, bytes):
        return content
    return content.decode() if _REFERENCE.match(_plain(reference)) else base64.b64encode(content).decode()


def _plain(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _from_base64(value: str | bytes) -> bytes:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (ValueError, binascii.Error):
        return b""
