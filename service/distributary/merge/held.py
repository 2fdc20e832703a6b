"""What the table holds of a slice's keys, read before the merge by those slices whose rules ask for it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.clauses import ALL
from distributary.merge.values import NO_VALS, VALS, WAITS, Fillable, as_text, entry


def with_held(
    keys: DataFrame, table: DataFrame, key: Mapping[str, str], values: Fillable | None, *, soft: bool
) -> DataFrame:
    """The keys with `held` STRUCT of the table's row, NULL where it has none.

    position, snapshot, moved, filled and op STRING (see clauses.SERVICE_COLUMNS); deleted BOOLEAN: it was deleted
    softly (`soft`: there are such rows); and with `values` vals MAP and waits MAP: the fillable values that the row
    has, with the positions they come from, and the departures that the others wait for.
    """
    of_row = F.struct(*(F.col(sql.name(name)).cast(kind).alias(f"k{i}") for i, (name, kind) in enumerate(key.items())))
    rows = table.select(of_row.alias("held_key"), held_struct(values, soft=soft).alias("held"))
    return keys.join(rows, F.col("k").eqNullSafe(F.col("held_key")), "left").drop("held_key")


def without_held(keys: DataFrame) -> DataFrame:
    """The keys with a `held` that is NULL everywhere: the table is empty."""
    texts = "position: STRING, snapshot: STRING, moved: STRING, filled: STRING, op: STRING"
    return keys.withColumn("held", F.lit(None).cast(f"STRUCT<{texts}, deleted: BOOLEAN, vals: {VALS}, waits: {WAITS}>"))


def held_struct(values: Fillable | None, *, soft: bool) -> Column:
    """The struct of a row of the table."""
    vals, waits = NO_VALS, f"CAST(map() AS {WAITS})"
    if values is not None and values.types:
        since = f"{_origin(ALL)}, __position" if soft else "__position"
        entries = ", ".join(
            f"CASE WHEN {_origin(name)} IS NULL OR {_origin(name)} NOT RLIKE '^(@.*)?$'"
            f" THEN {entry(name, f'coalesce({_origin(name)}, {since})', as_text(sql.name(name), kind))} END"
            for name, kind in values.types.items()
        )
        vals = f"CAST(map_from_entries(array_compact(array({entries}))) AS {VALS})"
        waits = (
            f"CAST(transform_values(map_filter(from_json(__filled, '{WAITS}'), (n_, o_) -> startswith(o_, '@')),"
            f" (n_, o_) -> substring_index(substring(o_, 2), '#', 1)) AS {WAITS})"
        )
        waits = f"coalesce({waits}, CAST(map() AS {WAITS}))"
    deleted = "coalesce(__deleted, false)" if soft else "false"
    return F.expr(
        "named_struct('position', __position, 'snapshot', __snapshot, 'moved', __moved, 'filled', __filled,"
        f" 'op', __op, 'deleted', {deleted}, 'vals', {vals}, 'waits', {waits})"
    )


def _origin(column: str) -> str:
    return f"element_at(from_json(__filled, '{WAITS}'), {sql.text(column)})"
