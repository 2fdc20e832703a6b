"""A first look at a topic's records: which connector wrote them, whether they have a key, which form they have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distributary.consume.broker import Record
from distributary.decode.envelope import CONNECTORS
from distributary.errors import TableHalt


@dataclass(frozen=True)
class Look:
    """What the first records of a topic tell. `key` are the names of the record key's fields, empty without key.

    `only_truncates`: all of them are truncates, which have no key, so that nothing tells yet whether the table has one.
    """

    connector: str
    key: tuple[str, ...]
    has_schema: bool
    only_truncates: bool = False


def look_at(records: Sequence[Record], topic: str, configured: str | None) -> Look:
    """Looks at records from the head of a slice.

    Raises TableHalt where they are not change events that this version applies.
    """
    connector, key = configured, tuple[str, ...]()
    envelope = unwrapped = has_schema = False
    operations = set()
    for record in records:
        value, with_schema = _payload(record.value)
        if not key:
            key = _key_fields(record.key)
        if not isinstance(value, dict):
            continue
        if isinstance(value.get("source"), dict) and "op" in value:
            envelope, has_schema = True, has_schema or with_schema
            operations.add(value["op"] if isinstance(value["op"], str) else None)
            found = value["source"].get("connector")
            connector = connector or (found if isinstance(found, str) else None)
        else:
            unwrapped = True
    if unwrapped and not envelope:
        raise TableHalt(
            "not-an-envelope",
            f"the records of {topic} are not Debezium envelopes (unwrapped by ExtractNewRecordState?);"
            " only envelopes are applied in this version",
            "take the transform out of the connector, or leave the table out of the config",
        )
    if connector is None:
        raise TableHalt(
            "connector-unknown",
            f"the first records of {topic} do not tell which connector wrote them",
            f"set source.connector to one of {', '.join(CONNECTORS)}",
        )
    return Look(connector, key, has_schema, only_truncates=not key and operations == {"t"})


def connector_of(records: Sequence[Record]) -> str | None:
    """The `source.connector` of the first record that has one."""
    for record in records:
        value, _ = _payload(record.value)
        if isinstance(value, dict) and isinstance(value.get("source"), dict):
            found = value["source"].get("connector")
            if isinstance(found, str):
                return found
    return None


def _payload(data: bytes | None) -> tuple[Any, bool]:
    """The JSON payload and whether a Connect schema lies beside it; None for what is no JSON."""
    if data is None:
        return None, False
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None, False
    if isinstance(value, dict) and set(value) == {"schema", "payload"}:
        schema = value["schema"]
        if schema is None or (isinstance(schema, dict) and "type" in schema):
            return value["payload"], schema is not None
    return value, False


def _key_fields(data: bytes | None) -> tuple[str, ...]:
    payload, _ = _payload(data)
    return tuple(payload) if isinstance(payload, dict) else ()
