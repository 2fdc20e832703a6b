"""Points in time without a zone, by the config's `timestamps`: unchanged, or as instants in UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from distributary.types.base import ColumnType, Converted

_WITHOUT, _IN_UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
# As a type, and not as the name of a struct's field.
_WITHOUT_ZONE, _ZONED = (re.compile(rf"(?:^|(?<=[<,:])){kind}(?=[,>]|$)") for kind in ("timestamp_ntz", "timestamp"))


def has_no_zone(spark: str) -> bool:
    """Whether a type (Spark's simple string) is, or has within, a point in time without a zone."""
    return _WITHOUT_ZONE.search(spark) is not None


def has_zone(spark: str) -> bool:
    """Whether it is, or has within, an instant."""
    return _ZONED.search(spark) is not None


def in_utc(kind: ColumnType) -> ColumnType:
    """The type with `timestamp` wherever it has `timestamp_ntz`, also within arrays, maps and structs. The values keep
    their digits, which become the time in UTC, as Debezium counts them. All other types are unchanged."""
    arrow = _with_zone(kind.arrow)
    if arrow == kind.arrow:
        return kind

    def convert(values: Sequence[Any]) -> Converted:
        array, bad = kind.convert(values)
        return Converted(array.cast(arrow), bad)

    return replace(kind, spark=_WITHOUT_ZONE.sub("timestamp", kind.spark), arrow=arrow, convert=convert)


def _with_zone(arrow: pa.DataType) -> pa.DataType:
    if arrow == _WITHOUT:
        return _IN_UTC
    if pa.types.is_struct(arrow):
        return pa.struct([part.with_type(_with_zone(part.type)) for part in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_type, _with_zone(arrow.item_type))
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_with_zone(arrow.value_type)))
    return arrow
