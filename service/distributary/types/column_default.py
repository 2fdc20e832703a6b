"""Defaults of columns that a source table got later: its older rows have them, but no change event shows this.

A default is kept as text: the result of Spark's CAST in UTC, or hexadecimal digits for bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from distributary.arrow_errors import DATA_ERRORS
from distributary.types.base import FAILURES, ColumnType, WrongKind
from distributary.types.connect_schema import ConnectField
from distributary.types.from_schema import SEMANTIC
from distributary.types.spark_text import spark_texts
from distributary.types.strict_json import Number

_FILLING = ("postgresql", "mysql", "mariadb", "oracle", "db2")
"""Connectors whose databases give the default to the rows that are there even where the column may be NULL. SQL Server
leaves NULL in these."""


@dataclass(frozen=True)
class ColumnDefault:
    """The value of rows that are older than a column: `value` (a text), where their last change comes `before` the
    first one that has the column, by positions."""

    value: str
    before: str


def default_text(field: ConnectField, kind: ColumnType, connector: str) -> str | None:
    """The value that rows older than the column have in the source. None if the schema has no default, or the default
    is ambiguous: the column may be NULL and the database leaves NULL there; a time's zero, by which connectors write
    expressions such as now(); arrays, maps and structs."""
    if field.default is None or (field.optional and connector not in _FILLING):
        return None
    document = json.loads(json.dumps(field.default), parse_int=Number, parse_float=Number)
    try:
        if _is_zero_time(field, document):
            return None
        array, bad = kind.convert([kind.restate(document)])
    except (*FAILURES, WrongKind, *DATA_ERRORS):
        return None
    if bad or array.null_count or pa.types.is_nested(array.type):
        return None
    (text,) = spark_texts(array, kind.spark)
    try:
        return text if text is not None and array_of_text(text, array.type).equals(array) else None
    except (*FAILURES, *DATA_ERRORS):  # a year that has no four digits
        return None


def _is_zero_time(field: ConnectField, document: Any) -> bool:
    """Whether a default is a time's zero, by the source's type: a hash or a text that the config makes of it no longer
    shows this. Raises the errors of converting."""
    sent = SEMANTIC.get(field.type.name or "")
    if sent is None or not (pa.types.is_timestamp(sent.arrow) or pa.types.is_date32(sent.arrow)):
        return False
    array, _ = sent.convert([sent.restate(document)])
    whole = pa.int64() if pa.types.is_timestamp(sent.arrow) else pa.int32()
    return bool(array.view(whole)[0].as_py() == 0)


def array_of_text(text: str, arrow: pa.DataType) -> pa.Array:
    """An array with the value of a default's text. Raises ValueError if the type can't hold it."""
    if pa.types.is_binary(arrow):
        return pa.array([bytes.fromhex(text)], arrow)
    if pa.types.is_timestamp(arrow):
        return pa.array([text]).cast(pa.timestamp(arrow.unit)).cast(arrow)
    return pa.array([text]).cast(arrow)
