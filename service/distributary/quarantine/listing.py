"""Reads the quarantine table without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from distributary.config import Config
from distributary.errors import SetupError, UsageError
from distributary.quarantine.coordinates import RecordCoordinates
from distributary.quarantine.set_aside import NEVER_REPLAYED
from distributary.storage.lake_files import plain

_PYTHON_TIMES = tuple(datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1, 9999))
_COORDINATES = '"topic", "partition", "offset"'
_COLUMNS = f'"table", {_COORDINATES}, "reason", "message", "key", "quarantined_at", "replayed_at"'


@dataclass(frozen=True)
class BadRecord:
    """A record in quarantine. `timestamp`, `value` and `headers` are read by find_record() alone."""

    table: str
    topic: str
    partition: int
    offset: int
    reason: str
    message: str
    key: bytes | None
    quarantined_at: datetime
    replayed_at: datetime | None
    timestamp: datetime | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def coordinates(self) -> RecordCoordinates:
        """Where the record is in Kafka."""
        return RecordCoordinates(self.topic, self.partition, self.offset)

    def as_json(self) -> dict[str, Any]:
        """The record in JSON's types: bytes as text if they are UTF-8, else as `0x` and hexadecimal digits."""
        record: dict[str, Any] = {"record": str(self.coordinates), **self.__dict__, "key": as_text(self.key)}
        for name in ("quarantined_at", "replayed_at", "timestamp"):
            at = record[name]
            record[name] = None if at is None else at.isoformat()
        record["value"] = as_text(self.value)
        record["headers"] = [{"key": name, "value": as_text(value)} for name, value in self.headers]
        return record


def as_text(data: bytes | None) -> str | None:
    """Bytes as text if they are UTF-8, else as `0x` and hexadecimal digits."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


_SCHEMA = re.compile(r'\s*\{\s*"schema"\s*:\s*')
_PAYLOAD = re.compile(r'\s*,\s*"payload"\s*:\s*')


def without_schema(data: bytes | None) -> str:
    """A key or value for people: of JsonConverter's `{"schema": …, "payload": …}` only the payload, as it stands
    there."""
    text = as_text(data) or ""
    decoder = json.JSONDecoder()
    try:
        if schema := _SCHEMA.match(text):
            _, end = decoder.raw_decode(text, schema.end())
            if payload := _PAYLOAD.match(text, end):
                _, end = decoder.raw_decode(text, payload.end())
                if text[end:].strip() == "}":
                    return text[payload.end() : end]
    except (ValueError, RecursionError):
        pass  # no JSON: shown as it stands
    return text


@dataclass(frozen=True)
class Summary:
    """Number of a table's records in quarantine with one reason: all, and those that were not applied since."""

    table: str
    reason: str
    records: int
    waiting: int


def summary(config: Config) -> list[Summary]:
    """The counts by table and reason. Raises SetupError if the quarantine table can't be read."""
    query = (
        'SELECT "table", "reason", count(*) AS "records",'
        ' sum(CASE WHEN "replayed_at" IS NULL THEN 1 ELSE 0 END) AS "waiting"'
        ' FROM q GROUP BY "table", "reason" ORDER BY "table", "reason"'
    )
    return [Summary(**row) for row in _rows(config, query)]


@dataclass(frozen=True)
class ReplayState:
    """Of a table's records in quarantine: when one was applied last, how many were applied after a given time, and how
    many a replay would try to apply."""

    last_applied: datetime | None
    applied_since: int
    waiting: int


def replay_state(config: Config, table: str, since: datetime | None = None) -> ReplayState:
    """The state; `since` None counts all that were ever applied. Records that are never replayed do not
    wait. Raises SetupError."""
    never = ", ".join(map(_text, NEVER_REPLAYED))
    after = "" if since is None else f" AND \"replayed_at\" > TIMESTAMP '{since.isoformat()}'"
    query = (
        'SELECT max("replayed_at") AS "last_applied",'
        f' coalesce(sum(CASE WHEN "replayed_at" IS NOT NULL{after} THEN 1 ELSE 0 END), 0) AS "applied_since",'
        f' coalesce(sum(CASE WHEN "replayed_at" IS NULL AND "reason" NOT IN ({never}) THEN 1 ELSE 0 END), 0)'
        f' AS "waiting" FROM q WHERE "table" = {_text(table)}'
    )
    return next((ReplayState(**row) for row in _rows(config, query)), ReplayState(None, 0, 0))


def newest_records(config: Config, table: str | None, limit: int, *, replayed: bool) -> list[BadRecord]:
    """The newest records of one table or of all; with `replayed` also those that were applied since. Raises
    SetupError."""
    conditions = [] if replayed else ['"replayed_at" IS NULL']
    if table is not None:
        conditions.append(f'"table" = {_text(table)}')
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = f'ORDER BY "quarantined_at" DESC, {_COORDINATES} LIMIT {limit}'
    return [_record(row) for row in _rows(config, f"SELECT {_COLUMNS} FROM q{where} {order}")]


def find_record(config: Config, at: RecordCoordinates) -> BadRecord:
    """One record with all its fields. If a recreated topic had several at that offset, the newest. Raises UsageError if
    there is none, SetupError."""
    where = f'"topic" = {_text(at.topic)} AND "partition" = {at.partition} AND "offset" = {at.offset}'
    columns = f'{_COLUMNS}, "timestamp", "value", "headers"'
    query = f'SELECT {columns} FROM q WHERE {where} ORDER BY "quarantined_at" DESC LIMIT 1'
    records = [_record(row) for row in _rows(config, query)]
    if not records:
        raise UsageError(
            "not-in-quarantine",
            f"{at} is not in quarantine",
            "`distributary quarantine list` shows the records in quarantine",
        )
    return records[0]


def _rows(config: Config, query: str) -> Iterator[dict[str, Any]]:
    path = config.quarantine_path()
    try:
        table = QueryBuilder().register("q", DeltaTable(plain(path))).execute(query).read_all()
    except TableNotFoundError:
        return
    except (DeltaError, OSError) as error:
        raise SetupError(
            "lake-unreadable",
            f"the quarantine table at {path} can't be read ({type(error).__name__})",
            "check that this machine may read it; keys of an object store are taken from the environment",
        ) from error
    yield from _with_python_times(pa.table(table)).to_pylist()


def _with_python_times(rows: pa.Table) -> pa.Table:
    """The rows with times that Python has: a record's may be of any year."""
    for number, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            first, last = (pa.scalar(time, column.type) for time in _PYTHON_TIMES)
            values = rows.column(number)
            values = pc.if_else(pc.greater(values, last), last, values)
            rows = rows.set_column(number, column, pc.if_else(pc.less(values, first), first, values))
    return rows


def _record(row: Mapping[str, Any]) -> BadRecord:
    headers = tuple((header["key"], header["value"]) for header in row.get("headers") or ())
    return BadRecord(**{**row, "headers": headers})


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
