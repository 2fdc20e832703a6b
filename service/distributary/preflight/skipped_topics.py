"""Topics that begin with the prefix and do not become tables, each with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from distributary.config import Config
from distributary.consume.topics import has_database_part, is_signal_table, table_of
from distributary.ingest.tables import is_reserved, settings_of


@dataclass(frozen=True)
class PassedOver:
    """A topic that is left alone: why, as a stable code and in words."""

    topic: str
    code: str
    reason: str

    def as_json(self) -> dict[str, str]:
        """The same with JSON's types only."""
        return asdict(self)


def passed_over(config: Config, names: Iterable[str], tables: Collection[str]) -> list[PassedOver]:
    """What the topics are that are none of the `tables`; topics that have nothing to do with the prefix are no news."""
    prefix = config.source.topic_prefix
    heartbeat = f"__debezium-heartbeat.{prefix}"
    return [
        _of(name, config)
        for name in sorted(names)
        if name not in tables and (name in (prefix, heartbeat) or name.startswith(prefix + "."))
    ]


def _of(name: str, config: Config) -> PassedOver:
    prefix = config.source.topic_prefix
    of_debezium = {
        prefix: "the connector's schema changes",
        f"{prefix}.transaction": "the connector's transactions; the service reads them beside the tables",
        f"__debezium-heartbeat.{prefix}": "the connector's heartbeats",
        f"{prefix}.message": "the source's logical messages",
    }
    if name in of_debezium:
        return PassedOver(name, "of-debezium", of_debezium[name])
    if config.source.connector is None and has_database_part(name, prefix):
        matched = [table_of(name, prefix, connector) for connector in ("sqlserver", None)]
        if any(settings_of(table, config) is not None for table in matched):
            return PassedOver(
                name,
                "connector-unknown",
                "no record tells yet whether a database is part of the name: set source.connector",
            )
    table = table_of(name, prefix, config.source.connector)
    if table is None:
        return PassedOver(name, "no-table-name", "the name is not <prefix>.<schema>.<table>")
    if is_signal_table(table, config.source.signal_table):
        return PassedOver(name, "signal-table", "the table through which the connector gets signals")
    if is_reserved(table, config):
        return PassedOver(name, "reserved-name", "the table would lie in a folder that the service reserves")
    return PassedOver(name, "no-entry", f"no entry of `tables` matches {table}")
