"""Deletes of which nothing tells whose they are, counted.

A transaction that creates a key over a living row and then deletes the key once did either move the old row away
(under a deferred constraint the delete comes after the create) or delete the new one. The headers of a key change tell
which; where there are none the delete counts where its position puts it, and is counted here (rule 2.7). Where its
create came in an earlier slice it is not seen.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.position_sql import is_later
from distributary.merge.queries import Query


class Doubts:
    """The doubts of one slice's folded keys. Whether there are any is seen along with another job on the keys: where
    they are kept for Spark, or where they are collected (see flat.py). A slice without deletes has none."""

    def __init__(self) -> None:
        self._seen = Observation()
        self._told: int | None = None

    def watched(self, keys: DataFrame) -> DataFrame:
        """The keys, unchanged: the next action on them looks for doubts. To be asked for once."""
        return keys.observe(self._seen, F.sum(F.size("doubts")).alias("doubts"))

    def told(self, some: int) -> None:
        """How many the collected keys have."""
        self._told = some

    def count(self, keys: Query, to: Destination, part: DecodedSlice) -> int:
        """How many there are, after that. A job of its own only if there are some."""
        some = self._told if self._told is not None else self._seen.get["doubts"]
        if not some:
            return 0
        found = keys.frame().select("k", F.inline("doubts")).where(_is_new(to.connector, part))
        if part.first:
            return found.where("create_pos = ''").count()
        held = F.struct(*(F.col(sql.name(n)).cast(kind).alias(f"k{i}") for i, (n, kind) in enumerate(to.key.items())))
        rows = to.lake.rows()
        if "__deleted" in rows.columns:
            rows = rows.where("NOT __deleted")
        rows = rows.select(held.alias("held"), F.col("__position").alias("before"))
        only_read = "contains(before, 'r')" if to.connector == "postgresql" else "false"
        older = F.expr(f"{only_read} OR {is_later(to.connector, 'create_pos', 'before')}")
        known = found.join(rows, F.col("k").eqNullSafe(F.col("held")) & older, "left")
        return known.where("create_pos = '' OR held IS NOT NULL").count()


def _is_new(connector: str, part: DecodedSlice) -> Column:
    """BOOLEAN: the delete was not counted before: it is newer than what its partition had."""
    new = F.lit(True)
    for partition, position in part.reached.items():
        later = F.expr(is_later(connector, "pos", sql.text(position)))
        new = F.when(F.col("partition") == partition, later).otherwise(new)
    return new
