"""The types of the source's columns from the connector's schema-change topic, for records without schema."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.sample import SampledRecord
from distributary.consume.schema_changes import SourceTable, changed_tables
from distributary.consume.transactions import possible_topics
from distributary.errors import TransientError
from distributary.ingest.tables import own_path
from distributary.logs import get_logger
from distributary.storage.lake_files import note_at
from distributary.types.announced_types import CONNECTORS_WITH_SCHEMA_TOPIC, SourceColumn, type_of

AnnouncedTypes = Callable[[str], Mapping[str, str]]
"""Gives the column types of a topic that the connector announces outside of its records, see SourceTypes.of."""

_CHUNK = 1_000  # records of each partition
_log = get_logger(__name__)


class _SourceColumns(BaseModel):
    """A table's columns: name to type, length and scale, in the database's own words."""

    connector: str
    columns: dict[str, tuple[str, int | None, int | None]] = Field(default_factory=dict)


class _Known(BaseModel):
    """The tables that were read from the topic with this id, up to the offsets `next`, by the topics with their
    changes."""

    topic_id: str = ""
    next: dict[int, int] = Field(default_factory=dict)
    tables: dict[str, _SourceColumns] = Field(default_factory=dict)


def source_types_path(config: Config) -> str:
    """The file with the types that were read: Kafka may remove the topic's records, and the tables still need them."""
    return own_path(config, "source-types", f"{config.source.topic_prefix}.json")


def announced_source_types(config: Config, kafka: KafkaClient) -> SourceTypes:
    """For commands: they read the types that the service saved, and save none."""

    def saved() -> Any:
        saved_json = note_at(source_types_path(config))
        return None if saved_json is None else json.loads(saved_json)

    return SourceTypes(config, kafka, saved)


class SourceTypes:
    """`saved` returns the JSON that `save` stored before, or None.

    All tables of a config share one object; it may be used by several threads.
    """

    def __init__(
        self,
        config: Config,
        kafka: KafkaClient,
        saved: Callable[[], Any],
        save: Callable[[Any], None] = lambda _value: None,
    ) -> None:
        self._kafka = kafka
        self._prefix = config.source.topic_prefix
        self._connector = config.source.connector
        self._properties = config.source.connector_properties
        self._saved = saved
        self._save = save
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def of(self, topic: str) -> Mapping[str, str]:
        """The types of the columns of that topic's table, named as `columns` in the config names types; empty if the
        connector does not announce them. Raises TransientError if Kafka does not answer."""
        if self._connector is not None and self._connector not in CONNECTORS_WITH_SCHEMA_TOPIC:
            return {}
        with self._lock:
            announced = self._read().tables.get(topic)
        if announced is None:
            return {}
        types = {
            name: type_of(announced.connector, SourceColumn(name, *column), self._properties)
            for name, column in announced.columns.items()
        }
        return {name: kind for name, kind in types.items() if kind is not None}

    def _read(self) -> _Known:
        """The known tables, including the newest records of the topic."""
        known = self._known or _parse_saved(self._saved())
        topic = self._topic()
        if topic is None:
            self._known = known
            return known
        if known.topic_id != topic.topic_id:
            known = known.model_copy(update={"topic_id": topic.topic_id, "next": {}})
        after = self._caught_up(known.model_copy(deep=True), topic)
        if after != self._known and after.tables:
            self._save(after.model_dump(mode="json"))
        self._known = after
        return after

    def _topic(self) -> Topic | None:
        try:
            return self._kafka.topics([self._prefix]).get(self._prefix)
        except TransientError as error:
            if error.code != "kafka-not-allowed":
                raise
            _log.debug("the schema-change topic may not be read", topic=self._prefix)
            return None

    def _caught_up(self, known: _Known, topic: Topic) -> _Known:
        first = self._kafka.earliest(topic)
        while True:
            start = {p: max(known.next.get(p, 0), offset) for p, offset in first.items()}
            records = self._kafka.records(topic, start, _CHUNK)
            changed = [changed_tables(record.value) for record in records]
            if records and not known.tables and not any(columns is not None for columns in changed):
                # The topic has another use: a topic of many records that are no schema changes is not read to its end.
                _log.debug("the topic named like the prefix has no schema changes", topic=topic.name)
                known.next = dict(self._kafka.latest(topic))
                return known
            for tables in changed:
                for table in tables or ():
                    self._learn(known, table)
            known.next = {**start, **_behind(records)}
            if not records:
                return known

    def _learn(self, known: _Known, table: SourceTable) -> None:
        """Columns that the table had before stay known: older records have them."""
        columns = {column.name: (column.type, column.length, column.scale) for column in table.columns}
        for topic in possible_topics(table.name, self._prefix, table.connector):
            before = known.tables.get(topic)
            known.tables[topic] = _SourceColumns(
                connector=table.connector, columns={**(before.columns if before else {}), **columns}
            )


def _parse_saved(saved: Any) -> _Known:
    try:
        return _Known() if saved is None else _Known.model_validate(saved)
    except ValidationError:
        return _Known()


def _behind(records: list[SampledRecord]) -> dict[int, int]:
    """The offset behind the last record of each partition."""
    return {record.partition: record.offset + 1 for record in sorted(records, key=lambda record: record.offset)}
