"""The text of a first config, with comments for the person who edits it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from distributary.config import secrets
from distributary.halt_actions import with_names
from distributary.preflight.columns_text import columns_text
from distributary.preflight.table_plan import TablePlan
from distributary.preflight.yaml_text import line, scalar

_REFERENCE = re.compile(r"\$\{(env|file):[^{}]*\}")
_BY_DATABASE = "{database}/{schema}/{table}"


@dataclass(frozen=True)
class ConfigChoices:
    """The user's choices: Kafka's client properties, the path of the tables and the path of the checkpoint."""

    kafka: Mapping[str, str]
    target: str
    checkpoint: str


@dataclass(frozen=True)
class DiscoveredTopics:
    """The findings from the topics: the prefix, the connector if all records agree on one, and the tables.

    `by_database`: tables of several databases share a name.
    """

    topic_prefix: str
    connector: str | None = None
    tables: Collection[TablePlan] = field(default_factory=tuple)
    by_database: bool = False


def secret_variables(properties: Mapping[str, str]) -> dict[str, str]:
    """The secrets among Kafka's properties, which are not written to the file: environment variable to value."""
    return {
        variable(name): value
        for name, value in properties.items()
        if secrets.is_inline(name, value) and not _REFERENCE.search(value)
    }


def variable(name: str) -> str:
    """The environment variable of a property: `KAFKA_SASL_PASSWORD` for `sasl.password`."""
    return "KAFKA_" + re.sub(r"[^A-Za-z0-9]+", "_", name).upper()


def config_text(choices: ConfigChoices, discovered: DiscoveredTopics) -> str:
    """The whole file."""
    parts = [
        _head(discovered),
        _kafka(choices.kafka),
        _places(choices, discovered),
        _defaults(discovered),
        _tables(discovered),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(discovered: DiscoveredTopics) -> Iterator[str]:
    yield f"# A first config, made from the topics with the prefix {discovered.topic_prefix}. Review it, then:"
    yield "#   distributary plan -c FILE      what run would do, and which settings of the source lose data"
    yield "#   distributary doctor -c FILE    whether it would start on this machine"
    yield "#   distributary run -c FILE"
    yield "# `distributary schema` prints all settings."
    yield "version: 1"
    yield ""


def _kafka(properties: Mapping[str, str]) -> Iterator[str]:
    outside = secret_variables(properties)
    yield "kafka:"
    for name, value in properties.items():
        if variable(name) in outside:
            yield "  # This is a secret and is not written to the file: set this environment variable."
            yield f"  {name}: ${{env:{variable(name)}}}"
        else:
            yield f"  {scalar(name)}: {scalar(value)}"
    yield ""


def _places(choices: ConfigChoices, discovered: DiscoveredTopics) -> Iterator[str]:
    yield "source:"
    yield f"  topic_prefix: {scalar(discovered.topic_prefix)}"
    if discovered.connector is not None:
        yield f"  connector: {discovered.connector}"
    yield "  # The connector's settings that differ from Debezium's defaults: the service needs them to read records."
    yield "  # connector_properties: {skipped.operations: none, decimal.handling.mode: precise}"
    yield ""
    yield "target:"
    yield f"  path: {scalar(choices.target)}"
    if discovered.by_database:
        yield "  # Tables of several databases have the same name."
        yield f"  table: {scalar(_BY_DATABASE)}"
    yield ""
    yield "# Losing this directory loses nothing: each table stores its own progress."
    yield f"checkpoint: {scalar(choices.checkpoint)}"
    yield ""


def _defaults(discovered: DiscoveredTopics) -> Iterator[str]:
    yield "defaults:"
    yield "  # Tables whose records have no key. append: each change becomes a row, good for insert-only tables."
    yield "  # halt: the table stops until its entry has a key or a mode. If some columns are unique, an entry with"
    yield "  # key: [COLUMN, …] keeps one row per value."
    yield "  keyless: append"
    for table in discovered.tables:
        if table.mode == "append":
            yield f"  #   {scalar(table.table)}"
    yield ""


def _tables(discovered: DiscoveredTopics) -> Iterator[str]:
    named: dict[str, list[TablePlan]] = {}
    for table in discovered.tables:
        named.setdefault(table.table, []).append(table)
    entries = {name: lines for name, tables in named.items() if (lines := [*columns_text(tables)])}
    if any(table.by_value for table in discovered.tables):
        yield "# Some records carry no schema. `columns` has the types that run would infer from a few values: bigint,"
        yield "# double, boolean, else string. Comments say what else they may be. Write the types that you know"
        yield "# (decimal(18,2), date, timestamp_us …) before the first run: a table keeps the types that it was"
        yield "# created with."
    yield "tables:"
    for name in sorted(entries):
        yield f"  - match: {scalar(name)}"
        yield from entries[name]
    yield "  # All other tables, also those whose topics are created later."
    for name in sorted(named.keys() - entries.keys()):
        yield f"  #   {name}"
    for table in discovered.tables:
        if table.error is not None:
            yield f"  # {table.table} would halt: {line(table.error['message'])}"
            yield f"  #   {line(with_names(table.error['fix'], table=table.table))}"
    yield '  - match: "*.*"'
