"""Partitions: values of columns that the log has once for each file, as text, instead of the file for each row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from distributary.delta.table_schema import Column

_NONE = "__HIVE_DEFAULT_PARTITION__"
_FAR = re.compile(r"([+-][0-9]{4,7}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9:.]+)Z?)?")
"""A date or a point in time of a year with a sign, as Spark writes those before 1 and after 9999."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999, since 1970
_MICROSECONDS = 86_400_000_000  # of a day
_LONGEST = 200  # bytes of a directory's name: file systems take 255


def split(rows: pa.Table, columns: Sequence[Column]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """The rows of each partition, with its values by physical names. Rows keep their order.

    An empty text counts as NULL there, as in Delta's format.
    """
    if not columns or not rows.num_rows:
        yield {}, rows
        return
    names = [column.name for column in columns]
    texts = pa.table({column.name: _as_text(rows.column(column.name)) for column in columns})
    numbered = texts.append_column("row", pa.array(range(rows.num_rows)))
    groups = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    for group in groups.to_pylist():
        values = {column.physical: group[column.name] for column in columns}
        yield values, rows.take(pa.array(sorted(group["row_list"])))


def directory(values: Mapping[str, str | None]) -> str:
    """The directory of a partition's files, as Hive and Spark name it; empty if there are no partitions."""
    parts = []
    for name, value in values.items():
        text = f"{quote(name, safe=' ')}={_NONE if value is None else quote(value, safe=' ')}"
        if len(text) > _LONGEST:
            text = xxhash.xxh3_128_hexdigest(text.encode())
        parts.append(f"{text}/")
    return "".join(parts)


def constant(text: str | None, column: Column, count: int) -> pa.ChunkedArray:
    """A partition's value as a column of `count` rows. Raises pa.ArrowInvalid if the text is no value of the column's
    type."""
    kind = column.logical.type
    if text and pa.types.is_temporal(kind) and (match := _FAR.fullmatch(text)):
        return pa.chunked_array([_far_value(match, kind).take(pa.array([0] * count, pa.int8()))], kind)
    value = pa.array([text or None], pa.string())
    if pa.types.is_timestamp(kind) and text:
        # Written in UTC by this code and with a zone by today's Delta; without one it is that of the session: UTC here.
        zoned = text.endswith("Z") or text[-6:-5] in ("+", "-")
        value = value.cast(pa.timestamp("us", "UTC" if zoned else None)).view(pa.int64()).view(kind)
    else:
        value = value.cast(kind)
    return pa.chunked_array([value.take(pa.array([0] * count, pa.int8()))], kind)


def without_empty_texts(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows with NULL in place of empty texts in the columns of the partition, as they come back from the table."""
    for column in columns:
        if column.name in rows.column_names and pa.types.is_string(column.logical.type):
            values = rows.column(column.name)
            number = rows.column_names.index(column.name)
            rows = rows.set_column(number, column.name, pc.if_else(pc.equal(values, ""), None, values))
    return rows


def _numbers(column: pa.ChunkedArray) -> list[int | None]:
    whole = pa.int32() if pa.types.is_date(column.type) else pa.int64()
    numbers: list[int | None] = column.cast(whole).to_pylist()
    return numbers


def _has_far_years(column: pa.ChunkedArray) -> bool:
    day = 1 if pa.types.is_date(column.type) else _MICROSECONDS
    extremes = pc.min_max(column.cast(pa.int32() if day == 1 else pa.int64()))
    least, most = extremes["min"].as_py(), extremes["max"].as_py()
    return least is not None and (least < _FIRST_DAY * day or most >= (_LAST_DAY + 1) * day)


def _far_text(value: int | None, kind: pa.DataType) -> str | None:
    """A date or a point in time of any year, as Spark writes it: years of more than four digits have a sign."""
    if value is None:
        return None
    text = str(np.datetime64(value, "D" if pa.types.is_date(kind) else "us"))
    year, _, rest = text.lstrip("-").partition("-")
    sign = "-" if text.startswith("-") else "+" if len(year) > 4 else ""
    text = f"{sign}{year:0>4}-{rest}"
    return text if pa.types.is_date(kind) else f"{text}Z" if kind.tz else text.replace("T", " ")


def _far_value(match: re.Match[str], kind: pa.DataType) -> pa.Array:
    day, time = match[1].removeprefix("+"), f"T{match[2]}" if match[2] else ""
    is_date = pa.types.is_date(kind)
    number = int(np.datetime64(day + time, "D" if is_date else "us").astype(int))
    return pa.array([number], pa.int32() if is_date else pa.int64()).view(kind)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_temporal(kind) and _has_far_years(column):
        return pa.chunked_array([pa.array([_far_text(value, kind) for value in _numbers(column)], pa.string())])
    if pa.types.is_timestamp(kind):
        return pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ" if kind.tz else "%Y-%m-%d %H:%M:%S")
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), None, text) if pa.types.is_string(kind) else text
