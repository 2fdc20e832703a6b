"""The two sides of a comparison, for each mode: what a topic's records make, and what the lake has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.alone import rows_alone
from distributary.merge.append import AppendMode, as_columns, as_records
from distributary.merge.facts import Facts
from distributary.merge.ghosts import is_ghost
from distributary.merge.mode import Destination
from distributary.merge.progress import Snapshot
from distributary.merge.repeats import Identity, first_sent
from distributary.verify.compare import Comparing, side

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
    """What the sides are made from: decoded `records` that can be applied with what was `found` in them, the position
    of the newest truncate that counts, the table's newest complete snapshot, and `rows` of the lake. `partial` and
    `passes_open` as in Comparing."""

    to: Destination
    records: DataFrame
    found: Facts
    truncated: str | None
    snapshot: Snapshot | None
    rows: DataFrame
    partial: bool
    passes_open: bool


def sides(given: Given) -> Sides:
    """The sides by the table's mode."""
    return _changes(given) if given.to.settings.mode == "append" else _states(given)


def key_of_row(to: Destination) -> Column:
    """STRUCT<k0, k1 …>: the key of a table's row."""
    return F.struct(*(F.col(sql.name(n)).cast(kind).alias(f"k{i}") for i, (n, kind) in enumerate(to.key.items())))


def _states(given: Given) -> Sides:
    """One row per key: of a history the current versions alone, which are those of an upsert with hard deletes."""
    to, rows = given.to, given.rows
    history = to.settings.mode == "history"
    if history:
        truncate = "apply" if to.settings.truncate == "soft" else to.settings.truncate
        to = replace(to, settings=replace(to.settings, deletes="hard", truncate=truncate))
        rows = rows.where("__current")
    marks_deleted = not history and "__deleted" in rows.columns
    columns = {name: kind for name, kind in to.columns.items() if name not in to.key}
    if marks_deleted:
        columns["__deleted"] = "boolean"
    alone = rows_alone(given.records, given.found, to, given.truncated)
    ghost = F.lit(False)
    if given.snapshot is not None and not history:
        told = F.expr(is_ghost(to.connector, given.snapshot.position, marks_deleted=marks_deleted))
        alone = alone.select("*", *(F.col(f"made.{name}").alias(name) for name in _OF_GHOSTS if name != "__deleted"))
        if marks_deleted:
            alone = alone.withColumn("__deleted", F.col("made.__deleted"))
        ghost = F.col("lives") & told
    expected = alone.select(
        "k",
        F.expr("CASE WHEN lives THEN 1 ELSE 0 END").alias("times"),
        F.when(F.col("lives"), side([F.expr(f"made.{sql.name(name)}") for name in columns])).alias("v"),
        # Where a row's position is not that of the change that decided (see clauses), it is the row's that counts.
        F.expr(
            "named_struct('partition', event.partition, 'offset', event.offset,"
            " 'position', CASE WHEN lives THEN made.__position ELSE event.position END, 'op', event.op)"
        ).alias("placed"),
        "event",
        "open",
        "vague",
        ghost.alias("ghost"),
    )
    expected = expected.withColumn("event", F.expr("CASE WHEN event IS NOT NULL THEN placed END")).drop("placed")
    lake = rows.select(
        key_of_row(to).alias("k"),
        side([F.col(sql.name(name)) for name in columns]).alias("v"),
        F.expr(_ORIGIN).alias("origin"),
        F.col("__deleted").alias("deleted") if marks_deleted else F.lit(False).alias("deleted"),
    )
    how = Comparing(
        list(to.key),
        columns,
        to.connector,
        positions=not history,
        partial=given.partial,
        passes_open=given.passes_open,
    )
    return Sides(how, expected, lake, by_key=True)


_OF_GHOSTS = ("__position", "__snapshot", "__op", "__deleted")


def _changes(given: Given) -> Sides:
    """Each change once, known by what tells it from others; rows of tables without key may be alike."""
    to = given.to
    identity = Identity(to.connector, keyed=bool(to.key))
    kept = AppendMode(to.settings).kept(given.records, to)
    sent = first_sent(kept, identity, partitions=len(given.found.partitions))
    who, place = "who", F.lit(1)
    if to.key:
        who = f"to_json(named_struct({', '.join(f'{sql.text(n)}, who.k.k{i}' for i, n in enumerate(to.key))}))"
        # Of rows that have all else in common; where there is one of them its place is the same whatever is in it.
        place = F.dense_rank().over(Window.partitionBy("kind", "at", "read_at", "who.k").orderBy("who.row"))
    named = (F.expr(text).alias(f"k{i}") for i, text in enumerate(("kind", "at", "read_at", who)))
    k = F.struct(*named, place.alias("place")).alias("k")
    event = F.expr("named_struct('partition', partition, 'offset', offset, 'position', pos, 'op', kind)")
    row = [F.expr(f"row.c{i}") for i, _ in enumerate(to.columns)]
    expected = (
        sent.select(k, side([*row, as_columns(to)[-1]]).alias("v"), event.alias("event"))
        .groupBy("k")
        .agg(F.count("*").cast("int").alias("times"), F.first("v").alias("v"), F.first("event").alias("event"))
        .select("*", F.expr(_NO_COLUMNS).alias("open"), F.lit(False).alias("vague"), F.lit(False).alias("ghost"))
    )
    held = as_records(given.rows, to).select("*", *identity.columns())
    lake = held.select(
        k,
        side([*row, F.col("__unavailable")]).alias("v"),
        event.alias("origin"),
        F.lit(False).alias("deleted"),
    )
    columns = {**to.columns, "__unavailable": "array<string>"}
    shown = ("op", "position", "read_at", "key" if to.key else "row")
    how = Comparing(shown, columns, None, partial=given.partial, several=not to.key)
    return Sides(how, expected, lake, by_key=False)
