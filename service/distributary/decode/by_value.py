"""Infers the types of columns that neither a schema nor the config names, from their values: bigint, double, boolean,
else string."""

from __future__ import annotations

from collections.abc import MutableMapping

from distributary.types.base import ColumnType
from distributary.types.numbers import BIGINT, BOOLEAN, DOUBLE
from distributary.types.strict_json import Json, Number
from distributary.types.text import STRING

_DIGITS_OF_BIGINT = 19


def type_by_value(value: Json) -> ColumnType | None:
    """The type of one value (see strict_json); None for null. Whole numbers beyond bigint are strings: as doubles,
    different ones would become equal."""
    if value is None:
        return None
    if isinstance(value, bool):
        return BOOLEAN
    if not isinstance(value, Number):
        return STRING
    if value.lstrip("-").isdigit():
        is_short = len(value.lstrip("-")) <= _DIGITS_OF_BIGINT
        return BIGINT if is_short and -(2**63) <= int(value) < 2**63 else STRING
    return DOUBLE


def type_by_raw(raw: bytes) -> ColumnType | None:
    """As type_by_value, for JSON text."""
    first = raw[:1]
    if first == b"n":
        return None
    if first in (b"t", b"f"):
        return BOOLEAN
    return type_by_value(Number(raw.decode(errors="replace"))) if first in b"-0123456789" else STRING


def add_type(shown: MutableMapping[str, str], column: str, kind: ColumnType | None) -> None:
    """Adds the type of one more value to the type that `shown` has of the column."""
    if kind is None:
        return
    before = shown.get(column, kind.spark)
    if before == kind.spark:
        shown[column] = before
    else:
        shown[column] = "double" if {before, kind.spark} == {"bigint", "double"} else "string"
