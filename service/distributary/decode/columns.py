"""Converts rows of wire values to columns of the table's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.arrow_errors import DATA_ERRORS
from distributary.decode.by_reference import find_references
from distributary.decode.large_values import LargeValues, Referenced, replace_references
from distributary.decode.placeholder import Placeholder
from distributary.types.base import ColumnType
from distributary.types.bounds import TooMuchText
from distributary.types.record_schema import arrow_of
from distributary.types.spark_text import spark_texts


@dataclass
class Rows:
    """The rows that one reader has read. `types` by the source's names, and `lake` the lake's name of each; `places`
    are the places of their records in the batch. `bad` and `unavailable` map a record's place to the places of the
    columns that the reader has found to be so."""

    types: Mapping[str, ColumnType]
    lake: Mapping[str, str]
    places: Any
    rows: list[Any]
    bad: dict[int, list[int]] = field(default_factory=dict)
    unavailable: dict[int, list[int]] = field(default_factory=dict)

    def add(self, place: int, row: Any) -> None:
        """Adds the row of the record at `place`."""
        self.places.append(place)
        self.rows.append(row)


@dataclass
class Columns:
    """Columns by the lake's names, of as many values as the batch has records. The others map a record's place to names
    of columns. `bad`: their values do not fit the type; `bad_names`: the same columns as messages name them, with the
    source's name, which `columns` in the config has; `unavailable`: the source did not send their values; `referenced`:
    the connector keeps their values elsewhere (see by_reference.py). `fetched` maps a record's place to the number of
    bytes that replaced references."""

    arrays: dict[str, pa.Array]
    bad: dict[int, list[str]]
    unavailable: dict[int, list[str]]
    bad_names: dict[int, str] = field(default_factory=dict)
    referenced: dict[int, list[Referenced]] = field(default_factory=dict)
    fetched: dict[int, int] = field(default_factory=dict)


def struct_array(arrays: Mapping[str, pa.Array], there: Sequence[bool]) -> pa.Array:
    """STRUCT of columns, null where `there` is false."""
    fields = [pa.field(name, array.type) for name, array in arrays.items()]
    if not fields:
        return pa.array([{} if known else None for known in there], pa.struct([]))
    mask = None if all(there) else pc.invert(pa.array(there, pa.bool_()))
    return pa.StructArray.from_arrays(list(arrays.values()), fields=fields, mask=mask)


def make_columns(
    groups: Sequence[Rows],
    wanted: Mapping[str, str],
    count: int,
    placeholder: Placeholder | None,
    most_bytes: int,
    large: LargeValues,
) -> Columns:
    """The columns `wanted` (Spark types by the lake's names) of a batch of so many records. The columns of a record
    without a row, and columns that its row lacks, are null. `large` are the values that replace references. Raises
    TooMuchText where the columns have more than `most_bytes` bytes."""
    columns = Columns({}, {}, {})
    parts = [_group_arrays(group, wanted, placeholder, columns, most_bytes, large) for group in groups]
    if len(groups) == 1 and len(groups[0].places) == count:
        for name, spark in wanted.items():
            array = parts[0].get(name)
            columns.arrays[name] = pa.nulls(count, arrow_of(spark)) if array is None else array
        return columns
    order = _order(groups, count)
    for name, spark in wanted.items():
        arrow = arrow_of(spark)
        pieces = [
            pa.nulls(len(group.places), arrow) if (array := part.get(name)) is None else array
            for group, part in zip(groups, parts, strict=True)
        ]
        columns.arrays[name] = pa.concat_arrays([*pieces, pa.nulls(1, arrow)]).take(order)
    return columns


def _order(groups: Sequence[Rows], count: int) -> pa.Array:
    """For each record the index of its row among the rows of all groups; for a record without a row the index behind
    the last."""
    total = sum(len(group.places) for group in groups)
    order = np.full(count, total, np.int64)
    begin = 0
    for group in groups:
        order[np.asarray(group.places, np.int64)] = np.arange(begin, begin + len(group.places))
        begin += len(group.places)
    return pa.array(order)


def _group_arrays(
    group: Rows,
    wanted: Mapping[str, str],
    placeholder: Placeholder | None,
    result: Columns,
    most_bytes: int,
    large: LargeValues,
) -> dict[str, pa.Array]:
    arrays: dict[str, pa.Array] = {}
    bad: dict[int, set[int]] = {place: set(columns) for place, columns in group.bad.items()}
    unavailable: dict[int, set[int]] = {place: set(columns) for place, columns in group.unavailable.items()}
    tuples = map(msgspec.structs.astuple, group.rows)
    size = 0
    values_of = list(zip(*tuples, strict=True)) if group.rows else [()] * len(group.types)
    for column, ((sent, kind), values) in enumerate(zip(group.types.items(), values_of, strict=True)):
        name = group.lake[sent]
        if name not in wanted:
            continue
        array, wrong = kind.convert(values)
        absent = set(placeholder.find(kind, values, array, wrong)) if placeholder is not None else set()
        elsewhere: dict[int, Referenced] = {}
        if references := find_references(kind, values, array, wrong):
            whole, elsewhere = replace_references(values, references, large)
            array, wrong = kind.convert(whole)
            _note_fetched(group, values, whole, references, result)
        if absent:
            array = _without(array, absent)
            for at in absent:
                unavailable.setdefault(group.places[at], set()).add(column)
        for at, reference in elsewhere.items():
            with_name = replace(reference, column=_with_source_name(sent, name))
            result.referenced.setdefault(group.places[at], []).append(with_name)
        array, lost = _as_wanted(array, kind.spark, wanted[name])
        for at in (*wrong, *lost):
            if at not in absent and at not in elsewhere:
                bad.setdefault(group.places[at], set()).add(column)
        # If the source renamed a column, each record has it under the old or the new name.
        arrays[name] = pc.coalesce(arrays[name], array) if name in arrays else array
        size += array.nbytes
        if size > most_bytes:
            raise TooMuchText
    names = list(group.types)
    for place, columns in bad.items():
        wrong_ones = [names[column] for column in sorted(columns)]
        result.bad[place] = [group.lake[name] for name in wrong_ones]
        result.bad_names[place] = ", ".join(_with_source_name(name, group.lake[name]) for name in wrong_ones)
    for place, columns in unavailable.items():
        result.unavailable[place] = [group.lake[names[column]] for column in sorted(columns)]
    return arrays


def _note_fetched(
    group: Rows, sent: Sequence[Any], whole: Sequence[Any], references: Sequence[int], columns: Columns
) -> None:
    """Notes the sizes of the values that replaced references."""
    for at in references:
        if whole[at] is not sent[at]:
            place = group.places[at]
            columns.fetched[place] = columns.fetched.get(place, 0) + len(whole[at])


def _with_source_name(source: str, lake: str) -> str:
    return lake if source == lake else f"{lake} (source: {source})"


def _without(array: pa.Array, places: Iterable[int]) -> pa.Array:
    """The array with nulls at these places."""
    order = np.arange(len(array))
    removed = np.zeros(len(array), bool)
    removed[list(places)] = True
    return array.take(pa.array(order, mask=removed))


def _as_wanted(array: pa.Array, spark: str, wanted: str) -> tuple[pa.Array, Sequence[int]]:
    """The array converted to the table's type, and the places of values that this type can't hold."""
    arrow = arrow_of(wanted)
    if array.type.equals(arrow):
        return array, ()
    if wanted == "string":
        return pa.array(spark_texts(array, spark), arrow), ()
    try:
        return array.cast(arrow), ()
    except (*DATA_ERRORS, ValueError):
        return _cast_each(array, arrow)


def _cast_each(array: pa.Array, arrow: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
    pieces = [_cast_one(array.slice(index, 1), arrow) for index in range(len(array))]
    bad = [index for index, piece in enumerate(pieces) if piece is None]
    return pa.concat_arrays([pa.nulls(1, arrow) if piece is None else piece for piece in pieces]), bad


def _cast_one(value: pa.Array, arrow: pa.DataType) -> pa.Array | None:
    try:
        return value.cast(arrow)
    except (*DATA_ERRORS, ValueError):
        return None
