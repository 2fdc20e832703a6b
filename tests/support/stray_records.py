"""Records that a table can't have, of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.changes import decimal
from tests.support.decoding import SQLSERVER_SOURCE, struct_schema, with_schema
from tests.support.sample_change import envelope_schema

from distributary.consume.sample import SampledRecord

COLUMNS = {"id": "bigint", "n": "int", "text": "string"}
CONNECT = {"id": {"type": "int64"}, "n": {"type": "int32"}, "text": {"type": "string"}}
SOURCE = {**SQLSERVER_SOURCE, "db": "d", "schema": "dbo", "table": "t"}


def record(
    offset: int,
    columns: dict[str, Any] | None = None,
    key: dict[str, Any] | None = None,
    *,
    plain: bool = False,
    value: bool = True,
    **source: str,
) -> SampledRecord:
    """An update with this Connect type of each column, the values of which are null but for the key."""
    types, keys = columns or CONNECT, key or {"id": {"type": "int64"}}
    row = {name: offset if name == "id" else None for name in types}
    payload = json.dumps({"before": None, "after": row, "source": {**SOURCE, **source}, "op": "u"})
    bare_key = json.dumps({name: offset if name == "id" else 1 for name in keys})
    if plain:
        return SampledRecord(0, offset, bare_key.encode(), payload.encode() if value else None, (), 1)
    optional = {name: {**kind, "optional": True} for name, kind in types.items()}
    whole = with_schema(envelope_schema(optional), payload) if value else None
    return SampledRecord(0, offset, with_schema(struct_schema(keys), bare_key), whole, (), 1)


STRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"columns": {**CONNECT, "n": {"type": "bytes"}}}, "column-type-changed"),
    "key": ({"key": {"id": {"type": "int64"}, "n": {"type": "int32"}}}, "key-changed"),
    "name that is taken": ({"columns": {**CONNECT, "__op": {"type": "string"}}}, "column-name-taken"),
    "name in another case": ({"columns": {**CONNECT, "N": {"type": "int32"}}}, "columns-differ-in-case"),
    "type that can't be converted": ({"columns": {**CONNECT, "text": decimal(10, 2)}}, "no-conversion"),
}
PLAIN = ("key", "name that is taken", "name in another case")
EVERY = [
    *(pytest.param({**change}, code, id=name) for name, (change, code) in STRAYS.items()),
    *(pytest.param({**STRAYS[name][0], "plain": True}, STRAYS[name][1], id=f"{name}, plain") for name in PLAIN),
]


def good(offset: int, stray: dict[str, Any]) -> SampledRecord:
    return record(offset, plain=stray.get("plain", False))
