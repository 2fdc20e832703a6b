"""JSON documents of VARIANT columns: which texts Spark's binary form can hold, so that no other reaches a table."""

from __future__ import annotations

import json
import math

from distributary.types.base import BadValue
from distributary.types.strict_json import Json, has_half_characters, is_deeper

_DEEPEST = 64
"""Levels. Readers go through documents by recursion."""
_LONGEST_NUMBER = 4_300
"""Characters: Python, of which PySpark's writer is made, reads no longer ones."""
_LARGEST = 16 * 2**20 - 1
"""Bytes of a document, and of the names in it."""
_SURELY_SMALL = _LARGEST // 4
"""Characters of a text that becomes no larger document: one of two characters becomes 6 bytes, of four 12."""
_SHORT_TEXT = 64


def document_text(text: str) -> str:
    """The text itself. Raises BadValue where it is no JSON, or no document that can be written and read again."""
    if len(text) > _DEEPEST and is_deeper(text.encode("utf-8", "replace"), _DEEPEST):
        raise BadValue(text)
    try:
        value = json.loads(text, parse_float=_number, parse_int=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        raise BadValue(text) from None
    if "\\u" in text and has_half_characters(value):
        raise BadValue(text)
    if len(text) > _SURELY_SMALL:
        names: dict[str, int] = {}
        if _size(value, names) > _LARGEST or sum(names.values()) > _LARGEST:
            raise BadValue(text)
    return text


def _number(text: str) -> float:
    if len(text) > _LONGEST_NUMBER or not math.isfinite(number := float(text)):
        raise ValueError("a number that no document holds")
    return number


def _size(value: Json, names: dict[str, int]) -> int:
    """The most bytes that a value takes; `names` gets the fields' names with theirs."""
    if isinstance(value, str):
        size = len(value.encode())
        return size + (1 if size < _SHORT_TEXT else 5)
    if isinstance(value, list):
        return 9 + sum(4 + _size(item, names) for item in value)
    if isinstance(value, dict):
        names.update((name, 4 + len(name.encode())) for name in value)
        return 9 + sum(8 + _size(item, names) for item in value.values())
    return 1 if value is None or isinstance(value, bool) else 18
