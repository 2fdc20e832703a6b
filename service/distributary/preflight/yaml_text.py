"""Writes any text as YAML: as value, as key and as comment."""

from __future__ import annotations

import json
import re

from distributary.config.interpolate import escaped

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:-]*[A-Za-z0-9_/]|[A-Za-z]")
_OTHER_THAN_TEXT = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# Characters that YAML does not allow unescaped, or that end a line.
_UNPRINTABLE = re.compile("[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_LONGEST_KEY = 1_000  # a reader looks 1,024 characters ahead for the colon


def scalar(text: str) -> str:
    """The text, in quotes if some YAML reader would not read it as a string."""
    if _PLAIN.fullmatch(text) and text.lower() not in _OTHER_THAN_TEXT:
        return text
    return _printable(json.dumps(text, ensure_ascii=False))


def pair(key: str, value: str, indent: str) -> str:
    """A key of a mapping and its value; both may be any text."""
    written = scalar(escaped(key))
    if len(written) > _LONGEST_KEY:
        return f"{indent}? {written}\n{indent}: {scalar(value)}"
    return f"{indent}{written}: {scalar(value)}"


def line(text: str) -> str:
    """The text as one line, for a comment."""
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
