"""Records sent again, told from new ones: for tables that keep every change.

A change is known again by its position, its key and its operation; a snapshot row also by the time it was read at.
Where rows share a position (those of a snapshot, and of a COPY into PostgreSQL) they are known by what is in them, too:
the record's key need not be unique (`message.key.columns`). In a table without key a change is known by its row, and
rows of one position may be equal: they are numbered within a run, and of the rows with one number one is kept. A run
ends where positions go back: there the connector started to send again. PostgreSQL marks a start itself, by a commit
level that it does not know yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary.merge.position_sql import lsn_of

# By default Spark writes times to the millisecond.
_ALL_DIGITS = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
_IDENTITY = ("kind", "at", "read_at", "who")


@dataclass(frozen=True)
class Identity:
    """What tells two changes of a table apart."""

    connector: str
    keyed: bool

    def columns(self) -> list[Column]:
        """at STRING, read_at BIGINT, who: with kind the same for a record and the same record sent again. Of a record
        with a key who is a STRUCT: k STRUCT and row BIGINT, NULL where no other record of the key has its position."""
        # The first transaction after a start is sent without its commit level: the rest of the position tells it.
        at = f"concat(left(pos, 4), {lsn_of('pos')})" if self.connector == "postgresql" else "pos"
        share = "kind IN ('r', 'c')" if self.connector == "postgresql" else "kind = 'r'"
        # A record that is sent again may be read into other columns than before: where its key tells it, that does.
        of_key = f"named_struct('k', k, 'row', CASE WHEN {share} THEN xxhash64(to_json(row, {_ALL_DIGITS})) END)"
        return [
            F.expr(at).alias("at"),
            F.expr("CASE WHEN kind = 'r' THEN ts_ms END").alias("read_at"),
            F.expr(of_key if self.keyed else "to_json(row)").alias("who"),
        ]


@dataclass(frozen=True)
class Extent:
    """Where a slice lies in the source's log; `starts`: per partition where it was cut, its first offset and that
    record's position."""

    positions: tuple[str, str]
    times: tuple[int, int] | None
    starts: Mapping[int, tuple[int, str]]


def extent(records: DataFrame) -> Extent | None:
    """Where records lie (one Spark job); None where there are none."""
    rows = (
        records.groupBy("partition")
        .agg(
            F.min("pos").alias("low"),
            F.max("pos").alias("high"),
            F.min("ts_ms").alias("first"),
            F.max("ts_ms").alias("last"),
            F.expr("count_if(ts_ms IS NULL)").alias("untimed"),
            F.expr("min(struct(offset, pos))").alias("start"),
        )
        .collect()
    )
    if not rows:
        return None
    timed = not any(row["untimed"] for row in rows)
    return Extent(
        (min(row["low"] for row in rows), max(row["high"] for row in rows)),
        (min(row["first"] for row in rows), max(row["last"] for row in rows)) if timed else None,
        {row["partition"]: (row["start"]["offset"], row["start"]["pos"]) for row in rows},
    )


def first_sent(records: DataFrame, identity: Identity, partitions: int) -> DataFrame:
    """The records without those that come a second time, with the columns of their identity, and run INT and number
    INT: the how manieth of equal rows of the run it is."""
    known = records.select("*", *identity.columns())
    if identity.keyed:
        known = known.select("*", F.lit(0).alias("run"), F.lit(1).alias("number"))
    else:
        known = _numbered(known, partitions)
    order = Window.partitionBy(*_IDENTITY, "number").orderBy("run", "timestamp", "partition", "offset")
    return known.withColumn("nth", F.row_number().over(order)).where("nth = 1").drop("nth")


def _numbered(records: DataFrame, partitions: int) -> DataFrame:
    # Records without key go to any partition. Equal timestamps tell nothing of their order, positions do.
    arrival = ["offset"] if partitions == 1 else ["timestamp", "pos", "partition", "offset"]
    everything = Window.partitionBy(F.lit(0)).orderBy(*arrival)
    before = F.lag(F.struct("pos", "read_at")).over(everything)
    starts = F.expr("before.pos > pos OR (before.pos = pos AND before.read_at > read_at)") | F.expr(
        "pos LIKE '%?%' AND before.pos NOT LIKE '%?%'"
    )
    marked = records.withColumn("before", before).withColumn("starts", F.coalesce(starts, F.lit(False)))
    ran = marked.withColumn("run", F.sum(F.col("starts").cast("int")).over(everything).cast("int"))
    equal = Window.partitionBy(*_IDENTITY, "run").orderBy(*arrival)
    return ran.withColumn("number", F.row_number().over(equal)).drop("before", "starts")


def not_held(sent: DataFrame, held: DataFrame, identity: Identity, lies: Extent) -> DataFrame:
    """What first_sent() gave, without what the table holds already.

    `held`: the table's rows with kind, pos, ts_ms, partition, offset, k, row and __source_ts.
    """
    if identity.connector == "postgresql":
        # A position without commit level has no range. A change that is sent again has its old commit time.
        if lies.times is not None:
            first, last = (F.timestamp_millis(F.lit(time)) for time in lies.times)
            held = held.where(F.col("__source_ts").between(first, last))
    else:
        held = held.where(F.col("pos").between(*map(F.lit, lies.positions)))
    held = held.select("*", *identity.columns())
    have = held.groupBy(*_IDENTITY).agg(F.count("*").alias("have"))
    same = [sent[name].eqNullSafe(have[name]) for name in _IDENTITY]
    joined = sent.join(have, same, "left").select(*(sent[name] for name in sent.columns), "have")
    new = F.col("number") > F.coalesce("have", F.lit(0))
    if not identity.keyed:
        joined = joined.join(F.broadcast(_continued(held, lies)), F.col("pos") == F.col("going_on"), "left")
        new = new | ((F.col("run") == 0) & F.col("going_on").isNotNull())
    return joined.where(new)


def _continued(held: DataFrame, lies: Extent) -> DataFrame:
    """going_on STRING: positions in whose middle the slice was cut: the record before it was kept, at that position."""
    cuts = F.lit(False)
    for partition, (offset, position) in lies.starts.items():
        cuts = cuts | (
            (F.col("partition") == partition) & (F.col("offset") == offset - 1) & (F.col("pos") == F.lit(position))
        )
    return held.where(cuts).select(F.col("pos").alias("going_on")).distinct()
