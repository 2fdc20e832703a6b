"""What a slice of a topic holds, told by one aggregation: it decides what the merge of this slice needs.

Rules that only some slices need (truncates, late records, snapshot rows among changes) cost only those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType, StringType, StructType

from distributary.decode.reasons import NOT_A_ROW, NOT_AN_ENVELOPE
from distributary.merge.position_sql import is_later
from distributary.merge.progress import InTransaction, Last, Progress
from distributary.merge.queries import Queries

_KEY_TYPES = (IntegralType, StringType, DateType)
_OF_ANOTHER_FORM = f"'{NOT_AN_ENVELOPE.code}', '{NOT_A_ROW.code}'"
STREAMED = "kind IN ('c', 'u', 'd', 't') AND bad IS NULL"


@dataclass(frozen=True)
class PartitionFacts:
    """One partition of the slice. `position` and `ts_ms` are the largest of its streamed changes (snapshots aside).

    `deleted_key` is the hash of the key whose delete was the partition's last record, else None. `transaction` is that
    of the change with the largest position, also if it went to the quarantine table; None where none is told.
    """

    records: int
    position: str | None
    ts_ms: int | None
    deleted_key: int | None
    transaction: InTransaction | None = None


@dataclass(frozen=True)
class Facts:
    """One slice: counts of records by kind, what is special about it, and its partitions.

    `moved` counts halves of key changes that name the other key. `lone`: some tombstones follow no delete. `late`: some
    record may not be newer than all that the table has taken in. `placeholders` counts rows with values that were not
    sent, bad ones among them. `filled`: rows of the table may hold older values for such. `suspect`: the source may
    have gone back (see went_back). `snapshot` is the position of a snapshot of the table that ends in the slice,
    `lowest` the lowest one of its records, `read` the largest one of its snapshot rows, bad ones among them; `unread`
    counts bad records that may be snapshot rows. `deletes` counts tombstones too. `other_form` has by partition the
    offset of the first record that is no envelope where the others are, or is one. `payload` is what all records'
    payloads have in bytes. `keys` are the smallest and the largest value of the key's first column, None where nothing
    has one, or it is of a type by which no files are passed over.
    """

    connector: str
    records: int
    applied: int
    bad: int
    reads: int
    changes: int
    deletes: int
    moved: int
    lone: bool
    truncated: str | None
    late: bool
    placeholders: int
    filled: bool
    suspect: bool
    newest_ts_ms: int | None
    read_ts_ms: int | None
    partitions: Mapping[int, PartitionFacts]
    snapshot: str | None = None
    lowest: str | None = None
    read: str | None = None
    unread: int = 0
    payload: int = 0
    keys: tuple[Any, Any] | None = None
    creates: int = 0
    tombstones: int = 0
    other_form: Mapping[int, int] = field(default_factory=dict)

    @property
    def operations(self) -> dict[str, int]:
        """How many records of each operation the slice has, without those that can't be applied."""
        deletes = self.deletes - self.tombstones
        counts = {
            "create": self.creates,
            "update": self.changes - self.creates - deletes,
            "delete": deletes,
            "read": self.reads,
            "tombstone": self.tombstones,
            "message": self.records - self.applied - self.bad,
        }
        return {**counts, "truncate": self.records - self.bad - sum(counts.values())}

    @property
    def position(self) -> str | None:
        """The largest position of the slice's streamed changes."""
        return max((p.position for p in self.partitions.values() if p.position), default=None)


def facts(records: DataFrame, progress: Progress, queries: Queries) -> Facts:
    """Looks at decoded records once (one Spark job), against what the table has taken in before."""
    # The query names nothing of the progress, so that it is made once and not for every slice.
    rows = queries.over(records, "facts", _counted).collect()
    return _combined({row["partition"]: row for row in rows}, progress)


def _counted(records: DataFrame) -> DataFrame:
    """What _combined asks of each partition."""
    # What many of the counts ask is asked once a record.
    asked = records.select(
        "*",
        F.expr("bad IS NULL").alias("good"),
        F.expr("kind IN ('c', 'u', 'd') AND bad IS NULL").alias("change"),
        F.expr("kind = 'r' AND bad IS NULL").alias("snapshot_row"),
        F.expr(STREAMED).alias("streamed"),
        F.expr(f"{STREAMED} AND pos LIKE '%?%'").alias("unclear"),
    )
    plain = "streamed AND NOT unclear"
    return asked.groupBy("partition").agg(
        F.expr("count(1)").alias("records"),
        F.expr("count_if(good AND kind <> 'm')").alias("applied"),
        F.expr("count_if(NOT good)").alias("bad"),
        F.expr("count_if(snapshot_row)").alias("reads"),
        F.expr("count_if(change)").alias("changes"),
        F.expr("count_if(change AND kind = 'c')").alias("creates"),
        F.expr("count_if(good AND kind IN ('d', 'x'))").alias("deletes"),
        F.expr("count_if(good AND kind = 'x' AND NOT carried)").alias("tombstones"),
        F.expr("count_if(change AND kind = 'd')").alias("deletes_told"),
        F.expr("max(ts_ms) FILTER (WHERE snapshot_row)").alias("read_ts_ms"),
        F.expr("count_if((moved_in OR moved_out) AND good)").alias("moved"),
        F.expr("max(pos) FILTER (WHERE good AND kind = 't')").alias("truncated"),
        F.expr("min(pos) FILTER (WHERE streamed)").alias("lowest"),
        F.expr("count_if(unclear)").alias("unclear"),
        F.expr(f"min(pos) FILTER (WHERE {plain})").alias("lowest_plain"),
        # Bad ones too: where a column's type can't hold the placeholder, it is a bad value until `missing` is read.
        F.expr("count_if(placeholder AND kind IN ('c', 'u', 'r'))").alias("placeholders"),
        F.expr("max(pos) FILTER (WHERE streamed)").alias("position"),
        F.expr("max(ts_ms) FILTER (WHERE streamed)").alias("ts_ms"),
        F.expr("max(ts_ms) FILTER (WHERE good)").alias("newest_ts_ms"),
        # A change with a later commit time than the one with the largest position: perhaps the source went back.
        F.expr(f"max_by(ts_ms, pos) FILTER (WHERE {plain})").alias("ts_ms_at_position"),
        F.expr("max_by(struct(kind, kh, good), offset)").alias("last"),
        F.expr(_in_transaction(records)).alias("transaction"),
        F.expr("min(pos) FILTER (WHERE snapshot_row)").alias("lowest_read"),
        F.expr("max(pos) FILTER (WHERE kind = 'r')").alias("read"),
        F.expr("count_if(NOT good AND kind NOT IN ('c', 'u', 'd', 't', 'x'))").alias("unread"),
        F.expr(f"min(offset) FILTER (WHERE NOT good AND bad.code IN ({_OF_ANOTHER_FORM}))").alias("other_form"),
        F.expr("max(pos) FILTER (WHERE ends)").alias("snapshot"),
        F.expr("sum(size)").alias("payload"),
        *(F.expr(f"{end}(k.k0)").alias(f"{end}_key") for end in ("min", "max") if _has_ends(records)),
        # For the largest of texts alone Spark sorts all records; not where something is collected beside.
        F.expr("collect_list(CASE WHEN offset < 0 THEN 1 END)").alias("nothing"),
    )


def _has_ends(records: DataFrame) -> bool:
    """Whether the key's first column is of a type that choice.why_not_key asks for."""
    key = records.schema["k"].dataType
    return isinstance(key, StructType) and "k0" in key.names and isinstance(key["k0"].dataType, _KEY_TYPES)


def _in_transaction(records: DataFrame) -> str:
    if "transaction" not in records.columns:
        return "NULL"
    told = "kind IN ('c', 'u', 'd', 't') AND pos NOT LIKE '%?%' AND transaction.id IS NOT NULL"
    return f"max(struct(pos AS position, transaction.order, transaction.id)) FILTER (WHERE {told})"


def _went_lower(row: Row, last: Last | None) -> bool:
    """Whether a partition may have a change committed later than its last one, but at a lower position."""
    if last is None or last.position is None or "?" in last.position or last.ts_ms is None:
        return False
    if row["lowest_plain"] is None or row["ts_ms"] is None:
        return False
    return bool(row["lowest_plain"] < last.position and row["ts_ms"] > last.ts_ms)


def _combined(rows: Mapping[int, Row], progress: Progress) -> Facts:
    def total(name: str) -> int:
        return sum(row[name] for row in rows.values())

    lowest = _lowest(row["lowest"] for row in rows.values())
    lowest_read = _lowest(row["lowest_read"] for row in rows.values())
    known = _largest((progress.position, progress.snapshot.position if progress.snapshot else None))
    return Facts(
        connector=progress.connector,
        records=total("records"),
        applied=total("applied"),
        bad=total("bad"),
        reads=total("reads"),
        changes=total("changes"),
        deletes=total("deletes"),
        moved=total("moved"),
        lone=any(row["tombstones"] > row["deletes_told"] for row in rows.values()),
        truncated=_largest(row["truncated"] for row in rows.values()),
        late=total("unclear") > 0 or _is_late(lowest, known) or _is_late_read(lowest_read, progress),
        placeholders=total("placeholders"),
        filled=progress.filled,
        suspect=any(
            _went_lower(row, progress.last.get(p))
            or (row["ts_ms_at_position"] is not None and row["ts_ms"] > row["ts_ms_at_position"])
            for p, row in rows.items()
        ),
        newest_ts_ms=max(
            (row["newest_ts_ms"] for row in rows.values() if row["newest_ts_ms"] is not None), default=None
        ),
        read_ts_ms=max((row["read_ts_ms"] for row in rows.values() if row["read_ts_ms"] is not None), default=None),
        partitions={
            p: PartitionFacts(
                row["records"],
                row["position"],
                row["ts_ms"],
                row["last"]["kh"] if row["last"]["kind"] == "d" and row["last"]["good"] else None,
                InTransaction(**row["transaction"].asDict()) if row["transaction"] is not None else None,
            )
            for p, row in rows.items()
        },
        snapshot=_largest(row["snapshot"] for row in rows.values()),
        lowest=_lowest((lowest, lowest_read)),
        read=_largest(row["read"] for row in rows.values()),
        unread=total("unread"),
        payload=total("payload"),
        keys=_ends(rows.values()),
        creates=total("creates"),
        tombstones=total("deletes") - total("deletes_told"),
        other_form={p: row["other_form"] for p, row in rows.items() if row["other_form"] is not None},
    )


def _is_late(lowest: str | None, known: str | None) -> bool:
    return lowest is not None and known is not None and lowest <= known


def _is_late_read(lowest: str | None, progress: Progress) -> bool:
    """A snapshot row that is sent again may be of a key that was deleted since. PostgreSQL's are looked at anyway; the
    rows of the newest complete snapshot itself are not late."""
    if progress.connector == "postgresql" or lowest is None:
        return False
    of_older = progress.snapshot is not None and lowest < progress.snapshot.position
    return of_older or _is_late(lowest, progress.position)


def _ends(rows: Iterable[Row]) -> tuple[Any, Any] | None:
    """Of the key's first column."""
    ends = [(row["min_key"], row["max_key"]) for row in rows if "min_key" in row]
    ends = [(low, high) for low, high in ends if low is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _lowest(values: Iterable[str | None]) -> str | None:
    return min((value for value in values if value is not None), default=None)


def _largest(values: Iterable[str | None]) -> str | None:
    return max((value for value in values if value is not None), default=None)


@dataclass(frozen=True)
class WentBack:
    """A streamed change that was committed later than an earlier one, at a lower position: where, and both of each."""

    partition: int
    offset: int
    position: str
    ts_ms: int
    last_position: str
    last_ts_ms: int


def went_back(records: DataFrame, progress: Progress) -> list[WentBack]:
    """Of each partition the first record that shows that the source was restored or failed over to an earlier position.

    A record that is sent again has its old commit time and does not count. Looks at the records in the order of their
    offsets, so it is asked only where Facts.suspect says that there may be one.
    """
    before = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    known = F.lit(None).cast("struct<position: string, ts_ms: bigint>")
    for partition, last in progress.last.items():
        if last.position is not None and "?" not in last.position and last.ts_ms is not None:
            held = F.struct(F.lit(last.position).alias("position"), F.lit(last.ts_ms).cast("bigint").alias("ts_ms"))
            known = F.when(F.col("partition") == partition, held).otherwise(known)
    plain = records.where(f"{STREAMED} AND pos NOT LIKE '%?%'").select("partition", "offset", "pos", "ts_ms")
    walked = plain.select(
        "*",
        F.greatest(F.max("pos").over(before), known["position"]).alias("last_position"),
        F.greatest(F.max("ts_ms").over(before), known["ts_ms"]).alias("last_ts_ms"),
    )
    # A lower place in another server's log may yet be later by its GTID.
    lower = f"pos < last_position AND NOT {is_later(progress.connector, 'pos', 'last_position')}"
    shows = walked.where(f"{lower} AND ts_ms > last_ts_ms").groupBy("partition")
    first = shows.agg(F.min(F.struct("offset", "pos", "ts_ms", "last_position", "last_ts_ms")).alias("first"))
    return [WentBack(row["partition"], *row["first"]) for row in sorted(first.collect())]
