"""Parses the records of the transaction topic, which Debezium writes with `provide.transaction.metadata`.

For each transaction a BEGIN, and after its last change an END, which counts the changes of each table
(`data_collections`): deletes and both halves of a key change, truncates where the connector sends them, no tombstones,
nothing of a snapshot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOPIC_PROPERTY = "topic.transaction"
# PostgreSQL's connector puts the place of the single event behind the transaction's number: it differs from one event
# of a transaction to the next, in BEGIN and END as well.
_POSTGRESQL_ID = re.compile(r"(\d+):\d+")
_TOPICS_WITH_WHOLE_NAMES = ("postgresql", "mysql", "mariadb")
"""Connectors that name a table the same in END records and in topics. The others put the database before the schema in
END records. SQL Server's topics have it where the connector reads several; of an unknown connector both are
possible."""
_TOPICS_WITHOUT_DATABASE = ("db2", "oracle")
_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class Begin:
    """A transaction begins; all its changes are sent after this. `ts_ms` is its commit time, None if the connector does
    not send it."""

    id: str
    ts_ms: int | None


@dataclass(frozen=True)
class End:
    """The end of a transaction. `ts_ms` is its commit time, None if the connector does not send it; `counts` maps the
    source's name of each table to how many changes of it were sent."""

    id: str
    ts_ms: int | None
    counts: Mapping[str, int]


def transaction_topic(topic_prefix: str, properties: Mapping[str, str]) -> str:
    """The topic's name; `properties` are the connector's settings."""
    return f"{topic_prefix}.{properties.get(_TOPIC_PROPERTY, 'transaction')}"


def transaction_id(text: str) -> str:
    """The id that all records of a transaction share, made from the id in one of them."""
    match = _POSTGRESQL_ID.fullmatch(text)
    return match.group(1) if match else text


def boundary(value: bytes | None) -> Begin | End | None:
    """The BEGIN or END in a record's value, with or without a schema beside it; None for any other value."""
    try:
        record: Any = json.loads(value or b"null")
    except (ValueError, RecursionError):
        return None
    if isinstance(record, dict) and "payload" in record:
        record = record["payload"]
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        return None
    id_ = transaction_id(record["id"])
    try:
        ts_ms = None if record.get("ts_ms") is None else int(record["ts_ms"])
        if record.get("status") == "BEGIN":
            return Begin(id_, ts_ms)
        if record.get("status") != "END":
            return None
        counts = {str(c["data_collection"]): int(c["event_count"]) for c in record.get("data_collections") or ()}
    except (KeyError, TypeError, ValueError):
        return None
    return End(id_, ts_ms, counts)


def possible_topics(collection: str, topic_prefix: str, connector: str | None) -> tuple[str, ...]:
    """The topics that a table's changes may be in, by the name that an END record has for it, the likeliest first."""
    whole = _NOT_IN_TOPICS.sub("_", collection)
    _, dot, rest = whole.partition(".")
    shorter = (f"{topic_prefix}.{rest}",) if dot and "." in rest else ()
    if connector in _TOPICS_WITH_WHOLE_NAMES:
        return (f"{topic_prefix}.{whole}",)
    if connector in _TOPICS_WITHOUT_DATABASE and shorter:
        return shorter
    return (f"{topic_prefix}.{whole}", *shorter)
