"""The statistics of a data file in the log: counts, NULLs, smallest and largest values. Readers skip files by them
(data skipping), so a bound may be wide but never wrong; where there is no right one it is left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.delta.table_schema import Column
from distributary.delta.variant import VARIANT

_TEXT_LENGTH = 32  # characters of a bound, as Delta's own
_LAST_CHARACTER = "\U0010ffff"
_INDEXED = 32  # columns from the first on, Delta's default
_NAMES = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
_JSON = msgspec.json.Encoder(decimal_format="number")
# Years 1 to 9999 in ms since 1970: others have no form that all readers know.
_FIRST_MS, _LAST_MS = (int(np.datetime64(text, "ms").astype(int)) for text in ("0001-01-01", "9999-12-31T23:59:59.999"))
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))


def file_statistics(rows: pa.Table, indexed: Collection[str]) -> str:
    """The statistics of a file with these rows, as the log has them. `indexed`: the columns (names of `rows`) with
    bounds and null counts."""
    smallest: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for name in rows.column_names:
        if name in indexed:
            _describe(name, rows.column(name), smallest, largest, nulls)
    statistics = {"numRecords": rows.num_rows, "minValues": smallest, "maxValues": largest, "nullCount": nulls}
    return _JSON.encode(statistics).decode()


def indexed_columns(columns: Collection[Column], properties: Mapping[str, str], key: Collection[str]) -> set[str]:
    """The physical names of the columns with statistics: those of the table's properties, and the key's."""
    named = properties.get("delta.dataSkippingStatsColumns")
    if named is not None:
        heads = {name.strip() for name in _NAMES.findall(named)}
        chosen = {column for column in columns if any(_names(head, column.name) for head in heads)}
    else:
        remaining, chosen = int(properties.get("delta.dataSkippingNumIndexedCols", _INDEXED)), set()
        for column in columns:
            if remaining == 0:
                break
            chosen.add(column)
            remaining = max(remaining - _leaves(column.logical.type), 0) if remaining > 0 else remaining
    return {column.physical for column in columns if column in chosen or column.name in key}


def _names(text: str, column: str) -> bool:
    """Whether a path such as `a.b` or "`x.y`" begins with the column."""
    quoted = "`" + column.replace("`", "``") + "`"
    return any(text == head or text.startswith(f"{head}.") for head in (column, quoted))


def _leaves(kind: pa.DataType) -> int:
    return sum(_leaves(field.type) for field in kind) if pa.types.is_struct(kind) else 1


def _describe(
    name: str, column: pa.ChunkedArray, smallest: dict[str, Any], largest: dict[str, Any], nulls: dict[str, Any]
) -> None:
    if pa.types.is_struct(column.type) and column.type != VARIANT:
        inside: tuple[dict[str, Any], ...] = ({}, {}, {})
        for field, child in zip(column.type, column.flatten(), strict=True):
            _describe(field.name, child, *inside)
        for whole, part in zip((smallest, largest, nulls), inside, strict=True):
            if part:
                whole[name] = part
        return
    nulls[name] = column.null_count
    low, high = _bounds(column)
    if low is not None:
        smallest[name] = low
    if high is not None:
        largest[name] = high


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """The smallest and the largest value for JSON; None if the column has none."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _of_floats(column)
    ordered = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind)
    if not (ordered or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None, None
    if pa.types.is_timestamp(kind):
        values = pc.min_max(column.cast(pa.int64()))
        return _instants(values["min"].as_py(), values["max"].as_py(), "Z" if kind.tz else "")
    if pa.types.is_date(kind):
        values = pc.min_max(column.cast(pa.int32()))
        return _day(values["min"].as_py()), _day(values["max"].as_py())
    values = pc.min_max(column)
    low, high = values["min"].as_py(), values["max"].as_py()
    if low is None or isinstance(low, int | Decimal):
        return low, high
    return low[:_TEXT_LENGTH], _above(high)


def _of_floats(column: pa.ChunkedArray) -> tuple[float | None, float | None]:
    """NaN is larger than all other values for Spark, and JSON has neither it nor infinity."""
    numbers = column.filter(pc.invert(pc.is_nan(column)))
    extremes = pc.min_max(numbers)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    with_nan = len(numbers) < len(column) - column.null_count
    if low is None or np.isinf(low):
        low = None
    if high is None or np.isinf(high) or with_nan:
        high = None
    return low, high


def _above(text: str) -> str | None:
    """The text, or a short one that is larger than all that begin like it."""
    if len(text) <= _TEXT_LENGTH:
        return text
    if text[_TEXT_LENGTH] == _LAST_CHARACTER:
        return None
    return text[:_TEXT_LENGTH] + _LAST_CHARACTER


def _instants(low: int | None, high: int | None, zone: str) -> tuple[str | None, str | None]:
    """Microseconds as milliseconds, which is all that readers expect: rounded away from the values."""
    return (
        None if low is None else _instant(low // 1000, zone),
        None if high is None else _instant(-(-high // 1000), zone),
    )


def _instant(milliseconds: int, zone: str) -> str | None:
    if not _FIRST_MS <= milliseconds <= _LAST_MS:
        return None
    return f"{np.datetime64(milliseconds, 'ms')}{zone}"


def _day(days: int | None) -> str | None:
    return None if days is None or not _FIRST_DAY <= days <= _LAST_DAY else str(np.datetime64(days, "D"))
