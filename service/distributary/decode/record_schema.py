"""The columns that decoded events have: the table's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from distributary.decode.bounds import Bounds
from distributary.decode.types.from_name import type_of_name

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0)}
"""Before and behind the point."""


@dataclass(frozen=True)
class RecordSchema:
    """Spark types by the lake's names: of the row's columns, and of the key's."""

    row: Mapping[str, str] = field(default_factory=dict)
    key: Mapping[str, str] = field(default_factory=dict)

    def extended(self, row: Mapping[str, str], key: Mapping[str, str]) -> RecordSchema:
        """The same with these columns: new ones, and those that have to be wider."""
        if not row and not key:
            return self
        return RecordSchema(_extended(self.row, row), _extended(self.key, key))


def _extended(known: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, str]:
    return {**known, **{name: wider(known[name], kind) if name in known else kind for name, kind in sent.items()}}


def wider(one: str, other: str) -> str:
    """The Spark type that holds the values of both types exactly; `string` where no other does."""
    if one == other:
        return one
    if one in _WHOLE and other in _WHOLE:
        return max(one, other, key=_WHOLE.index)
    if {one, other} == {"float", "double"}:
        return "double"
    digits = [_DIGITS.get(kind) or _decimal_digits(kind) for kind in (one, other)]
    if None in digits:
        return "string"
    (whole, scale), (other_whole, other_scale) = (pair for pair in digits if pair is not None)
    whole, scale = max(whole, other_whole), max(scale, other_scale)
    return f"decimal({whole + scale},{scale})" if whole + scale <= 38 else "string"


def _decimal_digits(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", kind)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


@lru_cache(maxsize=4096)
def arrow_of(spark: str) -> pa.DataType:
    """The Arrow type of a column of that Spark type. Raises UnknownColumnType."""
    return type_of_name(spark, {}, Bounds()).arrow
