"""A first config, made by looking at the topics of a Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from distributary.config import Config
from distributary.config.load import load
from distributary.consume.broker import Broker
from distributary.errors import ConfigError, UsageError
from distributary.preflight.config_text import Found, Wishes, config_text, kept_outside
from distributary.preflight.plan import plan
from distributary.preflight.prefixes import prefixes
from distributary.preflight.table_plan import HALT, TablePlan


@dataclass(frozen=True)
class FirstConfig:
    """What was written where. `secrets` are the variables that have to be set; `halting` the tables that need a
    decision, `by_value` those with columns of which values alone show the types, by name."""

    file: Path
    topic_prefix: str
    connector: str | None
    tables: tuple[str, ...]
    secrets: tuple[str, ...]
    halting: tuple[str, ...]
    by_value: tuple[str, ...]


def write_first_config(wishes: Wishes, topic_prefix: str | None, file: Path, *, force: bool) -> FirstConfig:
    """Writes the config for the tables of one prefix.

    Raises UsageError where there is such a file already (unless `force`), where the prefix is not clear, where what is
    wished for can't stand in a config; TransientError where Kafka does not answer.
    """
    if file.exists() and not force:
        raise UsageError("file-exists", f"{file} is there already", "choose another file, or --force to replace it")
    # For this process alone: what the file only names must be known to look at Kafka.
    os.environ.update(kept_outside(wishes.kafka))
    config = _as_config(wishes, Found(topic_prefix or "unknown"), file)
    prefix = topic_prefix or _only(prefixes(Broker(config.kafka_properties())))
    found = _look(wishes, prefix, file)
    text = config_text(wishes, found)
    _as_config(wishes, found, file)  # what is written is right, or is not written
    file.write_text(text, encoding="utf-8")
    after = plan(load(file))
    return FirstConfig(
        file=file,
        topic_prefix=prefix,
        connector=found.connector,
        tables=tuple(table.table for table in after.tables),
        secrets=tuple(sorted(kept_outside(wishes.kafka))),
        halting=tuple(table.table for table in after.tables if table.action == HALT),
        by_value=tuple(table.table for table in found.tables if table.by_value),
    )


def _only(found: list[str]) -> str:
    if not found:
        raise UsageError(
            "no-prefix",
            "no topic holds Debezium's change events in JSON that this user may read",
            "check the address, and give --topic-prefix where the topics are empty; with Avro write the config by hand,"
            " docs/avro.md says how",
        )
    if len(found) > 1:
        raise UsageError(
            "several-prefixes",
            f"there are topics of {len(found)} connectors: {', '.join(found)}",
            "choose one with --topic-prefix; each gets a config of its own",
        )
    return found[0]


def _look(wishes: Wishes, prefix: str, file: Path) -> Found:
    """What the topics say, after what would halt tables and can be told apart in the config has been."""
    first = plan(_as_config(wishes, Found(prefix), file)).tables
    by_database = any(_would(table, "two-topics-one-table") for table in first)
    tables = plan(_as_config(wishes, Found(prefix, None, (), by_database), file)).tables if by_database else first
    return Found(prefix, _connector(tables), tables, by_database)


def _would(table: TablePlan, halt: str) -> bool:
    return table.error is not None and table.error["code"] == halt


def _connector(tables: Iterable[TablePlan]) -> str | None:
    named = {table.connector for table in tables if table.connector is not None}
    return named.pop() if len(named) == 1 else None


def _as_config(wishes: Wishes, found: Found, file: Path) -> Config:
    """The config that the text stands for. It is read from a file beside its place, for paths start there."""
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(config_text(wishes, found), encoding="utf-8")
        return load(beside)
    except ConfigError as error:
        fault = error.faults[0]
        raise UsageError(fault.code, fault.message, fault.fix) from error
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{file} can't be written: {error.strerror}", "choose another place"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
