"""A record of a table's topic as the rules see it: an operation on a key, with its place in the source's log.

Written from the rules alone, so that it can serve as a reference: plain Python, one record at a time, without regard
for speed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tests.support.recorded import Record

Json = Any
OPERATIONS = frozenset("curdtm")
TOMBSTONE = "x"


@dataclass(frozen=True)
class Position:
    """A position in the source's log: `level` orders transactions (None: not known), `sub_position` changes of one."""

    level: tuple[int | str, ...] | None
    sub_position: tuple[int | str, ...]


@dataclass(frozen=True)
class Event:
    """One record. `op` is Debezium's letter, or `x` for a tombstone; `key` is the key's JSON in one spelling.

    `change` is the same for a record and for the same record sent again, and for both halves of a key change; no other
    records share it. None if the record has no identity. `old_key` and `new_key` are the keys of key-change headers.
    """

    record: Record
    op: str
    key: str | None
    position: Position | None = None
    transaction: str | None = None
    change: str | None = None
    connector: str = ""
    old_key: str | None = None
    new_key: str | None = None
    before: Mapping[str, Json] | None = None
    after: Mapping[str, Json] | None = None
    row_schema: list[Json] | None = field(default=None, compare=False)

    @property
    def identity(self) -> str | None:
        """Equal for two records of a key if and only if one is a repetition of the other."""
        return None if self.change is None else self.op + self.change


def read(record: Record, connector: str | None = None) -> Event:
    """The event of a record. `connector` is needed if the records themselves do not name it (unwrapped ones).

    Raises ValueError for a change event that is not one.
    """
    key = canonical(record.key)
    headers = {name: canonical(value) for name, value in record.headers if name.startswith("__debezium.")}
    old_key, new_key = headers.get("__debezium.oldkey"), headers.get("__debezium.newkey")
    bare = Event(record, TOMBSTONE, key, old_key=old_key, new_key=new_key)
    schema, document = _payload(record.value)
    if document is None:
        return bare
    if not isinstance(document, dict):
        raise ValueError(f"{record.topic}-{record.partition}@{record.offset} is not a change event")
    if "source" not in document or "op" not in document:
        return _unwrapped(bare, schema, document, connector)
    source, op = document["source"], document["op"]
    if op not in OPERATIONS:
        raise ValueError(f"{record.topic}-{record.partition}@{record.offset} has the operation {op!r}")
    name = source["connector"]
    return replace(
        bare,
        op=op,
        position=position(name, source),
        transaction=_transaction(name, source),
        change=_change(name, op, source),
        connector=name,
        before=document.get("before"),
        after=document.get("after"),
        row_schema=_row_schema(schema),
    )


@lru_cache(maxsize=10_000)
def canonical(raw: bytes | None) -> str | None:
    """A key as JSON in one spelling, without its schema. The same few keys are read again and again."""
    if raw is None:
        return None
    try:
        _, document = _payload(raw)
    except ValueError:
        return raw.decode(errors="replace")
    return None if document is None else json.dumps(document, sort_keys=True)


def _unwrapped(bare: Event, schema: Json, document: dict[str, Json], connector: str | None) -> Event:
    """A row as ExtractNewRecordState leaves it; the fields that it added begin with two underscores."""
    added = {name.removeprefix("__"): value for name, value in document.items() if name.startswith("__")}
    source = {name.removeprefix("source_"): value for name, value in added.items()}
    row = {name: value for name, value in document.items() if not name.startswith("__")}
    op = added.get("op") or ("d" if added.get("deleted") == "true" else "u")
    name = connector or _guess(source)
    place = position(name, source) if name else None
    change = None if place is None else json.dumps([place.sub_position, place.level if name != "postgresql" else ""])
    fields = None if schema is None else [part for part in schema["fields"] if part["field"] in row]
    after = None if op == "d" else row
    transaction = None if not name else _transaction(name, source)
    return replace(
        bare,
        op=op,
        position=place,
        transaction=transaction,
        change=change,
        connector=name or "",
        after=after,
        row_schema=fields,
    )


def _guess(source: Mapping[str, Json]) -> str | None:
    for field_name, connector in (
        *(("event_serial_no", "sqlserver"), ("change_lsn", "db2"), ("sequence", "postgresql")),
        *(("lsn", "postgresql"), ("file", "mysql"), ("scn", "oracle")),
    ):
        if field_name in source:
            return connector
    return None


def _payload(raw: bytes | None) -> tuple[Json, Json]:
    """The schema beside a value (None where there is none), and the value."""
    document = None if raw is None else json.loads(raw)
    if isinstance(document, dict) and document.keys() == {"schema", "payload"} and _is_schema(document["schema"]):
        return document["schema"], document["payload"]
    return None, document


def _is_schema(document: Json) -> bool:
    return document is None or (isinstance(document, dict) and "type" in document)


def _row_schema(schema: Json) -> list[Json] | None:
    if schema is None:
        return None
    after: list[Json] = next(part for part in schema["fields"] if part["field"] == "after")["fields"]
    return after


def position(connector: str, source: Mapping[str, Json]) -> Position | None:
    """The position in a source block; None if it has none."""
    if connector == "postgresql":
        level, sub_position = json.loads(source["sequence"]) if source.get("sequence") else (None, source.get("lsn"))
        if sub_position is None:
            return None
        return Position(None if level is None else (int(level),), (int(sub_position),))
    if connector in ("mysql", "mariadb"):
        if source.get("file") is None:
            return None
        number = int(re.sub(r"\D", "", source["file"].rpartition(".")[2]) or 0)
        return Position((number, int(source["pos"])), (int(source.get("row") or 0),))
    if connector in ("sqlserver", "db2"):
        # The text of a null sorts lowest, and so does a missing serial number.
        sub_position = (source.get("change_lsn") or "", int(source.get("event_serial_no") or 0))
        if "commit_lsn" not in source:
            return None
        return Position(
            (source.get("commit_lsn") or "",), sub_position if connector == "sqlserver" else sub_position[:1]
        )
    if connector == "oracle":
        if source.get("scn") is None:
            return None
        # A snapshot's rows have no commit: they hold what was committed when they were read. Changes may share both
        # numbers; then the place of their redo records tells.
        redo = (str(source.get("rs_id") or "").strip(), int(source.get("ssn") or 0))
        return Position((int(source.get("commit_scn") or source["scn"]),), (int(source["scn"]), *redo))
    raise ValueError(f"the order of {connector} is not known here")


def _transaction(connector: str, source: Mapping[str, Json]) -> str | None:
    names = {"postgresql": "txId", "mysql": "gtid", "mariadb": "gtid", "oracle": "txId"}
    name = names.get(connector, "commit_lsn")
    return None if source.get(name) is None else str(source[name])


def _change(connector: str, op: str, source: Mapping[str, Json]) -> str:
    """The whole source block, but for what a restarted PostgreSQL connector can't know of a change sent before."""
    block = dict(source)
    if connector == "postgresql" and op != "r" and block.get("sequence"):
        block["sequence"] = json.loads(block["sequence"])[1]
    return json.dumps(block, sort_keys=True)
