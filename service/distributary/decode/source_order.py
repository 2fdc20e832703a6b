"""Orders changes by fields of the source block, for connectors whose positions need no rules of their own.

The first field identifies the transaction. A position is all fields, each as a text that sorts as its values do:

| type    | values                                                       | in the position                       |
| ---     | ---                                                          | ---                                   |
| number  | whole numbers from 0 to 20 digits, as numbers or as text     | 20 digits                             |
| decimal | the same with up to 10 digits behind a point                 | 20 digits, a point, 10 digits         |
| text    | letters, digits and `_.:@+-`, which sort by their ASCII      | as it is                              |
|         | codes, of one length                                         |                                       |

The connectors in this module count with 64 bits: a larger number of theirs makes no position. A field that is missing,
null, `NULL` or -1 sorts lowest; a change without any of them has no position. Facts of the connectors are from
Debezium's sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec

from distributary.decode.order_fields import Kind, Order, OrderField
from distributary.decode.position import CONNECTORS, BadPosition, PositionOf
from distributary.decode.source_block import SOURCE_FIELDS, Source

BY_FIELDS = "source.order"
"""In place of a connector's name, if the config names the fields and the records do not name their connector."""

_DIGITS, _FRACTION = 20, 10
_DECIMAL = re.compile(rf"([0-9]{{1,{_DIGITS}}})(?:\.([0-9]{{1,{_FRACTION}}}))?")
_TEXT = re.compile(r"[0-9A-Za-z_.:@+-]{1,128}")
"""Without a slash, which separates the parts, and without characters that have a meaning in SQL."""
_MISSING = ("", "NULL", "-1")
_LARGEST, _LARGEST_KNOWN = 10**_DIGITS - 1, 2**64 - 1


BUILT_IN: Mapping[str, Order] = {
    # The transaction's commit, then the change within it: places in Informix's logical log, as text.
    "informix": (OrderField("commit_lsn"), OrderField("change_lsn")),
    # CockroachDB's hybrid logical clock: nanoseconds, then a counter of 10 digits. A transaction changes a row once.
    "cockroachdb": (OrderField("ts_hlc", "decimal"),),
    # The commit's SCN, then the place of the change in the redo log.
    "yashandb": tuple(map(OrderField, ("position_scn", "group_lsn", "group_offset", "batch_row_id"))),
    # The number of the entry in the journal of IBM i.
    "ibmi": (OrderField("sequence"),),
    # MongoDB's cluster time: seconds, and the number of the change within one.
    "mongodb": (OrderField("ts_ms"), OrderField("ord")),
}


def order_of(connector: str, configured: Order) -> Order:
    """The fields by which a connector's changes are ordered; none for an unknown connector, or one whose positions have
    rules of their own (see position.py)."""
    return () if connector in CONNECTORS else configured or BUILT_IN.get(connector, ())


@lru_cache(maxsize=64)
def source_class(order: Order) -> type[Source]:
    """A source block with these fields too."""
    kind: Any = int | str | None
    new = [(field.name, kind, None) for field in order if field.name not in SOURCE_FIELDS]
    if not new:
        return Source
    ordered_source: Any = msgspec.defstruct("OrderedSource", new, bases=(Source,), gc=False)
    return cast("type[Source]", ordered_source)


def position_by(order: Order, connector: str) -> PositionOf:
    """The function from a source block to the position; see position.position_of."""
    largest = _LARGEST_KNOWN if order == BUILT_IN.get(connector) else _LARGEST

    def position(source: Source, op: str | None) -> str | None:
        parts = [_part(getattr(source, field.name), field.kind, largest) for field in order]
        return "/".join(parts) if any(parts) or op == "r" else None

    return position


def _part(value: object, kind: Kind, largest: int) -> str:
    """The text of one field in the position. Raises BadPosition."""
    text = "" if value is None else str(value)
    if text in _MISSING:
        return ""
    if kind == "text":
        if _TEXT.fullmatch(text) is None:
            raise BadPosition(value)
        return text
    number = _DECIMAL.fullmatch(text)
    if number is None or int(number[1]) > largest or (kind == "number" and number[2] is not None):
        raise BadPosition(value)
    whole, fraction = number.groups()
    if kind == "number":
        return whole.zfill(_DIGITS)
    return f"{whole.zfill(_DIGITS)}.{(fraction or '').ljust(_FRACTION, '0')}"
