"""Remembered deletes: for keys that are gone, the position at which they went.

A row that was deleted leaves nothing in the table, so an older change that arrives after the delete (sent again, or
late from another partition) could bring it back. The deletes of a slice are therefore appended to a table of their own
before the slice is committed: what they say is true whether or not the commit comes about. They are read only for a
slice that has records which are not newer than all that the table has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary.decode.position import is_later

REMEMBERED_DAYS = 30


class RememberedDeletes:
    """The deletes of one table, at `path`; one Delta table with the key as k0, k1 …, `position` and `deleted_on`."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._path = path

    def forget_old(self, today: date) -> None:
        """Drops what is older than REMEMBERED_DAYS: whole partitions, no rows are rewritten."""
        if self._exists():
            before = today - timedelta(days=REMEMBERED_DAYS)
            DeltaTable.forPath(self._session, self._path).delete(F.col("deleted_on") < F.lit(before))

    def forget_all(self) -> None:
        """Drops everything: the table is filled anew from the start of its topic."""
        if self._exists():
            DeltaTable.forPath(self._session, self._path).delete()

    def remember(self, keys: DataFrame, today: date) -> None:
        """Adds the folded keys (see fold.folded) that end deleted."""
        gone = keys.where("pos IS NOT NULL AND (w.kind = 'd' OR (wiped AND w IS NULL))")
        self.add(gone.select("k.*", F.col("pos").alias("position")), today)

    def add(self, rows: DataFrame, today: date) -> None:
        """Adds rows of the key as k0, k1 … and `position`, with whatever else a mode recalls of a delete."""
        (
            rows.withColumn("deleted_on", F.lit(today))
            .coalesce(1)
            .write.format("delta")
            .mode("append")
            .option("mergeSchema", "true")
            .partitionBy("deleted_on")
            .save(self._path)
        )

    def all(self) -> DataFrame | None:
        """All that is remembered, as it was added; None where nothing ever was."""
        return self._session.read.format("delta").load(self._path) if self._exists() else None

    def without_older(self, keys: DataFrame, connector: str, key: Mapping[str, str]) -> DataFrame:
        """The folded keys without changes and snapshot rows that are older than a remembered delete of their key."""
        if not self._exists():
            return keys
        names = [f"k{i}" for i in range(len(key))]
        remembered = (
            self._session.read.format("delta")
            .load(self._path)
            .groupBy(F.struct(*names).alias("key"))
            .agg(F.max("position").alias("deleted_at"))
        )
        joined = keys.join(remembered, F.col("k").eqNullSafe(F.col("key")), "left")
        # An equal position is kept: the delete itself when its slice is taken again, or what follows it in one step.
        keep_change = F.expr(f"deleted_at IS NULL OR pos IS NULL OR NOT {is_later(connector, 'deleted_at', 'pos')}")
        keep_read = F.expr(f"deleted_at IS NULL OR {is_later(connector, 'r.pos', 'deleted_at')}")
        return (
            joined.withColumn("w", F.when(keep_change, F.col("w")))
            .withColumn("r", F.when(keep_read, F.col("r")))
            .drop("key", "deleted_at")
            .where("w IS NOT NULL OR r IS NOT NULL OR wiped")
        )

    def _exists(self) -> bool:
        return bool(DeltaTable.isDeltaTable(self._session, self._path))
