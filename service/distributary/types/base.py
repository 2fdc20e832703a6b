"""The type of a column: its wire form, its Arrow type, and the converter between them. How a type is added:
docs/follow-a-record.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from distributary.arrow_errors import DATA_ERRORS
from distributary.types.connect_schema import ConnectType
from distributary.types.strict_json import Json, Number, json_text


class BadValue(ValueError):
    """A value that its type can't hold."""


class WrongKind(Exception):
    """The value is an array, an object or a plain value, and the type needs another of these three."""


class Converted(NamedTuple):
    """A column, and the indexes of values that its type can't hold; they are null in it."""

    array: pa.Array
    bad: Sequence[int]


Convert = Callable[[Sequence[Any]], Converted]
FAILURES = (ValueError, TypeError, ArithmeticError)


@dataclass(frozen=True)
class ColumnType:
    """One type of a column.

    `spark` is the column's type as Spark's simple string, `arrow` its Arrow type. `wire` is the Python type as which
    msgspec reads a JSON value. If msgspec refuses a value, `restate` makes a wire value of it, if it is only written in
    another way (the number 5 as the text "5"). `convert` makes the column from wire values. `restate` raises BadValue,
    or WrongKind. `may_be_unavailable`: the source may send a placeholder instead (decode/placeholder.py). `mark` is how
    its values are masked, None if they are not.
    """

    spark: str
    arrow: pa.DataType
    wire: Any
    convert: Convert
    restate: Callable[[Json], Any]
    may_be_unavailable: bool = False
    mark: str | None = None


@dataclass(frozen=True)
class TypeNote:
    """A row of docs/types.md. `types` are Connect types that become one and the same Spark type, `wire` is how their
    values are sent, `edges` describes values at the limits. `shown` is shown instead of the types' names, if it is not
    empty."""

    types: tuple[ConnectType, ...]
    wire: str
    edges: str = ""
    shown: str = ""


def note(kind: str, *names: str, wire: str, edges: str = "", shown: str = "") -> TypeNote:
    """The note of semantic names over one Connect type."""
    return TypeNote(tuple(ConnectType(kind, name) for name in names), wire, edges, shown)


TIME, DATA, KAFKA = "io.debezium.time", "io.debezium.data", "org.apache.kafka.connect.data"
"""Where semantic names are defined."""


def convert_each(arrow: pa.DataType, convert_value: Callable[[Any], Any]) -> Convert:
    """A converter of single values: for rare types, and for columns that can't be converted at once.

    `convert_value` raises one of FAILURES for a value that the type can't hold.
    """

    def convert(values: Sequence[Any]) -> Converted:
        converted: list[Any] = []
        bad: list[int] = []
        for index, value in enumerate(values):
            if value is not None:
                try:
                    value = convert_value(value)
                except FAILURES:
                    bad.append(index)
                    value = None
            converted.append(value)
        return Converted(pa.array(converted, arrow), bad)

    return convert


def convert_whole(arrow: pa.DataType, convert_value: Callable[[Any], Any]) -> Convert:
    """A converter that passes the values to Arrow at once, and converts them one by one only if Arrow refuses one."""
    convert_values = convert_each(arrow, convert_value)

    def convert(values: Sequence[Any]) -> Converted:
        try:
            return Converted(pa.array(values, arrow), ())
        except (*FAILURES, *DATA_ERRORS):
            return convert_values(values)

    return convert


def text_of(value: Json) -> str:
    """The text of a plain JSON value, and of others their JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    return json_text(value)


def only_text(value: Json) -> str:
    """A JSON text. Raises BadValue for anything else."""
    if not isinstance(value, str) or isinstance(value, Number):
        raise BadValue(value)
    return value


def with_values(array: pa.Array, arrow: pa.DataType, data: Any) -> pa.Array:
    """An array of that type: the numpy values instead of the array's own, null where it is. The array is a new one
    (offset 0), and both types have the width of `data`."""
    validity = array.buffers()[0] if array.null_count else None
    return pa.Array.from_buffers(arrow, len(array), [validity, pa.py_buffer(data)], array.null_count)
