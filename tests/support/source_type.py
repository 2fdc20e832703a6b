"""The expected lake type of a source type, and how to parse the database's text of a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from tests.support.comparable import Value, float32, identical

NTZ = pa.timestamp("us")
UTC = pa.timestamp("us", tz="UTC")

_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class SourceType:
    """`arrow` is the type the table's column must have, `read` turns the database's text into a comparable value, and
    `same` says whether the lake's value is the truth's (never called with None)."""

    arrow: pa.DataType
    read: Callable[[str], Value]
    same: Callable[[Value, Value], bool] = identical


def decimal(precision: int, scale: int) -> SourceType:
    """DECIMAL(p,s), or exact text where that type can't hold it."""
    if precision <= 38 and 0 <= scale <= precision:
        return SourceType(pa.decimal128(precision, scale), Decimal)
    if scale < 0:
        return UNSCALED
    return SourceType(pa.string(), str)


def _same_number(truth: Value, lake: Value) -> bool:
    return bool(_PLAIN_NUMBER.fullmatch(lake)) and Decimal(truth) == Decimal(lake)


UNSCALED = SourceType(pa.string(), str, _same_number)
"""A decimal without a scale: plain notation, exact; zeros at the end of the fraction don't cross the wire."""

TEXT = SourceType(pa.string(), str)
INT16 = SourceType(pa.int16(), int)
INT32 = SourceType(pa.int32(), int)
INT64 = SourceType(pa.int64(), int)
FLOAT32 = SourceType(pa.float32(), lambda text: float32(float(text)))
FLOAT64 = SourceType(pa.float64(), float)
