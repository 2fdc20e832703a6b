"""A recorded scenario: the records as they were in Kafka, and the source's tables as they were at the end.

Everything comes from `tests/events/<scenario>`; the README there describes each file.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).resolve().parents[1] / "events"
IDS_BEYOND_TIMESTAMPS = ("15", "22", "1015", "1022")
"""Rows of the recorded table `special` with a timestamp that the lake's type can't hold."""


@dataclass(frozen=True)
class Record:
    """One Kafka record as it was recorded. `timestamp` is in milliseconds; None stands for null bytes."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Column:
    """A source column: its name, the database's own name of its type, and whether the primary key has it."""

    name: str
    type: str
    in_key: bool


@dataclass(frozen=True)
class TruthTable:
    """A source table at the end of the recording: each row has every column, as text or None."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, str | None], ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the primary key's columns; empty when the table has none."""
        return tuple(column.name for column in self.columns if column.in_key)

    def without(self, columns: Iterable[str]) -> TruthTable:
        """The table as it is to be when these columns are excluded."""
        return replace(self, columns=tuple(column for column in self.columns if column.name not in set(columns)))

    @property
    def topic_name(self) -> str:
        """The table's name as its topic spells it: Debezium replaces what a topic can't hold."""
        return _sanitised(self.name)

    @property
    def topic_schema(self) -> str:
        """The schema's name as the topic spells it."""
        return _sanitised(self.schema)


@dataclass(frozen=True)
class Scenario:
    """One folder of `tests/events`, under its own name or under another, so that a playback can have it twice.

    Raises FileNotFoundError where there is no such folder.
    """

    name: str
    folder_name: str = ""

    @property
    def recording(self) -> str:
        """The folder's name."""
        return self.folder_name or self.name

    @property
    def folder(self) -> Path:
        return EVENTS / self.recording

    @cached_property
    def connector(self) -> dict[str, Any]:
        """The connector's configuration, under its own names."""
        settings: dict[str, Any] = json.loads((self.folder / "connector.json").read_text(encoding="utf-8"))
        return settings

    @property
    def prefix(self) -> str:
        """The recorded `topic.prefix`."""
        return str(self.connector["topic.prefix"])

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Every record, in the order of topic, partition and offset."""
        with gzip.open(self.folder / "events.jsonl.gz", "rt", encoding="utf-8") as lines:
            return tuple(_record(json.loads(line)) for line in lines)

    @cached_property
    def partitions(self) -> dict[str, int]:
        """How many partitions each topic had. A partition without any record counts if a later one has records."""
        count: dict[str, int] = {}
        for record in self.records:
            count[record.topic] = max(count.get(record.topic, 0), record.partition + 1)
        widest = int(self.connector.get("topic.creation.default.partitions", 1))
        return {topic: max(partitions, widest) for topic, partitions in count.items()}

    def topic(self, schema: str, table: str) -> tuple[Record, ...]:
        """The records of one table's topic; empty where the table never had an event."""
        name = f"{self.prefix}.{_sanitised(schema)}.{_sanitised(table)}"
        return tuple(record for record in self.records if record.topic == name)

    @cached_property
    def tables(self) -> dict[str, TruthTable]:
        """The source's tables by name, each with its rows at the end."""
        return {table.name: table for table in self._read_tables()}

    def _read_tables(self) -> Iterator[TruthTable]:
        for columns_file in sorted((self.folder / "truth").glob("*.columns.json")):
            full_name = columns_file.name.removesuffix(".columns.json")
            schema, _, name = full_name.partition(".")
            columns = tuple(Column(*column) for column in json.loads(columns_file.read_text(encoding="utf-8")))
            with gzip.open(columns_file.with_name(f"{full_name}.jsonl.gz"), "rt", encoding="utf-8") as lines:
                rows = tuple(json.loads(line) for line in lines)
            yield TruthTable(schema, name, columns, rows)


def _record(line: dict[str, Any]) -> Record:
    headers = tuple((name, _bytes(value)) for name, value in line["headers"] or ())
    return Record(
        line["topic"],
        line["partition"],
        line["offset"],
        line["timestamp"],
        _bytes(line["key"]),
        _bytes(line["value"]),
        headers,
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _sanitised(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
