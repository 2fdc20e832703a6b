"""The text of a first config, with comments for whoever goes on with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from distributary.config import secrets
from distributary.preflight.columns_text import columns_text
from distributary.preflight.table_plan import TablePlan
from distributary.preflight.yaml_text import line, scalar

_REFERENCE = re.compile(r"\$\{(env|file):[^{}]*\}")
_BY_DATABASE = "{database}/{schema}/{table}"


@dataclass(frozen=True)
class Wishes:
    """What the user says of the config: Kafka's client properties, and where tables and checkpoint are to lie."""

    kafka: Mapping[str, str]
    target: str
    checkpoint: str


@dataclass(frozen=True)
class Found:
    """What the topics say: the prefix, the connector where all records agree on one, and the tables.

    `by_database`: tables of several databases have one name.
    """

    topic_prefix: str
    connector: str | None = None
    tables: Collection[TablePlan] = field(default_factory=tuple)
    by_database: bool = False


def kept_outside(properties: Mapping[str, str]) -> dict[str, str]:
    """The secrets among Kafka's properties that must not stand in a file: by the variable that is named in their
    place."""
    return {
        variable(name): value
        for name, value in properties.items()
        if secrets.is_inline(name, value) and not _REFERENCE.search(value)
    }


def variable(name: str) -> str:
    """`KAFKA_SASL_PASSWORD` for `sasl.password`."""
    return "KAFKA_" + re.sub(r"[^A-Za-z0-9]+", "_", name).upper()


def config_text(wishes: Wishes, found: Found) -> str:
    """The whole file."""
    parts = [_head(found), _kafka(wishes.kafka), _places(wishes, found), _defaults(found), _tables(found)]
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: Found) -> Iterator[str]:
    yield f"# A first config, from what Kafka has under the prefix {found.topic_prefix}. Look through it, then:"
    yield "#   distributary plan -c FILE      what run would do, and which settings of the source lose data"
    yield "#   distributary doctor -c FILE    whether it would start on this machine"
    yield "#   distributary run -c FILE"
    yield "# `distributary schema` prints what else may stand here."
    yield "version: 1"
    yield ""


def _kafka(properties: Mapping[str, str]) -> Iterator[str]:
    outside = kept_outside(properties)
    yield "kafka:"
    for name, value in properties.items():
        if variable(name) in outside:
            yield "  # What was given is a secret and not written down: set this variable."
            yield f"  {name}: ${{env:{variable(name)}}}"
        else:
            yield f"  {scalar(name)}: {scalar(value)}"
    yield ""


def _places(wishes: Wishes, found: Found) -> Iterator[str]:
    yield "source:"
    yield f"  topic_prefix: {scalar(found.topic_prefix)}"
    if found.connector is not None:
        yield f"  connector: {found.connector}"
    yield "  # The connector's settings where they are not Debezium's defaults: they tell how to read its records."
    yield "  # connector_properties: {skipped.operations: none, decimal.handling.mode: precise}"
    yield ""
    yield "target:"
    yield f"  path: {scalar(wishes.target)}"
    if found.by_database:
        yield "  # Tables of several databases have one name."
        yield f"  table: {scalar(_BY_DATABASE)}"
    yield ""
    yield "# Losing this directory loses nothing: each table knows itself where it is."
    yield f"checkpoint: {scalar(wishes.checkpoint)}"
    yield ""


def _defaults(found: Found) -> Iterator[str]:
    yield "defaults:"
    yield "  # Tables whose records have no key: append keeps each change as a row, which suits tables that only"
    yield "  # insert; halt stops such a table until its entry says how to keep it. Where columns are a key, an entry"
    yield "  # with key: [COLUMN, …] keeps one row of each."
    yield "  keyless: append"
    for table in found.tables:
        if table.mode == "append":
            yield f"  #   {scalar(table.table)}"
    yield ""


def _tables(found: Found) -> Iterator[str]:
    named: dict[str, list[TablePlan]] = {}
    for table in found.tables:
        named.setdefault(table.table, []).append(table)
    entries = {name: lines for name, tables in named.items() if (lines := [*columns_text(tables)])}
    if any(table.by_value for table in found.tables):
        yield "# Where records carry no schema, `columns` has the types that a few values show, as run would take"
        yield "# them: bigint, double, boolean, else string. Comments say what such values may be beside. Write the"
        yield "# types that you know (decimal(18,2), date, timestamp_us …) before the first run: a table keeps those"
        yield "# that it was made with."
    yield "tables:"
    for name in sorted(entries):
        yield f"  - match: {scalar(name)}"
        yield from entries[name]
    yield "  # Every other table that has a topic, also those whose topic comes later."
    for name in sorted(named.keys() - entries.keys()):
        yield f"  #   {name}"
    for table in found.tables:
        if table.error is not None:
            yield f"  # {table.table} would halt: {line(table.error['message'])}"
            yield f"  #   {line(table.error['fix'])}"
    yield '  - match: "*.*"'
