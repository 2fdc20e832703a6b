"""The parts of a key's text, and the keys that a truncate of one of several source tables concerns."""

from __future__ import annotations

from distributary.rules.event import Scope

NO_VALUE = "-"
"""Stands for a null among the columns of a key."""


def key_parts(text: str) -> list[str | None]:
    """The texts of the columns of a key with several columns, each of which stands behind its length in bytes:
    `2:101:x` is 10 and x."""
    parts: list[str | None] = []
    rest = text.encode()
    while rest:
        if rest.startswith(NO_VALUE.encode()):
            parts.append(None)
            rest = rest[1:]
            continue
        length, _, rest = rest.partition(b":")
        parts.append(rest[: int(length)].decode())
        rest = rest[int(length) :]
    return parts


def is_in_scope(key: str, scope: Scope) -> bool:
    """Whether a key belongs to the source table of a truncate."""
    index, name = scope
    return key_parts(key)[index] == name
