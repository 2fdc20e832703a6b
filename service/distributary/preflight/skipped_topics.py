"""Topics with the prefix that do not become tables, each with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from distributary.config import Config
from distributary.consume.heartbeats import HEARTBEATS
from distributary.consume.topics import has_database_part, is_signal_table, table_of
from distributary.ingest.tables import is_reserved, settings_of


@dataclass(frozen=True)
class SkippedTopic:
    """A topic that becomes no table: why, as a stable code and in words."""

    topic: str
    code: str
    reason: str

    def as_json(self) -> dict[str, str]:
        """The topic in JSON's types."""
        return asdict(self)


def skipped_topics(config: Config, names: Iterable[str], tables: Collection[str]) -> list[SkippedTopic]:
    """The topics with the config's prefix that are not in `tables`, sorted. Topics of other prefixes are left out."""
    prefix = config.source.topic_prefix
    heartbeat = HEARTBEATS + prefix
    return [
        _of(name, config)
        for name in sorted(names)
        if name not in tables and (name in (prefix, heartbeat) or name.startswith(prefix + "."))
    ]


def _of(name: str, config: Config) -> SkippedTopic:
    prefix = config.source.topic_prefix
    of_debezium = {
        prefix: "the connector's schema changes",
        f"{prefix}.transaction": "the connector's transactions; the service reads them, but not as a table",
        HEARTBEATS + prefix: "the connector's heartbeats",
        f"{prefix}.message": "the source's logical messages",
    }
    if name in of_debezium:
        return SkippedTopic(name, "of-debezium", of_debezium[name])
    if config.source.connector is None and has_database_part(name, prefix):
        matched = [table_of(name, prefix, connector) for connector in ("sqlserver", None)]
        if any(settings_of(table, config) is not None for table in matched):
            return SkippedTopic(
                name,
                "connector-unknown",
                "no record shows yet whether the name contains a database: set source.connector",
            )
    table = table_of(name, prefix, config.source.connector)
    if table is None:
        return SkippedTopic(name, "no-table-name", "the name is not <prefix>.<schema>.<table>")
    if is_signal_table(table, config.source.signal_table):
        return SkippedTopic(name, "signal-table", "the connector's signal table")
    if is_reserved(table, config):
        return SkippedTopic(name, "reserved-name", "the table would be in a directory that the service reserves")
    return SkippedTopic(name, "no-entry", f"no entry of `tables` matches {table}")
