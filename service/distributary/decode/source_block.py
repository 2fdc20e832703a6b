"""The `source` block of an envelope: the position of a change in its database's log, and its transaction.

Its fields are read with any JSON type: the types changed between Debezium versions (`event_serial_no` and `snapshot`
came as numbers, booleans and texts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from distributary.rules.log_traits import BINLOG_CONNECTORS
from distributary.types.base import text_of
from distributary.types.strict_json import Json

_FieldValue = int | str | None


class Source(msgspec.Struct, gc=False):
    """The fields of a source block that are read, of all connectors."""

    connector: str | None = None
    name: str | None = None
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    ts_ms: _FieldValue = None
    snapshot: str | bool | None = None
    commit_lsn: _FieldValue = None
    change_lsn: _FieldValue = None
    event_serial_no: _FieldValue = None
    sequence: str | None = None
    lsn: _FieldValue = None
    txId: _FieldValue = None  # noqa: N815 - Debezium's name
    file: str | None = None
    pos: _FieldValue = None
    row: _FieldValue = None
    server_id: _FieldValue = None
    gtid: str | None = None
    scn: _FieldValue = None
    commit_scn: _FieldValue = None
    rs_id: str | None = None
    ssn: _FieldValue = None


class Transaction(msgspec.Struct, gc=False):
    """The `transaction` block of an envelope."""

    id: str | None = None
    data_collection_order: _FieldValue = None
    total_order: _FieldValue = None


SOURCE_FIELDS = Source.__struct_fields__

BY_OFFSET = "offset"
"""In place of a connector's name, if the source's own positions are not known."""

SNAPSHOT_READS = frozenset(
    ("true", "first", "last", "first_in_data_collection", "last_in_data_collection", "incremental", "blocking_snapshot")
)
"""The values of `snapshot` in rows that a snapshot read."""

SNAPSHOT_ENDS = ("last", "last_in_data_collection")
"""The values of `snapshot` in the last row of a table's snapshot."""

LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last one of Python's datetime."""

_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]")
_READ_FIELDS = ("connector", "ts_ms", "snapshot", "sequence", "lsn", "txId")


def restate_source(block: Mapping[str, Json], of: type[Source] = Source) -> Source:
    """A source block whose fields have other JSON types, as texts."""
    return of(**{name: text for name in of.__struct_fields__ if (text := _text(block.get(name))) is not None})


def restate_transaction(block: Mapping[str, Json]) -> Transaction:
    """A transaction block whose fields have other JSON types, as texts."""
    return Transaction(*(_text(block.get(name)) for name in Transaction.__struct_fields__))


def _text(value: Json) -> str | None:
    return None if value is None else text_of(value)


SOURCE_TABLE_COLUMN = "__physical_table"
"""The column of the key with the name of a row's source table, if one topic has rows of several tables."""


def source_column(key: Iterable[str]) -> str | None:
    """The column of a key that names the source table, if there is one: its name has two underscores. Such names are no
    columns of a source: transforms (ByLogicalTableRouter's `__dbz__physicalTableIdentifier`) or the service add
    them."""
    names = [name for name in key if name.startswith("__")]
    return SOURCE_TABLE_COLUMN if SOURCE_TABLE_COLUMN in names else next(iter(names), None)


def truncated_column(key: Mapping[str, str]) -> str | None:
    """The column of a key (name to Spark type) that names the source table of a truncate, if there is one. A column
    that is the whole key, or a number, is the source's own."""
    return source_column(name for name, kind in key.items() if kind == "string") if len(key) > 1 else None


def source_topic(source: Source) -> str | None:
    """The topic that Debezium writes the source table's changes to, unless a transform gives them another one:
    ByLogicalTableRouter adds this name to the key. None if the block does not have all parts of it."""
    place = (source.db, source.schema) if source.connector == "sqlserver" else (source.schema or source.db,)
    parts = (source.name, *place, source.table)
    return None if None in parts else _NOT_IN_TOPICS.sub("_", ".".join(map(str, parts)))


def source_table(source: Source) -> str | None:
    """The name of the source table, from the fields that the block has: `db.schema.table`, with a part in quotes that
    has a dot or a quote in it. None if it names no table."""
    if not source.table:
        return None
    # In a row without an envelope, a field with this name may be a column of any type.
    parts = [text_of(part) for part in (source.db, source.schema, source.table) if part not in (None, "")]
    return ".".join(json.dumps(part, ensure_ascii=False) if {".", '"'} & set(part) else part for part in parts)


def snapshot_text(value: str | bool | None) -> str | None:
    """The source block's field `snapshot`, in lower case."""
    return None if value is None else str(value).lower()


def transaction_of(connector: str, source: Source) -> str | None:
    """The transaction's id, which its changes share and no other change has; None if the source block has none. SQL
    Server's and Db2's is the commit LSN, which their positions begin with.
    """
    if connector in BINLOG_CONNECTORS:
        return source.gtid
    if source.txId is not None or connector != BY_OFFSET:
        return _plain(source.txId)
    return source.gtid


def snapshot_identity(source: Source) -> str:
    """Identifies a snapshot row of PostgreSQL, as snapshot rows have no position among the changes: the fields of its
    source block, as JSON."""
    named_values = ((name, getattr(source, name)) for name in _READ_FIELDS)
    fields = {name: text_of(value) for name, value in named_values if value is not None}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)


def whole_number(value: _FieldValue) -> int | None:
    """A field as a whole number of 64 bits; None for any other value."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.lstrip("-").isdigit() and len(value) < 20 else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def source_time(value: _FieldValue) -> int | None:
    """A time of a source block in milliseconds since 1970, up to the year 9999; None for any other value."""
    milliseconds = value if type(value) is int else whole_number(value)
    return milliseconds if milliseconds is not None and 0 <= milliseconds <= LAST_MS else None
