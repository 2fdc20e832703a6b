"""The quarantine table: records that can't be applied, as raw bytes with topic, partition, offset, reason and time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary.error_mapping import classify
from distributary.lake.reader_batch import read_few_rows_at_once
from distributary.launch.small_commits import CHECKPOINTED
from distributary.quarantine.redaction import redact

_SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, table STRING, reason STRING, message STRING,"
    " quarantined_at TIMESTAMP, replayed_at TIMESTAMP"
)

_OF_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_OF_VERDICT = ("reason", "message", "quarantined_at", "replayed_at")


class Quarantine:
    """One Delta table at `path` for all tables of the service. Adding a record again has no effect."""

    time_column = "quarantined_at"

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session.newSession()
        read_few_rows_at_once(self._session)
        self.path = path
        self.lock = threading.Lock()
        """Must be held to write to the table."""
        self.writes = 0
        """Number of writes by this process."""

    def add(
        self, table: str, raw: Callable[[pa.Table], DataFrame], bad: pa.Table, redacted_columns: Collection[str] = ()
    ) -> dict[str, int]:
        """Adds the records in `bad` (partition, offset, reason, message) without the values of the columns
        `redacted_columns`. `raw` returns the records of given offsets (partition, offset) with all of Kafka's columns.

        Must be called before the table's own commit counts the records as applied. A repeated batch adds none twice.
        Returns the number of records by reason.
        """
        named = bad.select(["partition", "offset", "reason", "message"])
        records = raw(named)
        reasons = F.broadcast(records.sparkSession.createDataFrame(named))
        rows = redact(records.join(reasons, ["partition", "offset"]), redacted_columns).select(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "key",
            "value",
            "headers",
            F.lit(table).alias("table"),
            "reason",
            "message",
            F.current_timestamp().alias("quarantined_at"),
            F.lit(None).cast("timestamp").alias("replayed_at"),
        )
        with self._writing():  # tables run in parallel, and two MERGEs into one table would conflict
            self._ensure()
            done = self._merge(rows, "b").whenNotMatchedInsertAll().execute().head()
            if done is None or done["num_inserted_rows"] < named.num_rows:
                # A rebuild may reject a record again that was replayed before: it is open again.
                verdict: dict[str, str | Column] = {name: f"b.{name}" for name in _OF_VERDICT}
                self._merge(rows, "b").whenMatchedUpdate("q.replayed_at IS NOT NULL", verdict).execute()
        return {pair["values"]: pair["counts"] for pair in named["reason"].value_counts().to_pylist()}

    def waiting(self, session: SparkSession, topic: str, but: str = "") -> DataFrame | None:
        """The topic's records that were not applied since, without those with the reason `but`; None if there are none.
        Redacted values are missing (see redaction.py)."""
        if not DeltaTable.isDeltaTable(self._session, self.path):
            return None
        rows = session.read.format("delta").load(self.path)
        wanted = (F.col("topic") == topic) & F.col("replayed_at").isNull() & (F.col("reason") != but)
        rows = rows.where(wanted).select(*_OF_KAFKA)
        return None if rows.isEmpty() else rows

    def mark_applied(self, topic: str, records: pa.Table) -> None:
        """Marks records as applied. `records` has their partition, offset and timestamp, possibly with duplicates.
        Called after the table's commit: if the call is lost, the records are applied again, which changes nothing."""
        columns = ["partition", "offset", "timestamp"]
        distinct = records.select(columns).group_by(columns).aggregate([])
        named = self._session.createDataFrame(distinct).withColumn("topic", F.lit(topic))
        with self._writing():
            self._merge(named, "a").whenMatchedUpdate(set={"replayed_at": F.current_timestamp()}).execute()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self.lock:
            try:
                yield
            except Exception as error:
                fault = classify(error)
                message = f"the quarantine table can't be written: {fault.message}"
                raise type(fault)(fault.code, message, fault.fix) from error
            finally:
                self.writes += 1

    def _ensure(self) -> None:
        schema = _parse_datatype_string(_SCHEMA)
        assert isinstance(schema, StructType)
        table = DeltaTable.createIfNotExists(self._session).location(self.path).addColumns(schema)
        table.property(*CHECKPOINTED).execute()

    def _merge(self, records: DataFrame, called: str) -> DeltaMergeBuilder:
        """A merge of these records into the table `q`. The timestamp is compared, too, because a recreated topic has
        other records at the same offsets."""
        by_coordinates = " AND ".join(f"q.{name} = {called}.{name}" for name in ("topic", "partition", "offset"))
        same = f"{by_coordinates} AND q.timestamp <=> {called}.timestamp"
        return DeltaTable.forPath(self._session, self.path).alias("q").merge(records.alias(called), same)
