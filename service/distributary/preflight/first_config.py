"""Writes a first config from the topics of a Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from distributary.config import Config
from distributary.config.load import load
from distributary.consume.kafka_client import KafkaClient
from distributary.errors import ConfigError, UsageError
from distributary.halt_actions import with_names
from distributary.preflight.config_text import ConfigChoices, DiscoveredTopics, config_text, secret_variables
from distributary.preflight.plan import plan
from distributary.preflight.prefixes import prefixes
from distributary.preflight.table_plan import HALT, TablePlan


@dataclass(frozen=True)
class FirstConfig:
    """A config that was written. `secrets`: environment variables that have to be set; `halting`: names of tables that
    need a decision; `by_value`: names of tables with types that were inferred from values."""

    file: Path
    topic_prefix: str
    connector: str | None
    tables: tuple[str, ...]
    secrets: tuple[str, ...]
    halting: tuple[str, ...]
    by_value: tuple[str, ...]


def write_first_config(choices: ConfigChoices, topic_prefix: str | None, file: Path, *, force: bool) -> FirstConfig:
    """Writes the config for the tables of one prefix.

    Raises UsageError if the file exists (unless `force`), if the prefix is not clear or if a choice can't be in a
    config; TransientError if Kafka does not answer.
    """
    if file.exists() and not force:
        raise UsageError("file-exists", f"{file} exists already", "choose another file, or --force to replace it")
    # For this process only: the config refers to these variables, and they are needed to log in to Kafka.
    os.environ.update(secret_variables(choices.kafka))
    config = _load_config(choices, DiscoveredTopics(topic_prefix or "unknown"), file)
    prefix = topic_prefix or _only(prefixes(KafkaClient(config.kafka_properties())))
    discovered = _discover(choices, prefix, file)
    text = with_names(config_text(choices, discovered), config_file=str(file))
    _load_config(choices, discovered, file)  # write a valid config or none
    file.write_text(text, encoding="utf-8")
    after = plan(load(file))
    return FirstConfig(
        file=file,
        topic_prefix=prefix,
        connector=discovered.connector,
        tables=tuple(table.table for table in after.tables),
        secrets=tuple(sorted(secret_variables(choices.kafka))),
        halting=tuple(table.table for table in after.tables if table.action == HALT),
        by_value=tuple(table.table for table in discovered.tables if table.by_value),
    )


def _only(prefixes_found: list[str]) -> str:
    if not prefixes_found:
        raise UsageError(
            "no-prefix",
            "no topic that this user may read has Debezium change events in JSON",
            "check the address; if the topics are empty, give --topic-prefix; for Avro write the config by hand"
            " (docs/avro.md)",
        )
    if len(prefixes_found) > 1:
        raise UsageError(
            "several-prefixes",
            f"there are topics of {len(prefixes_found)} connectors: {', '.join(prefixes_found)}",
            "choose one with --topic-prefix; each needs its own config",
        )
    return prefixes_found[0]


def _discover(choices: ConfigChoices, prefix: str, file: Path) -> DiscoveredTopics:
    """The discovered topics. If tables of several databases share a name, they are planned again with the database in
    their path."""
    first = plan(_load_config(choices, DiscoveredTopics(prefix), file)).tables
    by_database = any(_halts_with(table, "two-topics-one-table") for table in first)
    tables = (
        plan(_load_config(choices, DiscoveredTopics(prefix, None, (), by_database), file)).tables
        if by_database
        else first
    )
    return DiscoveredTopics(prefix, _connector(tables), tables, by_database)


def _halts_with(table: TablePlan, halt: str) -> bool:
    return table.error is not None and table.error["code"] == halt


def _connector(tables: Iterable[TablePlan]) -> str | None:
    named = {table.connector for table in tables if table.connector is not None}
    return named.pop() if len(named) == 1 else None


def _load_config(choices: ConfigChoices, discovered: DiscoveredTopics, file: Path) -> Config:
    """Loads the text as a config. It is read from a file beside the final one, because paths are relative to it."""
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(config_text(choices, discovered), encoding="utf-8")
        return load(beside)
    except ConfigError as error:
        fault = error.faults[0]
        raise UsageError(fault.code, fault.message, fault.fix) from error
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{file} can't be written: {error.strerror}", "choose another path"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
