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
"""A bare null, which YAML reads as no value, is a word in this config (see document.py)."""


def _column_types(columns: dict[str, str]) -> dict[str, str]:
    problems = [problem for name, text in columns.items() if (problem := _type_problem(name, text))]
    refuse(problems)
    return {name: column_types.parse(text) for name, text in columns.items()}


def _type_problem(name: str, text: str) -> Problem | None:
    try:
        column_types.parse(text)
    except ValueError as error:
        near = column_types.nearest(text)
        fix = "a Spark type such as bigint, decimal(18,2), timestamp_ntz, or timestamp_ms for a bare number"
        return Problem("bad-column-type", str(error), f"did you mean {near}?" if near else fix, (name,))
    return None


def _renames(renames: dict[str, str]) -> dict[str, str]:
    problems = []
    used: dict[str, str] = {}
    for source, lake in renames.items():
        if lake.startswith("__"):
            fix = "columns that begin with two underscores are the service's own"
            problems.append(Problem("bad-value", "is no name for a column of the source", fix, (source,)))
        elif used.setdefault(lake.lower(), source) != source:
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
    """The settings of a table, all optional. Defaults: upsert, hard, apply, evolve, epoch 0."""

    mode: Mode | None = Field(
        None,
        description="upsert: one row per key, the newest state. history: every version of a row. append: one row per "
        "change. Default: upsert.",
    )
    deletes: Deletes | None = Field(
        None,
        description="hard: the row is removed. soft: it stays, with __deleted = true. Default: hard.",
    )
    truncate: Truncate | None = Field(
        None,
        description="The effect of a TRUNCATE at the source. apply: the rows are removed. soft: they stay, marked as "
        "deleted. ignore: nothing. halt: the table halts before it, until the config has another value. "
        "Default: apply.",
    )
    layout: FileLayout | None = Field(
        None,
        description="How changed and deleted rows are removed from data files. rewrite: the files are rewritten "
        "without them; any reader can read the result. vectors: deletion vectors mark them, which writes "
        "much less. auto: rewrite as long as it is cheap, then vectors. With "
        "`delta.enableDeletionVectors: false` files are always rewritten. Default: auto.",
    )
    key: tuple[Text, ...] | None = Field(
        None,
        description="The columns of the primary key, for records without a key.",
    )
    keyless: Keyless | None = Field(
        None,
        description="For tables whose records have no key, if `key` is not set. append: each change becomes a row, as "
        "with mode: append. halt: the table halts until its rule has `key` or `mode: append`. Default: halt.",
    )
    merge_sources: bool | None = Field(
        None,
        description="Whether a topic may have the changes of several source tables (shards, partitions). true: the "
        "name of the source table becomes part of the key (__physical_table), unless the records' key has "
        "it already (ByLogicalTableRouter). false: the table halts when a second source table appears. "
        "Default: false.",
    )
    timestamps: Timestamps | None = Field(
        None,
        description="The type of points in time without a zone, such as datetime2. ntz: timestamp_ntz. utc: "
        "timestamp, read as UTC, for readers that do not support timestamp_ntz. A table that has such "
        "columns halts if this changes. Default: ntz.",
    )
    schema_changes: SchemaChanges | None = Field(
        None,
        description="evolve: new columns are added, and types are widened if nothing is lost. halt: the table halts "
        "at a change. ignore: columns that the table does not have are left out. Default: evolve.",
    )
    column_defaults: Annotated[ColumnDefaults, _FILL_OR_NULL] | None = Field(
        None,
        description="What existing rows get in a column that the source adds, if the records' schema has a default "
        "for it. fill: that default, as in the source; it rewrites all files of the table once. null: "
        "NULL, until the row's next change. With mode: append always NULL. Default: null.",
    )
    columns: Annotated[dict[str, Text], AfterValidator(_column_types)] | None = Field(
        None,
        description="Types of columns, for JSON without schema or instead of the records' types: any Spark type; "
        "timestamp_ms|us|ns and time_ms|us|ns for plain numbers; Debezium's semantic names; the same as "
        "elements of arrays (array<timestamp_us>). An entry's columns are added to those of `defaults`.",
    )
    exclude: tuple[Text, ...] | None = Field(
        None,
        description="Columns that are left out. An entry's list is added to that of `defaults`.",
    )
    rename: Annotated[dict[Text, Text], AfterValidator(_renames)] | None = Field(
        None,
        description="New names of columns: {source's name: table's name}. `columns`, `exclude`, `mask` and `key` use "
        "the source's names, `partition_by` and `cluster_by` the table's. An entry's names are added to "
        "those of `defaults`.",
    )
    mask: dict[Text, Mask] | None = Field(
        None,
        description="Columns whose values are replaced. hash: by a hash with the key masking.salt, equal for equal "
        "values. redact: by ***. NULL stays NULL. An entry's masks are added to those of `defaults`.",
    )
    transaction_columns: Flag | None = Field(
        None,
        description="true: rows of mode: history and append have the transaction of their change (__transaction_id) "
        "and the change's number in it (__transaction_order), if the connector sends them "
        "(provide.transaction.metadata). No effect with mode: upsert. Default: false.",
    )
    epoch: Count | None = Field(
        None,
        description="Raise it by one after the source was restored to an earlier position: changes from then on are "
        "newer than all earlier ones. Default: 0.",
    )
    commit: Engine | None = Field(
        None,
        description="No effect: one engine commits to all tables. Remove it; the next minor version refuses it.",
    )
    paused: Flag | None = Field(
        None,
        description="true: the table applies nothing and is not compacted or vacuumed. `distributary pause` does the "
        "same without the config. Default: false.",
    )
    maintenance: MaintenanceKeys | None = Field(None, description="When the table's files are compacted and vacuumed.")
    properties: DeltaProperties | None = Field(
        None,
        description="Delta's table properties, such as delta.enableChangeDataFeed: true. Set when the table is "
        "created, and later if they differ. A property that you remove here stays in the table. An "
        "entry's properties are added to those of `defaults`.",
    )
    partition_by: tuple[Text, ...] | None = Field(
        None,
        description="Partition columns, used when the table is created. For an existing table a change is ignored "
        "with a warning until `resume --rebuild`.",
    )
    cluster_by: Annotated[tuple[Text, ...], AfterValidator(_cluster_by)] | None = Field(
        None,
        description="Liquid clustering columns, at most 4. Excludes `partition_by`. Can be changed on an existing "
        "table.",
    )

    @model_validator(mode="after")
    def _one_layout(self) -> TableDefaults:
        if self.partition_by and self.cluster_by:
            fix = "take one of the two out; cluster_by can be changed later"
            refuse([Problem("layout-choice", "stands beside partition_by", fix, ("cluster_by",))])
        return self


class TableRule(TableDefaults):
    """An entry of `tables`: the tables that it matches, and their settings."""

    match: Annotated[Text, AfterValidator(_match)] = Field(
        description="<schema>.<table> as in the topic's name, in the same case; *, ? and [abc] match as in file "
        "names. The first entry that matches a table applies.",
    )
