"""The two sides of a comparison, for each mode: what a topic's records make, and what the lake has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary import sql
from distributary.apply.stored_rows import DELETED
from distributary.config.table import TableSettings
from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.progress.record import Snapshot
from distributary.verify.change_identity import Identity
from distributary.verify.comparison import Comparing, side
from distributary.verify.replayed_table import Copy

_ORIGIN = "named_struct('partition', __partition, 'offset', __offset, 'position', __position, 'op', __op)"
_NO_COLUMNS = "CAST(array() AS ARRAY<STRING>)"


@dataclass(frozen=True)
class Sides:
    """Both sides as Compared takes them. `by_key`: keys are those of the records."""

    how: Comparing
    expected: DataFrame
    lake: DataFrame
    by_key: bool


@dataclass(frozen=True)
class Given:
    """What the sides are made from: the `copy` of the table that its topic makes, kept by the settings `kept`, the
    table's newest complete snapshot, and `rows` of the lake. `columns` and `key`: name to Spark type. `partial` and
    `passes_open` as in Comparing."""

    copy: Copy
    kept: TableSettings
    settings: TableSettings
    connector: str
    columns: Mapping[str, str]
    key: Mapping[str, str]
    snapshot: Snapshot | None
    rows: DataFrame
    partial: bool
    passes_open: bool


def sides(given: Given) -> Sides:
    """The sides by the table's mode."""
    return _changes(given) if given.settings.mode == "append" else _states(given)


def key_of_row(key: Mapping[str, str]) -> Column:
    """STRUCT<k0, k1 …>: the key of a table's row."""
    return F.struct(*(F.col(sql.name(n)).cast(kind).alias(f"k{i}") for i, (n, kind) in enumerate(key.items())))


def _states(given: Given) -> Sides:
    """One row per key: of a history the current versions alone, which are those of an upsert with hard deletes."""
    rows, key = given.rows, given.key
    history = given.settings.mode == "history"
    if history:
        rows = rows.where("__current")
    marks_deleted = not history and DELETED in rows.columns
    columns = {name: kind for name, kind in given.columns.items() if name not in key}
    if marks_deleted:
        columns[DELETED] = "boolean"
    k, v = key_of_row(key), side([F.col(sql.name(name)) for name in columns])
    # Where rows that are deleted are not kept, the copy keeps them to tell when they went.
    lives = F.lit(True) if marks_deleted else ~F.coalesce(F.col(DELETED), F.lit(False))
    expected = given.copy.rows().select(
        k.alias("k"),
        F.when(lives, 1).otherwise(0).alias("times"),
        F.when(lives, v).alias("v"),
        F.expr(_ORIGIN).alias("event"),
        _open_columns(given, columns).alias("open"),
        F.lit(False).alias("vague"),
    )
    if given.snapshot is not None and not history:
        ghosts = given.copy.ghosts(given.connector, given.snapshot.position).withColumn("ghost", F.lit(True))
        ghosts = ghosts.withColumnRenamed("k", "ghost_k")
        same = F.col("k").eqNullSafe(F.col("ghost_k"))
        expected = expected.join(F.broadcast(ghosts), same, "left").drop("ghost_k")
        expected = expected.withColumn("ghost", F.coalesce("ghost", F.lit(False)))
    else:
        expected = expected.withColumn("ghost", F.lit(False))
    lake = rows.select(
        k.alias("k"),
        v.alias("v"),
        F.expr(_ORIGIN).alias("origin"),
        F.coalesce(F.col(DELETED), F.lit(False)).alias("deleted") if marks_deleted else F.lit(False).alias("deleted"),
    )
    how = Comparing(
        list(key),
        columns,
        given.connector,
        positions=not history,
        partial=given.partial,
        passes_open=given.passes_open,
    )
    return Sides(how, expected, lake, by_key=True)


def _open_columns(given: Given, columns: Mapping[str, str]) -> Column:
    """ARRAY<STRING>: the columns whose value perhaps no record tells that the topic still has."""
    if not given.passes_open or given.connector not in CONNECTORS_WITH_PLACEHOLDER:
        return F.expr(_NO_COLUMNS)
    told = (F.when(F.col(sql.name(name)).isNull(), F.lit(name)) for name in columns)
    return F.array_compact(F.array(*told)) if columns else F.expr(_NO_COLUMNS)


def _changes(given: Given) -> Sides:
    """Each change once, known by what tells it from others; rows of tables without key may be alike."""
    identity = Identity(given.connector, keyed=bool(given.key))
    who, place = "who", F.lit(1)
    if given.key:
        who = f"to_json(named_struct({', '.join(f'{sql.text(n)}, who.k.k{i}' for i, n in enumerate(given.key))}))"
        # Of rows that have all else in common; where there is one of them its place is the same whatever is in it.
        place = F.dense_rank().over(Window.partitionBy("kind", "at", "read_at", "who.k").orderBy("who.row"))
    named = (F.expr(text).alias(f"k{i}") for i, text in enumerate(("kind", "at", "read_at", who)))
    k = F.struct(*named, place.alias("place")).alias("k")
    event = F.expr("named_struct('partition', partition, 'offset', offset, 'position', pos, 'op', kind)")
    row = [F.expr(f"row.c{i}") for i, _ in enumerate(given.columns)]

    def changes(rows: DataFrame) -> DataFrame:
        held = as_records(rows, given.columns, given.key).select("*", *identity.columns())
        return held.select(k, side([*row, F.col("__unavailable")]).alias("v"), event.alias("origin"))

    expected = (
        changes(given.copy.rows())
        .groupBy("k")
        .agg(F.count("*").cast("int").alias("times"), F.first("v").alias("v"), F.first("origin").alias("event"))
        .select("*", F.expr(_NO_COLUMNS).alias("open"), F.lit(False).alias("vague"), F.lit(False).alias("ghost"))
    )
    lake = changes(given.rows).withColumn("deleted", F.lit(False))
    columns = {**given.columns, "__unavailable": "array<string>"}
    shown = ("op", "position", "read_at", "key" if given.key else "row")
    how = Comparing(shown, columns, None, partial=given.partial, several=not given.key)
    return Sides(how, expected, lake, by_key=False)


def as_records(held: DataFrame, columns: Mapping[str, str], key: Mapping[str, str]) -> DataFrame:
    """A table's rows, as far as they tell which records they come from."""
    row = F.struct(*(F.col(sql.name(name)).alias(f"c{i}") for i, name in enumerate(columns)))
    return held.select(
        F.col("__op").alias("kind"),
        F.col("__position").alias("pos"),
        F.unix_millis("__source_ts").alias("ts_ms"),
        F.col("__partition").alias("partition"),
        F.col("__offset").alias("offset"),
        (key_of_row(key) if key else F.lit(None)).alias("k"),
        row.alias("row"),
        "__unavailable",
    )
