"""The keys of `defaults` and of an entry of `tables`, as the config's file has them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from distributary.config import column_types
from distributary.config.delta_properties import DeltaProperties
from distributary.config.maintenance import MaintenanceKeys
from distributary.config.problem import Problem, refuse
from distributary.config.scalars import Count, Flag, Section, Text

Mode = Literal["upsert", "history", "append"]
Deletes = Literal["hard", "soft"]
Truncate = Literal["apply", "soft", "ignore", "halt"]
FileLayout = Literal["auto", "rewrite", "vectors"]
Keyless = Literal["append", "halt"]
Timestamps = Literal["ntz", "utc"]
SchemaChanges = Literal["evolve", "halt", "ignore"]
ColumnDefaults = Literal["fill", "null"]
Engine = Literal["auto", "spark", "deltalake"]
Mask = Literal["hash", "redact"]

_MOST_CLUSTERED = 4
_FILL_OR_NULL = WithJsonSchema({"enum": ["fill", "null", None]})
"""YAML reads a bare null as nothing: here it is a word (see document.py)."""


def _column_types(columns: dict[str, str]) -> dict[str, str]:
    problems = [problem for name, text in columns.items() if (problem := _type_problem(name, text))]
    refuse(problems)
    return {name: column_types.parse(text) for name, text in columns.items()}


def _type_problem(name: str, text: str) -> Problem | None:
    try:
        column_types.parse(text)
    except ValueError as error:
        near = column_types.nearest(text)
        usual = "a Spark type such as bigint, decimal(18,2), timestamp_ntz, or timestamp_ms for a bare number"
        return Problem("bad-column-type", str(error), f"did you mean {near}?" if near else usual, (name,))
    return None


def _renames(renames: dict[str, str]) -> dict[str, str]:
    problems = []
    taken: dict[str, str] = {}
    for source, lake in renames.items():
        if lake.startswith("__"):
            fix = "columns that begin with two underscores are the service's own"
            problems.append(Problem("bad-value", "is no name for a column of the source", fix, (source,)))
        elif taken.setdefault(lake.lower(), source) != source:
            fix = "give each of them a name of its own; upper and lower case are the same to Delta"
            problems.append(Problem("bad-value", f"gives {lake!r} to a second column", fix, (source,)))
    refuse(problems)
    return renames


def _cluster_by(columns: tuple[str, ...]) -> tuple[str, ...]:
    if len(columns) > _MOST_CLUSTERED:
        raise Problem("bad-value", "Delta clusters by four columns at most", "name the four that filters use").error()
    return columns


def _match(pattern: str) -> str:
    if "." not in pattern and "*" not in pattern:
        fix = "write dbo.customers, or *.customers for every schema"
        raise Problem("bad-match", "a match names <schema>.<table>", fix).error()
    return pattern


class TableDefaults(Section):
    """The keys of a table, all optional. The defaults are upsert, hard, apply, evolve, epoch 0."""

    mode: Mode | None = Field(
        None,
        description="upsert: one row per key, the newest state. history: every version of a row. append: every change "
        "as a row of its own. Default: upsert.",
    )
    deletes: Deletes | None = Field(
        None,
        description="hard: a deleted row goes. soft: it stays, with __deleted = true. Default: hard.",
    )
    truncate: Truncate | None = Field(
        None,
        description="What a TRUNCATE of the source table does. apply: the rows go. soft: they stay, marked as deleted. "
        "ignore: nothing. halt: the table stops in front of it until the config says another of these. Default: apply.",
    )
    layout: FileLayout | None = Field(
        None,
        description="How rows that change or go leave the table's files. rewrite: their files are written anew without "
        "them, which any reader can read. vectors: deletion vectors mark them, which takes far less writing. auto: as "
        "rewrite while that is cheap, and vectors from then on. A table that `delta.enableDeletionVectors: false` "
        "keeps from having vectors is rewritten whatever this says. Default: auto.",
    )
    key: tuple[Text, ...] | None = Field(
        None,
        description="The columns of the primary key; only where the topic's records have no key.",
    )
    keyless: Keyless | None = Field(
        None,
        description="What becomes of a table whose records have no key, and which `key` gives none. append: each "
        "change is kept as a row, as by mode: append. halt: the table stops until the config says how to keep it. "
        "Default: halt.",
    )
    merge_sources: bool | None = Field(
        None,
        description="Whether one topic may have the changes of several source tables (shards, partitions). true: the "
        "name of each row's source table is a part of the key (__physical_table), unless the records' own key tells it "
        "(ByLogicalTableRouter). false: the table halts where a second one comes. Default: false.",
    )
    timestamps: Timestamps | None = Field(
        None,
        description="What points in time without a zone become, such as datetime2. ntz: timestamp_ntz. utc: "
        "timestamp, as a clock in UTC shows it, for readers that know no timestamp_ntz. A table that has such columns "
        "halts when this changes. Default: ntz.",
    )
    schema_changes: SchemaChanges | None = Field(
        None,
        description="evolve: new columns are added and types widened where nothing is lost. halt: the table stops at "
        "a change. ignore: columns that the table does not have are left out. Default: evolve.",
    )
    column_defaults: Annotated[ColumnDefaults, _FILL_OR_NULL] | None = Field(
        None,
        description="What rows have in a column that the source adds later, where the records' schema has a default of "
        "it. fill: the default, as the source's own rows do; all files of the table are written anew for it, once. "
        "null: NULL, until the row's next change. Tables of mode: append always keep NULL. Default: null.",
    )
    columns: Annotated[dict[str, Text], AfterValidator(_column_types)] | None = Field(
        None,
        description="Column types, for JSON without schema and to override what the records say: any Spark type, "
        "timestamp_ms|us|ns and time_ms|us|ns for bare numbers, or Debezium's own semantic name; elements of "
        "arrays likewise (array<timestamp_us>). A rule's columns are added to those of the defaults.",
    )
    exclude: tuple[Text, ...] | None = Field(
        None,
        description="Columns that never reach the lake. A rule's list is added to that of the defaults.",
    )
    rename: Annotated[dict[Text, Text], AfterValidator(_renames)] | None = Field(
        None,
        description="What the table calls columns of the source that it does not call as the source does. columns, "
        "exclude, mask and key have the source's names, partition_by and cluster_by the table's. A rule's names are "
        "added to those of the defaults.",
    )
    mask: dict[Text, Mask] | None = Field(
        None,
        description="Columns whose values never reach the lake as they are. hash: a keyed hash in their place, equal "
        "for equal values, with masking.salt. redact: ***. NULL stays NULL. A rule's masks are added to those of the "
        "defaults.",
    )
    transaction_columns: Flag | None = Field(
        None,
        description="true: rows of mode: history and append tell the transaction of their change (__transaction_id) "
        "and its place among all changes of that transaction (__transaction_order), as far as the connector sends them "
        "(provide.transaction.metadata). No effect on mode: upsert. Default: false.",
    )
    epoch: Count | None = Field(
        None,
        description="Raised by an operator after the source was restored to an earlier position, so that its new "
        "changes sort after everything before. Default: 0.",
    )
    commit: Engine | None = Field(
        None,
        description="Has no effect any more: one engine commits to all tables. Take it out; the next minor version "
        "refuses it.",
    )
    paused: Flag | None = Field(
        None,
        description="true: the table takes nothing in, and its files are left alone, until the config says otherwise. "
        "`distributary pause` does the same without the config. Default: false.",
    )
    maintenance: MaintenanceKeys | None = Field(
        None, description="When its files are compacted, and when files that it no longer has are removed."
    )
    properties: DeltaProperties | None = Field(
        None,
        description="Delta's table properties, such as delta.enableChangeDataFeed: true. Set when the table is made, "
        "and on a table that is there once they differ. One that is taken out here stays as it is in the table. A "
        "rule's properties are added to those of the defaults.",
    )
    partition_by: tuple[Text, ...] | None = Field(
        None,
        description="The columns by whose values the table's files are parted, when it is made. A table that is there "
        "keeps what it has, with a warning, until it is filled again (resume --rebuild).",
    )
    cluster_by: Annotated[tuple[Text, ...], AfterValidator(_cluster_by)] | None = Field(
        None,
        description="The columns that Delta's OPTIMIZE lays rows of like values together by, at most 4; in place of "
        "partition_by. A table that is there is altered.",
    )

    @model_validator(mode="after")
    def _one_layout(self) -> TableDefaults:
        if self.partition_by and self.cluster_by:
            fix = "take one of the two out; cluster_by can be changed later"
            refuse([Problem("layout-choice", "stands beside partition_by", fix, ("cluster_by",))])
        return self


class TableRule(TableDefaults):
    """One entry of `tables`: which tables it is for, and their settings."""

    match: Annotated[Text, AfterValidator(_match)] = Field(
        description="<schema>.<table> as the topic spells them; *, ? and [abc] match as in file names, upper and lower "
        "case as written. The first entry that matches a table counts.",
    )
