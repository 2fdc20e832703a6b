"""Fields of the source block that order a connector's changes, as `source.order` names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["number", "decimal", "text"]
_KINDS: tuple[Kind, ...] = ("number", "decimal", "text")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class OrderField(NamedTuple):
    """A field of the source block, and how its values sort (see decode/source_order.py)."""

    name: str
    kind: Kind = "number"


Order = tuple[OrderField, ...]


def parse_order(texts: Sequence[str]) -> Order:
    """The order that texts name: `FIELD` or `FIELD TYPE` each. Raises ValueError with what is wrong."""
    order: list[OrderField] = []
    for text in texts:
        name, _, kind = text.partition(" ")
        kind = kind.strip() or "number"
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a field")
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(_KINDS)}")
        if name in [field.name for field in order]:
            raise ValueError(f"{name!r} occurs twice")
        order.append(OrderField(name, kind))
    return tuple(order)
