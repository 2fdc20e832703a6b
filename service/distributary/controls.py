"""Text of others, so that it steers no terminal: names and values come from records, and end in logs and results."""

from __future__ import annotations

import re

# C0 and C1 controls (an escape sequence begins with one of them), what turns the direction of writing or ends a line in
# Unicode, and halves of characters, which no output can encode.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_WITHIN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def without_controls(text: str, *, but: str = "") -> str:
    """The text with control characters written out (`\\x1b`, `\\u202e`), `but` for some."""
    return _CONTROLS.sub(lambda found: found[0] if found[0] in but else _written(found[0]), text)


def json_without_controls(text: str) -> str:
    """The JSON document with all control characters escaped, also those that JSON allows unescaped."""
    return _WITHIN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
