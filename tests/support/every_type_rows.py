"""Rows with a column of every type, as they are sent and as the lake must have them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.decoding import SQLSERVER_SOURCE, struct_schema, with_schema
from tests.support.every_type import EVERY_TYPE
from tests.support.recorded import Record

SCHEMA: dict[str, Any] = {"id": {"type": "int64"}, **{one.name: one.schema for one in EVERY_TYPE}}
ROWS = max(len(one.values) for one in EVERY_TYPE)
"""The number of rows that hold all values."""
_ENVELOPE = {
    "type": "struct",
    "fields": [
        struct_schema(SCHEMA, field="after"),
        struct_schema({"connector": {"type": "string"}}, field="source"),
        {"type": "string", "field": "op"},
    ],
}


def sent_row(number: int) -> dict[str, Any]:
    """The row with the value of that number of each type, as it is sent; NULL if a type has fewer values."""
    return _row(number, 0)


def expected_row(number: int) -> dict[str, Any]:
    """The same row as the lake must have it."""
    return _row(number, 1)


def _row(number: int, side: int) -> dict[str, Any]:
    values = {one.name: one.values[number][side] if number < len(one.values) else None for one in EVERY_TYPE}
    return {"id": number, **values}


def created(offset: int, values: dict[str, Any]) -> Record:
    """The event, with schema, that creates a row of these values; its `id` is the offset."""
    payload = {"op": "c", "after": {**values, "id": offset}, "source": SQLSERVER_SOURCE}
    key = with_schema(struct_schema({"id": SCHEMA["id"]}), json.dumps({"id": offset}))
    return Record("t", 0, offset, 0, key, with_schema(_ENVELOPE, json.dumps(payload)), ())
