"""The schema-change topic of SQL Server, Db2, MySQL, MariaDB and Oracle: reads the source's tables from its records.

The connectors write it under the topic prefix itself, a record for each DDL statement with the tables after it (https://debezium.io/documentation/reference/stable/connectors/sqlserver.html#sqlserver-schema-change-topic).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from distributary.types.announced_types import SourceColumn

# `"database"."schema"."table"`, a quote within a name is doubled.
_PART = re.compile(r'"((?:[^"]|"")*)"')


@dataclass(frozen=True)
class SourceTable:
    """A table after a change of its schema. `name` has the database and the schema in front, as far as the connector
    reports them, with dots between."""

    connector: str
    name: str
    columns: tuple[SourceColumn, ...]


def changed_tables(value: bytes | None) -> list[SourceTable] | None:
    """The tables that a record's value describes, with and without a Connect schema beside it; None if it is no
    schema change. A table that was dropped is not among them."""
    try:
        record: Any = json.loads(value or b"null")
    except (ValueError, RecursionError):
        return None
    if isinstance(record, dict) and isinstance(record.get("payload"), dict):
        record = record["payload"]
    if not isinstance(record, dict) or not isinstance(record.get("tableChanges"), list):
        return None
    source = record.get("source")
    connector = source.get("connector") if isinstance(source, dict) else None
    if not isinstance(connector, str):
        return None
    tables = (_table(connector, change) for change in record["tableChanges"])
    return [table for table in tables if table is not None]


def _table(connector: str, change: Any) -> SourceTable | None:
    if not isinstance(change, dict) or not isinstance(change.get("table"), dict):
        return None
    name = ".".join(part.replace('""', '"') for part in _PART.findall(str(change.get("id", ""))))
    columns = change["table"].get("columns")
    if not name or not isinstance(columns, list):
        return None
    return SourceTable(connector, name, tuple(column for c in columns if (column := _column(c)) is not None))


def _column(value: Any) -> SourceColumn | None:
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("name"), str)
        or not isinstance(value.get("typeName"), str)
    ):
        return None
    return SourceColumn(
        value["name"], value["typeName"].upper(), _number(value.get("length")), _number(value.get("scale"))
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
