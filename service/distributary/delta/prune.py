"""Chooses the data files that may have rows of some keys, by their statistics in the log. The indexes of all other
files are not needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.delta.live_file import LiveFile
from distributary.delta.table_schema import Column

_Convert = Callable[[Any], Any]


def files_with(files: Iterable[LiveFile], keys: pa.Table, columns: Iterable[Column]) -> list[LiveFile]:
    """The files that may have one of the keys (a table of the key columns `columns`, by their users' names). Compares
    only columns of types whose bounds are exact by every writer: whole numbers, dates, texts.
    """
    remaining = list(files)
    for column in columns:
        convert = _converter(column.logical.type)
        if convert is None or not remaining:
            continue
        values = keys.column(column.name)
        if values.null_count:  # bounds do not include NULL
            continue
        try:
            wanted = sorted(map(convert, pc.unique(_comparable(values)).to_pylist()))
        except ValueError:  # a date that Python does not know
            continue
        remaining = [file for file in remaining if _may_have(file, column, wanted, convert)]
    return remaining


def _converter(kind: pa.DataType) -> _Convert | None:
    """Makes values of the log comparable; None if the type's bounds can't be trusted."""
    if pa.types.is_signed_integer(kind):
        return int
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _bytes  # as Spark compares texts
    return _day if pa.types.is_date32(kind) else None


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.string()) if pa.types.is_date(values.type) else values


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _day(text: str) -> str:
    """Dates of four-digit years compare as their texts."""
    if len(text) != 10:
        raise ValueError("not a year of four digits")
    return text


def _may_have(file: LiveFile, column: Column, wanted: list[Any], convert: _Convert) -> bool:
    name = column.physical
    if name in file.partition_values:
        value = file.partition_values[name]
        low = high = value
        if value is None:
            return False
    else:
        low = file.stats.get("minValues", {}).get(name)
        high = file.stats.get("maxValues", {}).get(name)
    try:
        first = 0 if low is None else bisect_left(wanted, convert(low))
        return first < len(wanted) and (high is None or wanted[first] <= convert(high))
    except (TypeError, ValueError):
        return True
