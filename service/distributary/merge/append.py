"""`mode: append`: every change once, as a row of its own.

Spark jobs of a slice: the write. Where records may have been taken in before (late ones, snapshot rows) two: a look at
where the slice lies in the source's log, and the write, which leaves out what the table has in that range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.merge.here import appended_here
from distributary.merge.mode import ORIGIN_COLUMNS, DecodedSlice, Destination, Prepared
from distributary.merge.repeats import Identity, extent, first_sent, not_held

SERVICE_COLUMNS: Mapping[str, str] = {**ORIGIN_COLUMNS, "__unavailable": "array<string>"}


class AppendMode:
    """`mode: append`: changes are kept as they come. A delete has its `before` in the row's columns, a truncate only
    its position (none is kept with `truncate: ignore`); a tombstone and a logical message add nothing."""

    def __init__(self, settings: TableSettings) -> None:
        self._kinds = ["c", "u", "r", "d"] + ([] if settings.truncate == "ignore" else ["t"])

    @property
    def service_columns(self) -> Mapping[str, str]:
        """Where a row comes from, and which of its values the source did not send."""
        return SERVICE_COLUMNS

    @property
    def reads_before(self) -> bool:
        """Deletes keep the row that was there."""
        return True

    def write(self, to: Destination, part: DecodedSlice) -> Prepared:
        """Appends what the table does not have yet."""
        records = self.kept(part.records, to)
        identity = Identity(to.connector, keyed=bool(to.key))
        sent = first_sent(records, identity, partitions=len(part.found.partitions))
        if not part.first and (part.found.late or part.found.reads):
            lies = extent(records)
            if lies is None:
                return Prepared(to.lake.nothing())
            if part.replayed:
                lies = replace(lies, starts={})
            sent = not_held(sent, as_records(to.lake.rows(), to), identity, lies)
        rows = sent.select(*as_columns(to))
        return Prepared(appended_here(to, part, rows) or to.lake.append(rows))

    def kept(self, records: DataFrame, to: Destination) -> DataFrame:
        """Those of the decoded records that are kept, each with the row that it leaves in the table."""
        kept = records.where(F.col("kind").isin(self._kinds) & F.col("bad").isNull())
        return kept.withColumn("row", F.expr(_kept_row(to)))


def _kept_row(to: Destination) -> str:
    """The row that a change leaves in the table: after it, or for a delete before it; at least its key is known."""
    at = {name: i for i, name in enumerate(to.key)}
    known = ", ".join(
        f"'c{i}', CAST({f'k.k{at[name]}' if name in at else 'NULL'} AS {kind})"
        for i, (name, kind) in enumerate(to.columns.items())
    )
    return f"CASE WHEN kind = 'd' THEN coalesce(before, named_struct({known})) ELSE row END"


def as_columns(to: Destination) -> list[Column]:
    """The table's columns of records that are kept."""
    names = ", ".join(sql.text(name) for name in to.columns)
    return [
        *(F.expr(f"row.c{i}").alias(name) for i, name in enumerate(to.columns)),
        F.col("kind").alias("__op"),
        F.expr("timestamp_millis(ts_ms)").alias("__source_ts"),
        F.col("pos").alias("__position"),
        F.lit(to.topic).alias("__topic"),
        F.col("partition").alias("__partition"),
        F.col("offset").alias("__offset"),
        F.expr(f"CASE WHEN size(missing) > 0 THEN transform(missing, i_ -> array({names})[i_]) END").alias(
            "__unavailable"
        ),
    ]


def as_records(held: DataFrame, to: Destination) -> DataFrame:
    """The table's rows, as far as they tell which records they come from."""
    row = F.struct(*(F.col(sql.name(name)).alias(f"c{i}") for i, name in enumerate(to.columns)))
    key = F.struct(*(F.col(sql.name(name)).alias(f"k{i}") for i, name in enumerate(to.key))) if to.key else F.lit(None)
    return held.select(
        F.col("__op").alias("kind"),
        F.col("__position").alias("pos"),
        F.unix_millis("__source_ts").alias("ts_ms"),
        F.col("__partition").alias("partition"),
        F.col("__offset").alias("offset"),
        key.alias("k"),
        row.alias("row"),
        "__source_ts",
        "__unavailable",
    )
