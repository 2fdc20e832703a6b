"""The placeholder for values that the source did not send (PostgreSQL: unchanged TOAST values; Oracle: LOBs).

What Debezium puts in their place depends on the column's type (seen in recorded events): text-like types hold the
placeholder, bytes its base64 (or hex, as binary.handling.mode says), arrays of text or bytes a list of it, arrays of
numbers and dates a list of its bytes, arrays of uuid one uuid that is derived from it, hstore a map of it to itself.
Numeric arrays and others come as a plain null, which nothing tells from a NULL.

The column's type in the lake may be one that can't hold the placeholder: a text that `columns` calls a variant or a
timestamp. Where a list or a map is read as text (without a schema, or as `columns` says), so is what stands for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

from distributary.decode import sql
from distributary.decode.types import Codec

DEFAULT_PLACEHOLDER = "__debezium_unavailable_value"
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
    lists: list[list[str] | list[int]] = [*([form] for form in (*plain[:2], derived)), list(data)]
    as_json = [json.dumps(form, separators=(",", ":"), ensure_ascii=False) for form in ({text: text}, *lists)]
    as_list = [",".join(map(str, form)) for form in lists]
    return {"STRING": [*dict.fromkeys(plain), *as_json], "ARRAY<STRING>": as_list}


def can_stand_for(codec: Codec) -> bool:
    """Whether the placeholder may come in place of a value that is read so. Where a number is usual it never does: a
    text there is a bad value."""
    return codec.usual is None and codec.wire in ("STRING", "ARRAY<STRING>", "MAP<STRING, STRING>")


def is_placeholder(wire: str, codec: Codec, placeholder: str) -> str | None:
    """BOOLEAN: whether a value, as from_json read it, is the placeholder; None for types that never have one."""
    if not can_stand_for(codec):
        return None
    text = placeholder_text(placeholder)
    if codec.wire == "MAP<STRING, STRING>":
        return f"coalesce(map_contains_key({wire}, {sql.text(text)}), false)"
    known = ", ".join(sql.text(form) for form in _forms(text)[codec.wire])
    value = wire if codec.wire == "STRING" else f"concat_ws(',', {wire})"
    return f"coalesce({value} IN ({known}), false)"
