"""Values that the source did not send, filled in along the events of a key, and over key changes from the old key's.

Within a key's life a value comes from the event before; the first row of a new key takes what the old key's row had
just before the change. Filling runs no Spark job within keys; over key changes one for each link of the longest chain.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from distributary.merge.kept import kept

_IS_ROW = "kind IN ('c', 'u', 'r')"
_ORDER = ("pos", "rank", "n")
_WAITING = f"{_IS_ROW} AND moved_in AND old_key IS NOT NULL AND size(missing) > 0"
_LONGEST_CHAIN = 100


def filled(events: DataFrame, columns: Mapping[str, str], key_text: str, *, linked: bool) -> DataFrame:
    """Placed events whose rows have the values that were not sent, as far as they are known, and filled BOOLEAN: the
    row is not what the table holds.

    `key_text`: an expression of an event's key as old_key writes it; `linked`: there may be key changes.
    """
    told = events.withColumn("stored", F.col("row"))
    told = kept(_within_keys(told, columns), eager=False)
    linked = linked and not told.where(_WAITING).isEmpty()
    held = False
    for _ in range(_LONGEST_CHAIN if linked else 0):
        told = kept(_over_key_changes(told, columns, key_text, held=held), eager=True)
        found = not told.where("found").isEmpty()
        told = told.drop("found")
        if found:
            told = _within_keys(told, columns)
        elif held:
            break
        # What no event tells is what the table has: asked last, as it may be about to change itself.
        held = not found
    changed = " OR ".join(
        f"NOT ({_comparable('row', i, k)} <=> {_comparable('stored', i, k)})" for i, k in _at(columns)
    )
    return told.withColumn("filled", F.expr(f"held IS NOT NULL AND size(unsent) > 0 AND ({changed})")).drop("stored")


def _at(columns: Mapping[str, str]) -> list[tuple[int, str]]:
    return list(enumerate(columns.values()))


def _comparable(row: str, place: int, kind: str) -> str:
    value = f"{row}.c{place}"
    return f"to_json(struct({value}))" if "map<" in kind or "variant" in kind else value


def _lacks(place: int) -> str:
    return f"coalesce(array_contains(missing, {place}), false)"


def _within_keys(events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """From the newest older event of the same row: a delete and the arrival of another key's row end it."""
    order = Window.partitionBy("k").orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ends = f"(NOT ({_IS_ROW}) AND NOT kept) OR (coalesce(moved_in, false) AND old_key IS NOT NULL)"
    lives = events.withColumn("same_row", F.sum(F.expr(f"CASE WHEN {ends} THEN 1 ELSE 0 END")).over(order))
    up_to = Window.partitionBy("k", "same_row").orderBy(*_ORDER)
    up_to = up_to.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = lives.select(
        "*",
        *(
            F.last(F.expr(f"CASE WHEN {_IS_ROW} AND NOT {_lacks(i)} THEN struct(row.c{i} AS v) END"), ignorenulls=True)
            .over(up_to)
            .alias(f"known{i}")
            for i, _ in _at(columns)
        ),
    )
    return _with_known(known, columns).select(*events.columns)


def _with_known(events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Takes known0, known1 … STRUCT<v> for values that are missing; NULL is not known."""
    row = ", ".join(
        f"'c{i}', CASE WHEN {_lacks(i)} AND known{i} IS NOT NULL THEN known{i}.v ELSE row.c{i} END"
        for i, _ in _at(columns)
    )
    left = ", ".join(f"CASE WHEN {_lacks(i)} AND known{i} IS NULL THEN {i} END" for i, _ in _at(columns))
    return events.withColumn("new_row", F.expr(f"CASE WHEN {_IS_ROW} THEN named_struct({row}) END")).withColumn(
        "missing", F.expr(f"CASE WHEN size(missing) > 0 THEN array_compact(array({left})) END")
    ).withColumn("row", F.col("new_row")).drop("new_row")  # fmt: skip


def _over_key_changes(events: DataFrame, columns: Mapping[str, str], key_text: str, *, held: bool) -> DataFrame:
    """The first rows of new keys with the values of the old keys' rows; found BOOLEAN: something new was found. `held`:
    what the table holds under an old key counts, also where that was filled in itself."""
    waiting = events.where(_WAITING).select(
        F.col("k").alias("to_k"), F.col("n").alias("to_n"), F.col("pos").alias("to_pos"), F.col("tx").alias("to_tx"),
        "old_key",
    )  # fmt: skip
    trusted = "held IS NOT NULL OR " if held else ""
    values = ", ".join(
        f"'known{i}', CASE WHEN {_IS_ROW} AND ({trusted}NOT {_lacks(i)}) THEN struct(row.c{i} AS v) END"
        for i, _ in _at(columns)
    )
    sources = events.where("NOT kept").select(
        F.expr(key_text).alias("from_key"), F.col("tx").alias("from_tx"), "over", "pos", "rank", "n",
        F.expr(f"named_struct({values})").alias("values"),
    )  # fmt: skip
    # A row that the same transaction put over the old key's (a shift of all keys) is not the one that left.
    before = F.expr("from_key = old_key AND pos < to_pos AND NOT (over AND coalesce(from_tx = to_tx, false))")
    best = (
        waiting.join(sources, before)
        .groupBy("to_k", "to_n")
        .agg(F.expr("max_by(values, struct(pos, rank, n))").alias("values"))
    )
    same = F.col("k").eqNullSafe(F.col("to_k")) & (F.col("n") == F.col("to_n"))
    joined = events.join(best, same, "left").select(*events.columns, "values.*")
    joined = joined.withColumn("lacked", F.size("missing"))
    taken = _with_known(joined, columns)
    return taken.withColumn("found", F.expr("lacked > 0 AND size(missing) < lacked")).select(*events.columns, "found")
