"""A Delta table's columns as Arrow has them: by their names, and by the names and ids that its data files have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.delta.variant import VARIANT, decoded, encoded

_SIMPLE = {
    "string": pa.string(), "binary": pa.binary(), "boolean": pa.bool_(), "byte": pa.int8(), "short": pa.int16(),
    "integer": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"


class UnknownType(ValueError):
    """A column has a type that this version can't write."""


@dataclass(frozen=True)
class Column:
    """A column. `logical` is its Arrow field as users see it, `stored` as data files have it; in both, nested fields
    are nullable."""

    logical: pa.Field
    stored: pa.Field
    nullable: bool

    @property
    def name(self) -> str:
        """The name that users see."""
        return str(self.logical.name)

    @property
    def physical(self) -> str:
        """The name in data files, statistics and partition values."""
        return str(self.stored.name)


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, in order, and the columns by which its files are partitioned (users' names)."""

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]

    @staticmethod
    def of(schema: Mapping[str, Any], partition_by: Sequence[str] = ()) -> TableSchema:
        """From the log's schema. Raises UnknownType, which names the column."""
        columns = []
        for field in schema["fields"]:
            try:
                logical, stored = _field(field, stored=False), _field(field, stored=True)
            except UnknownType as error:
                raise UnknownType(f"the column {field['name']} has the type {error}") from error
            columns.append(Column(logical, stored, bool(field.get("nullable", True))))
        return TableSchema(tuple(columns), tuple(partition_by))

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """Columns by users' names."""
        return {column.name: column for column in self.columns}

    @cached_property
    def arrow(self) -> pa.Schema:
        """All columns by users' names."""
        return pa.schema([column.logical for column in self.columns])

    @property
    def data_columns(self) -> list[Column]:
        """The columns that data files have: all but those of the partition."""
        return [column for column in self.columns if column.name not in self.partition_by]

    @property
    def partition_columns(self) -> list[Column]:
        """The columns that the log has a value of for each file."""
        return [self.by_name[name] for name in self.partition_by]


def _field(field: Mapping[str, Any], *, stored: bool) -> pa.Field:
    details = field.get("metadata") or {}
    name = details.get(_PHYSICAL_NAME, field["name"]) if stored else field["name"]
    ids = {b"PARQUET:field_id": str(details[_FIELD_ID]).encode()} if stored and _FIELD_ID in details else None
    return pa.field(name, _type(field["type"], stored=stored), metadata=ids)


def _type(kind: Any, *, stored: bool) -> pa.DataType:
    if isinstance(kind, str):
        if kind == "variant":
            return VARIANT if stored else pa.string()
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        match = _DECIMAL.fullmatch(kind)
        if match is None:
            raise UnknownType(kind)
        return pa.decimal128(int(match[1]), int(match[2]))
    if kind["type"] == "struct":
        return pa.struct([_field(field, stored=stored) for field in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _type(kind["elementType"], stored=stored)))
    if kind["type"] == "map":
        key = pa.field("key", _type(kind["keyType"], stored=stored), nullable=False)
        return pa.map_(key, pa.field("value", _type(kind["valueType"], stored=stored)))
    raise UnknownType(str(kind["type"]))


def renamed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column as the type `kind`, whose nested fields are the same ones in the same order under other names."""
    return _as_type(column, kind, _by_place)


def fitted_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column as the type `kind`, with the same nested fields in any order. Narrower values are widened.

    Raises pa.ArrowException where a value does not fit, or nested fields differ.
    """
    return _as_type(column, kind, _same_names)


def stored_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of a data file as the type `kind` that the table has by now: narrower values are widened, nested fields
    that the file lacks are NULL."""
    return _as_type(column, kind, _known_names)


_Fields = Callable[[pa.StructArray, pa.DataType], list[pa.Array]]


def _as_type(column: pa.ChunkedArray, kind: pa.DataType, fields_of: _Fields) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if not pa.types.is_nested(kind) and column.type != VARIANT:
        return column.cast(kind)
    return pa.chunked_array([_nested(chunk, kind, fields_of) for chunk in column.chunks], kind)


def _by_place(array: pa.StructArray, kind: pa.DataType) -> list[pa.Array]:
    if array.type.num_fields != kind.num_fields:
        raise pa.ArrowInvalid(f"{array.type} has other fields than {kind}")
    return [_nested(array.field(i), kind.field(i).type, _by_place) for i in range(kind.num_fields)]


def _same_names(array: pa.StructArray, kind: pa.DataType) -> list[pa.Array]:
    if {field.name for field in array.type} != {field.name for field in kind}:
        raise pa.ArrowInvalid(f"{array.type} has other fields than {kind}")
    return [_nested(array.field(field.name), field.type, _same_names) for field in kind]


def _known_names(array: pa.StructArray, kind: pa.DataType) -> list[pa.Array]:
    has = {field.name for field in array.type}
    return [
        _nested(array.field(field.name), field.type, _known_names)
        if field.name in has
        else pa.nulls(len(array), field.type)
        for field in kind
    ]


def _nested(array: pa.Array, kind: pa.DataType, fields_of: _Fields) -> pa.Array:
    if array.type == kind:
        return array
    if kind == VARIANT and pa.types.is_string(array.type):
        return encoded(array)
    if array.type == VARIANT and pa.types.is_string(kind):
        return decoded(array)
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays(fields_of(array, kind), fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        keys, items = _nested(array.keys, kind.key_type, fields_of), _nested(array.items, kind.item_type, fields_of)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=kind)
    if pa.types.is_list(kind) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        array = array.cast(pa.list_(array.type.value_field))
        return pa.ListArray.from_arrays(_offsets(array), _nested(array.values, kind.value_type, fields_of), type=kind)
    return array.cast(kind)


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of a list or map, NULL where the list is NULL, so that from_arrays keeps that."""
    if not array.null_count:
        return array.offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, pa.scalar(None, pa.int32()), array.offsets)
