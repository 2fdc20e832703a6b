"""A change of a sample table of SQL Server, valid JSON with and without a schema: tests change one field of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.support.changes import decimal
from tests.support.decoding import SQLSERVER_SOURCE, compact, struct_schema, with_schema

COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "int64"},
    "n": {"type": "int64"},
    "i32": {"type": "int32"},
    "text": {"type": "string"},
    "price": decimal(10, 2),
    "rate": {"type": "double"},
    "flag": {"type": "boolean"},
}
"""Connect schemas by column."""
TYPES = {
    "id": "bigint",
    "n": "bigint",
    "i32": "int",
    "text": "string",
    "price": "decimal(10,2)",
    "rate": "double",
    "flag": "boolean",
}
"""The types of the same columns in the lake."""
VALUES = {"id": 17, "n": 5, "i32": 7, "text": "abc", "price": Decimal("12.50"), "rate": 1.5, "flag": True}
"""The table's row of the sample change."""
_ROW = {"id": "17", "n": "5", "i32": "7", "text": '"abc"', "price": '"BOI="', "rate": "1.5", "flag": "true"}


def envelope_schema(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The Connect schema of an envelope of rows with these columns."""
    return {
        "type": "struct",
        "fields": [
            struct_schema(columns, field="before"),
            struct_schema(columns, field="after"),
            struct_schema({name: {"type": "string"} for name in SQLSERVER_SOURCE}, field="source"),
            {"type": "string", "field": "op"},
        ],
    }


def envelope_json(after: str, op: str = '"u"') -> str:
    """An envelope with this JSON as the row after the change."""
    return f'{{"before":null,"after":{after},"source":{compact(SQLSERVER_SOURCE)},"op":{op}}}'


def row_json(**changed: str | None) -> str:
    """The sample row with some values' JSON replaced; None omits a field."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in {**_ROW, **changed}.items() if text is not None) + "}"


def change_json(**changed: str | None) -> str:
    """An update to the sample row, with some values' JSON replaced; None omits a field."""
    return envelope_json(row_json(**changed))


ENVELOPE_SCHEMA = envelope_schema(COLUMNS)
KEY_SCHEMA = struct_schema({"id": {"type": "int64"}})
CHANGE = change_json()
KEY_WITH_SCHEMA = with_schema(KEY_SCHEMA, '{"id":17}')
CHANGE_WITH_SCHEMA = with_schema(ENVELOPE_SCHEMA, CHANGE)
