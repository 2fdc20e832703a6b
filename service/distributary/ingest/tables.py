"""The tables of a config, found from Kafka's topics: their settings, names and paths."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from distributary.config import Config
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.topics import (
    DELTA_LOG,
    RESERVED_FOLDERS,
    TableId,
    has_database_part,
    is_signal_table,
    table_of,
)
from distributary.decode.unwrapped import added_by
from distributary.errors import DistributaryError, UsageError
from distributary.ingest.json_records import as_json
from distributary.ingest.registry import Registry, registry_of
from distributary.ingest.topic_format import connector_of
from distributary.logs import get_logger

_SAMPLED_RECORDS = 20  # records per partition
_log = get_logger(__name__)


@dataclass(frozen=True)
class ConfiguredTable:
    """A table of the config: its topic, settings and path. `is_called`: its name where that is another one than
    `schema.table` (see name_of)."""

    table: TableId
    topic: str
    settings: TableSettings
    path: str
    is_called: str | None = None

    @property
    def name(self) -> str:
        """Its name in logs and status."""
        return self.is_called or str(self.table)


def list_tables(config: Config, kafka: KafkaClient) -> list[ConfiguredTable]:
    """The config's tables that have a topic, by name. If only a topic's records show its table, a topic without records
    is left out, and one that can't be read is left out with a warning."""
    configured = []
    registry = registry_of(config.source)
    for topic in kafka.names():
        prefix = config.source.topic_prefix
        connector: str | None = config.source.connector
        if connector is None and has_database_part(topic, prefix):
            try:
                connector = connector_of_topic(topic, config, kafka, registry)
            except DistributaryError as fault:
                _log.warning(
                    "a topic is left out, as it can't be read",
                    topic=topic,
                    code=fault.code,
                    reason=fault.message,
                    fix="set source.connector in the config, or: " + fault.fix,
                )
                continue
            if connector is None:
                continue
        table = table_of(topic, prefix, connector)
        settings = settings_of(table, config)
        if table is not None and settings is not None:
            configured.append(ConfiguredTable(table, topic, settings, lake_path(config, table), name_of(config, table)))
    return sorted(configured, key=lambda one: (one.name, one.topic))


def find_table(name: str, tables: list[ConfiguredTable]) -> ConfiguredTable:
    """The table with that name. Raises UsageError if there is none, or one in several databases."""
    same = [table for table in tables if name in (table.name, str(table.table), table.table.in_full)]
    if not same:
        raise UsageError(
            "unknown-table",
            f"{name} is no table of this config, or has no topic",
            "write it as <schema>.<table>, as its topic spells it"
            + did_you_mean(name, tables)
            + "; `distributary status` lists the tables",
        )
    if len(same) > 1:
        full = ", ".join(table.table.in_full for table in same)
        raise UsageError("ambiguous-table", f"{name} is a table of several databases", f"write one of {full}")
    return same[0]


def did_you_mean(name: str, tables: list[ConfiguredTable]) -> str:
    """The names of tables that are almost that name, for the end of a sentence; empty if there are none."""
    names = {one.name.lower(): one.name for one in tables}  # topics' names differ in case from what people write
    close_names = get_close_matches(name.lower(), names, n=3)
    return f" (did you mean {' or '.join(names[one] for one in close_names)}?)" if close_names else ""


def name_of(config: Config, table: TableId) -> str:
    """The table's name in logs, status and metrics: `schema.table`; with the database in front if the config has tables
    of several databases."""
    return table.in_full if "{database}" in config.target.table else str(table)


def settings_of(table: TableId | None, config: Config) -> TableSettings | None:
    """The table's settings; None if it is no table of the config."""
    if table is None or is_signal_table(table, config.source.signal_table) or is_reserved(table, config):
        return None
    return config.settings_for(table.schema, table.table)


def is_reserved(table: TableId, config: Config) -> bool:
    """Whether the table would lie in a folder of the service's own, or in one that makes its parent a Delta table; case
    does not count, as in some file systems."""
    parts = [part.lower() for part in _parts(config, table)]
    return parts[0] in RESERVED_FOLDERS or DELTA_LOG in parts


def connector_of_topic(topic: str, config: Config, kafka: KafkaClient, registry: Registry | None) -> str | None:
    """The connector that a topic's first records name; None if none does. `registry` has the schemas of Avro
    records."""
    kafka_topic = kafka.topics([topic]).get(topic)
    if kafka_topic is None:
        return None
    added = added_by(config.source.connector_properties)
    records = kafka.records(kafka_topic, kafka.earliest(kafka_topic), _SAMPLED_RECORDS)
    return connector_of([as_json(record, registry) for record in records], added)


def lake_path(config: Config, table: TableId) -> str:
    """Where the table lies."""
    return "/".join([config.root(), *_parts(config, table)])


def catalog_name(config: Config, table: TableId) -> tuple[str, ...] | None:
    """The table's name in the catalog: catalog, schema, table; None without a catalog. In catalogs such as Hive's, a
    schema has one name without parts: the text before the last slash of target.table."""
    if config.target.catalog is None:
        return None
    *schema, name = _parts(config, table)
    return config.target.catalog, "_".join(schema) or "default", name


def _parts(config: Config, table: TableId) -> list[str]:
    place = config.target.table.format(schema=table.schema, table=table.table, database=table.database or "")
    return [part for part in place.split("/") if part]


def maintenance_path(config: Config, table: TableId) -> str:
    """The file with the record of the table's maintenance (see maintain/schedule.py)."""
    return own_path(config, "maintenance", *(p for p in (table.database, table.schema) if p), f"{table.table}.json")


def own_path(config: Config, *parts: str) -> str:
    """A place of the service's own beside the tables."""
    return "/".join([config.root(), "_distributary", *parts])
