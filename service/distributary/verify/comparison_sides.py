"""The two sides of a comparison, for each mode: the rows that the topic's records produce, and the rows of the lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary import sql
from distributary.apply.origin_columns import DELETED
from distributary.config.table import TableSettings
from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.progress.record import SourceSnapshot
from distributary.verify.change_identity import ChangeIdentity
from distributary.verify.comparison import ComparisonSpec, value_struct
from distributary.verify.replayed_table import ReplayedTable

_ORIGIN = "named_struct('partition', __partition, 'offset', __offset, 'position', __position, 'op', __op)"
_NO_COLUMNS = "CAST(array() AS ARRAY<STRING>)"


@dataclass(frozen=True)
class ComparisonSides:
    """Both sides in the form that Comparison takes. `by_key`: the keys are those of the records."""

    spec: ComparisonSpec
    expected: DataFrame
    lake: DataFrame
    by_key: bool


@dataclass(frozen=True)
class ComparisonInput:
    """The input of both sides: the table as `replayed` from its topic, by its `settings`, the table's newest complete
    snapshot, and `rows` of the lake. `columns` and `key`: name to Spark type. `partial` and
    `skips_unknown` as in ComparisonSpec."""

    replayed: ReplayedTable
    settings: TableSettings
    connector: str
    columns: Mapping[str, str]
    key: Mapping[str, str]
    snapshot: SourceSnapshot | None
    rows: DataFrame
    partial: bool
    skips_unknown: bool


def build_sides(inputs: ComparisonInput) -> ComparisonSides:
    """The two sides for the table's mode."""
    return _append_sides(inputs) if inputs.settings.mode == "append" else _row_sides(inputs)


def key_of_row(key: Mapping[str, str]) -> Column:
    """STRUCT<k0, k1 …>: the key of a row."""
    return F.struct(*(F.col(sql.name(n)).cast(kind).alias(f"k{i}") for i, (n, kind) in enumerate(key.items())))


def _row_sides(inputs: ComparisonInput) -> ComparisonSides:
    """One row per key. Only the current versions of a history table are compared: they equal an upsert's rows."""
    rows, key = inputs.rows, inputs.key
    history = inputs.settings.mode == "history"
    if history:
        rows = rows.where("__current")
    marks_deleted = not history and DELETED in rows.columns
    columns = {name: kind for name, kind in inputs.columns.items() if name not in key}
    if marks_deleted:
        columns[DELETED] = "boolean"
    k, v = key_of_row(key), value_struct([F.col(sql.name(name)) for name in columns])
    # The replayed table keeps deleted rows (see replay_settings); they are expected only if the table marks them, too.
    lives = F.lit(True) if marks_deleted else ~F.coalesce(F.col(DELETED), F.lit(False))
    expected = inputs.replayed.rows().select(
        k.alias("k"),
        F.when(lives, 1).otherwise(0).alias("times"),
        F.when(lives, v).alias("v"),
        F.expr(_ORIGIN).alias("event"),
        _unknown_columns(inputs, columns).alias("unknown_columns"),
    )
    if inputs.snapshot is not None and not history:
        orphans = inputs.replayed.orphaned_rows(inputs.connector, inputs.snapshot.position).withColumn(
            "orphaned", F.lit(True)
        )
        orphans = orphans.withColumnRenamed("k", "orphan_k")
        same = F.col("k").eqNullSafe(F.col("orphan_k"))
        expected = expected.join(F.broadcast(orphans), same, "left").drop("orphan_k")
        expected = expected.withColumn("orphaned", F.coalesce("orphaned", F.lit(False)))
    else:
        expected = expected.withColumn("orphaned", F.lit(False))
    lake = rows.select(
        k.alias("k"),
        v.alias("v"),
        F.expr(_ORIGIN).alias("origin"),
        F.coalesce(F.col(DELETED), F.lit(False)).alias("deleted") if marks_deleted else F.lit(False).alias("deleted"),
    )
    spec = ComparisonSpec(
        list(key),
        columns,
        inputs.connector,
        positions=not history,
        partial=inputs.partial,
        skips_unknown=inputs.skips_unknown,
    )
    return ComparisonSides(spec, expected, lake, by_key=True)


def _unknown_columns(inputs: ComparisonInput, columns: Mapping[str, str]) -> Column:
    """ARRAY<STRING>: columns whose value may have been in records that the topic no longer has."""
    if not inputs.skips_unknown or inputs.connector not in CONNECTORS_WITH_PLACEHOLDER:
        return F.expr(_NO_COLUMNS)
    names = (F.when(F.col(sql.name(name)).isNull(), F.lit(name)) for name in columns)
    return F.array_compact(F.array(*names)) if columns else F.expr(_NO_COLUMNS)


def _append_sides(inputs: ComparisonInput) -> ComparisonSides:
    """One row per change, by its identity. Tables without a key may have equal rows."""
    identity = ChangeIdentity(inputs.connector, keyed=bool(inputs.key))
    who, ordinal = "who", F.lit(1)
    if inputs.key:
        who = f"to_json(named_struct({', '.join(f'{sql.text(n)}, who.k.k{i}' for i, n in enumerate(inputs.key))}))"
        # Numbers rows that are equal in all other columns. A single row gets 1, whatever its values are.
        ordinal = F.dense_rank().over(Window.partitionBy("kind", "at", "read_at", "who.k").orderBy("who.row"))
    named = (F.expr(text).alias(f"k{i}") for i, text in enumerate(("kind", "at", "read_at", who)))
    k = F.struct(*named, ordinal.alias("ordinal")).alias("k")
    event = F.expr("named_struct('partition', partition, 'offset', offset, 'position', pos, 'op', kind)")
    row = [F.expr(f"row.c{i}") for i, _ in enumerate(inputs.columns)]

    def changes(rows: DataFrame) -> DataFrame:
        records = as_records(rows, inputs.columns, inputs.key).select("*", *identity.columns())
        return records.select(k, value_struct([*row, F.col("__unavailable")]).alias("v"), event.alias("origin"))

    expected = (
        changes(inputs.replayed.rows())
        .groupBy("k")
        .agg(F.count("*").cast("int").alias("times"), F.first("v").alias("v"), F.first("origin").alias("event"))
        .select("*", F.expr(_NO_COLUMNS).alias("unknown_columns"), F.lit(False).alias("orphaned"))
    )
    lake = changes(inputs.rows).withColumn("deleted", F.lit(False))
    columns = {**inputs.columns, "__unavailable": "array<string>"}
    shown = ("op", "position", "read_at", "key" if inputs.key else "row")
    spec = ComparisonSpec(shown, columns, None, partial=inputs.partial, has_duplicates=not inputs.key)
    return ComparisonSides(spec, expected, lake, by_key=False)


def as_records(rows: DataFrame, columns: Mapping[str, str], key: Mapping[str, str]) -> DataFrame:
    """The records that an append table's rows come from: kind, pos, ts_ms, partition, offset, k, row, __unavailable."""
    row = F.struct(*(F.col(sql.name(name)).alias(f"c{i}") for i, name in enumerate(columns)))
    return rows.select(
        F.col("__op").alias("kind"),
        F.col("__position").alias("pos"),
        F.unix_millis("__source_ts").alias("ts_ms"),
        F.col("__partition").alias("partition"),
        F.col("__offset").alias("offset"),
        (key_of_row(key) if key else F.lit(None)).alias("k"),
        row.alias("row"),
        "__unavailable",
    )
