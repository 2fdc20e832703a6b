"""A record of a table's topic as the rules see it: an operation on a key, with its place in the source's log.

Written from the rules alone, so that it can stand as a reference: plain Python, one record at a time, no regard for
speed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.recorded import Record

Json = Any
OPERATIONS = frozenset("curdtm")


@dataclass(frozen=True)
class Position:
    """A place in the source's log: `level` orders transactions (None: not known), `inside` the changes of one."""

    level: tuple[int | str, ...] | None
    inside: tuple[int | str, ...]


@dataclass(frozen=True)
class Event:
    """One record. `operation` is Debezium's letter, or `tombstone`; `key` is the key's JSON in one spelling.

    `identity` is the same for a record and for the same record sent again, and differs between two changes of one key.
    """

    record: Record
    operation: str
    key: str | None
    position: Position | None = None
    transaction: str | None = None
    identity: str = ""
    connector: str = ""
    brought_by_key_change: bool = False
    after: dict[str, Json] | None = None
    row_schema: list[Json] | None = field(default=None, compare=False)


def read(record: Record) -> Event:
    """The event of a record. Raises ValueError for what is neither an envelope nor a tombstone."""
    key = _key(record.key)
    document = None if record.value is None else json.loads(record.value)
    schema = None
    if isinstance(document, dict) and document.keys() == {"schema", "payload"} and _is_schema(document["schema"]):
        schema, document = document["schema"], document["payload"]
    if document is None:
        return Event(record, "tombstone", key)
    if not isinstance(document, dict) or "source" not in document or document.get("op") not in OPERATIONS:
        raise ValueError(f"{record.topic}-{record.partition}@{record.offset} is not a change event")
    source, operation = document["source"], document["op"]
    connector = source["connector"]
    return Event(
        record,
        operation,
        key,
        _position(connector, source),
        _transaction(connector, source),
        _identity(connector, operation, source),
        connector,
        any(name == "__debezium.oldkey" for name, _ in record.headers),
        document.get("after"),
        _fields(schema),
    )


def _key(raw: bytes | None) -> str | None:
    document = None if raw is None else json.loads(raw)
    if isinstance(document, dict) and document.keys() == {"schema", "payload"} and _is_schema(document["schema"]):
        document = document["payload"]
    return None if document is None else json.dumps(document, sort_keys=True)


def _is_schema(document: Json) -> bool:
    return document is None or (isinstance(document, dict) and "type" in document)


def _fields(schema: Json) -> list[Json] | None:
    if schema is None:
        return None
    after: list[Json] = next(part for part in schema["fields"] if part["field"] == "after")["fields"]
    return after


def _position(connector: str, source: dict[str, Json]) -> Position | None:
    if connector == "postgresql":
        level, inside = json.loads(source["sequence"])
        return Position(None if level is None else (int(level),), (int(inside) if inside is not None else -1,))
    if connector in ("mysql", "mariadb"):
        number = int(re.sub(r"\D", "", source["file"].rpartition(".")[2]) or 0)
        return Position((number, int(source["pos"])), (int(source.get("row") or 0),))
    if connector in ("sqlserver", "db2"):
        # The text of a null sorts lowest, and so does a missing serial number.
        inside = (source.get("change_lsn") or "", int(source.get("event_serial_no") or 0))
        return Position((source.get("commit_lsn") or "",), inside if connector == "sqlserver" else inside[:1])
    raise ValueError(f"the order of {connector} is not known here")


def _transaction(connector: str, source: dict[str, Json]) -> str | None:
    name = {"postgresql": "txId", "mysql": "gtid", "mariadb": "gtid"}.get(connector, "commit_lsn")
    return None if source.get(name) is None else str(source[name])


def _identity(connector: str, operation: str, source: dict[str, Json]) -> str:
    """The whole source block, but for what a restarted PostgreSQL connector can't know of a change sent before."""
    block = dict(source)
    if connector == "postgresql" and operation != "r":
        block["sequence"] = json.loads(source["sequence"])[1]
    return json.dumps([operation, block], sort_keys=True)
