"""A strict reader of JSON, for records that msgspec refuses: it finds their faults, or restates their values.

Numbers stay the text that they were written as, so that a long one costs nothing until its type is known.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from distributary import reasons
from distributary.reasons import Rejected
from distributary.types.bounds import Bounds

Json = Any
_OPENING = b"[{"


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


class Document(dict[str, Any]):
    """A JSON object. `twice`: it has a field twice; then the last value counts."""

    twice = False


def parse_object(data: bytes, bounds: Bounds) -> Document:
    """The one JSON object that the bytes are.

    Raises Rejected: not UTF-8, no object, text after it, half a character, nested too deeply.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Rejected(reasons.BAD_UTF8) from None
    if is_deeper(data, bounds.nesting):
        raise Rejected(reasons.BEYOND_LIMITS, f"more than {bounds.nesting} levels of JSON")
    decoder = json.JSONDecoder(
        object_pairs_hook=_document, parse_float=Number, parse_int=Number, parse_constant=_refuse_constant
    )
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise Rejected(reasons.NOT_JSON) from None
    if not isinstance(value, Document):
        raise Rejected(reasons.NOT_JSON)
    if text[end:].strip(" \t\r\n"):
        raise Rejected(reasons.TEXT_AFTER)
    if "\\u" in text and has_half_characters(value):
        raise Rejected(reasons.AMBIGUOUS)
    return value


def is_deeper(data: bytes, levels: int) -> bool:
    """Whether brackets outside of texts are nested deeper than that."""
    if sum(map(data.count, (b"[", b"{"))) <= levels:
        return False
    depth = 0
    in_text = escaped = False
    for byte in data:
        if in_text:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_text = False
        elif byte == 0x22:
            in_text = True
        elif byte in _OPENING:
            depth += 1
            if depth > levels:
                return True
        elif byte in b"]}":
            depth -= 1
    return False


def has_half_characters(value: Json) -> bool:
    """Whether some text or name in the value is no text that UTF-8 can write."""
    if isinstance(value, dict):
        return any(has_half_characters(name) or has_half_characters(item) for name, item in value.items())
    if isinstance(value, list):
        return any(map(has_half_characters, value))
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
    return False


def has_field_twice(value: Json) -> bool:
    """Whether some object in the value has a field twice."""
    if isinstance(value, Document):
        return value.twice or any(map(has_field_twice, value.values()))
    return isinstance(value, list) and any(map(has_field_twice, value))


def json_text(value: Json) -> str:
    """A parsed value as compact JSON, its numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return f"{{{','.join(f'{json_text(str(name))}:{json_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _document(pairs: list[tuple[str, Json]]) -> Document:
    document = Document(pairs)
    document.twice = len(document) < len(pairs)
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
