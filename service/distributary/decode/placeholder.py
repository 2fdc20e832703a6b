"""The placeholder for values that the source did not send (PostgreSQL: unchanged TOAST values; Oracle: LOBs).

What Debezium puts in their place depends on the column's type (seen in recorded events): text-like types hold the
placeholder, bytes its base64 (or hex, as binary.handling.mode says), arrays of text or bytes a list of it, arrays of
numbers and dates a list of its bytes, arrays of uuid one uuid that is derived from it, hstore a map of it to itself.
Numeric arrays and others come as a plain null, which nothing tells from a NULL.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

from distributary.decode import sql

DEFAULT_PLACEHOLDER = "__debezium_unavailable_value"
PLACEHOLDER_PROPERTY = "unavailable.value.placeholder"
# Of the others no database leaves values out: there the text is a value like any other.
CONNECTORS_WITH_PLACEHOLDER = ("postgresql", "oracle")


def placeholder_text(given: str) -> str:
    """The placeholder itself: `hex:` before it says that its bytes are given in hexadecimal digits."""
    return bytes.fromhex(given[4:]).decode("utf-8", "replace") if given.startswith("hex:") else given


def _forms(text: str) -> dict[str, list[str]]:
    """What stands for the placeholder, by the type that the wire is read as."""
    data = text.encode()
    plain = [
        text,
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        data.hex(),
        data.hex().upper(),
    ]
    # Java's UUID.nameUUIDFromBytes: a version 3 uuid of the bytes alone.
    derived = str(uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest(), version=3))
    pair = json.dumps({text: text}, separators=(",", ":"), ensure_ascii=False)
    return {"STRING": [*dict.fromkeys(plain), pair], "ARRAY<STRING>": [*plain[:2], ",".join(map(str, data)), derived]}


def is_placeholder(wire: str, wire_type: str, placeholder: str) -> str | None:
    """BOOLEAN: whether a value, as from_json read it, is the placeholder; None for types that never have one."""
    text = placeholder_text(placeholder)
    if wire_type == "MAP<STRING, STRING>":
        return f"coalesce(map_contains_key({wire}, {sql.text(text)}), false)"
    forms = _forms(text).get(wire_type)
    if forms is None:
        return None
    known = ", ".join(sql.text(form) for form in forms)
    value = wire if wire_type == "STRING" else f"concat_ws(',', {wire})"
    return f"coalesce({value} IN ({known}), false)"
