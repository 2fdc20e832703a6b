"""The quarantine table: records that can't be applied, as raw bytes with their place, the reason and the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary.error_mapping import classified
from distributary.lake.reader_batch import read_few_rows_at_once
from distributary.quarantine.redaction import without

_SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, table STRING, reason STRING, message STRING,"
    " quarantined_at TIMESTAMP, replayed_at TIMESTAMP"
)

_OF_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_OF_VERDICT = ("reason", "message", "quarantined_at", "replayed_at")


class Quarantine:
    """One Delta table for all tables of the service, at `path`. Each record is in it once, however often it is met."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session.newSession()
        read_few_rows_at_once(self._session)
        self.path = path
        self.lock = threading.Lock()
        """Who has it writes to the table."""
        self.writes = 0
        """How many times this process has written to it."""

    def add(
        self, table: str, raw: Callable[[pa.Table], DataFrame], bad: pa.Table, withheld: Collection[str] = ()
    ) -> dict[str, int]:
        """Adds the records that `bad` (partition, offset, reason, message) names, without the values of the columns
        `withheld`. `raw` gives the records at some places (partition, offset) with all of Kafka's columns.

        Done before the table's own commit counts them as applied; a batch that is taken again adds none twice. Gives
        how many records there are by reason.
        """
        named = bad.select(["partition", "offset", "reason", "message"])
        records = raw(named)
        found = F.broadcast(records.sparkSession.createDataFrame(named))
        rows = without(records.join(found, ["partition", "offset"]), withheld).select(
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
        with self._writing():  # tables run side by side, and two MERGEs into one table would get in each other's way
            self._ensure()
            done = self._merge(rows, "b").whenNotMatchedInsertAll().execute().head()
            if done is None or done["num_inserted_rows"] < named.num_rows:
                # Applied since, and bad again now that the table is filled anew: it waits once more.
                verdict: dict[str, str | Column] = {name: f"b.{name}" for name in _OF_VERDICT}
                self._merge(rows, "b").whenMatchedUpdate("q.replayed_at IS NOT NULL", verdict).execute()
        return {pair["values"]: pair["counts"] for pair in named["reason"].value_counts().to_pylist()}

    def waiting(self, session: SparkSession, topic: str, but: str = "") -> DataFrame | None:
        """The topic's records that were not applied since, `but` for those of one reason, as Kafka had them without
        what was withheld (see withheld.py); None where there are none."""
        if not DeltaTable.isDeltaTable(self._session, self.path):
            return None
        rows = session.read.format("delta").load(self.path)
        wanted = (F.col("topic") == topic) & F.col("replayed_at").isNull() & (F.col("reason") != but)
        rows = rows.where(wanted).select(*_OF_KAFKA)
        return None if rows.isEmpty() else rows

    def applied(self, topic: str, places: pa.Table) -> None:
        """Marks records that were applied: `places` has partition, offset and timestamp, a record that is two changes
        twice. Done after the table's commit: a record that is applied twice changes nothing."""
        columns = ["partition", "offset", "timestamp"]
        distinct = places.select(columns).group_by(columns).aggregate([])
        named = self._session.createDataFrame(distinct).withColumn("topic", F.lit(topic))
        with self._writing():
            self._merge(named, "a").whenMatchedUpdate(set={"replayed_at": F.current_timestamp()}).execute()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self.lock:
            try:
                yield
            except Exception as error:
                fault = classified(error)
                message = f"the quarantine table can't be written: {fault.message}"
                raise type(fault)(fault.code, message, fault.fix) from error
            finally:
                self.writes += 1

    def _ensure(self) -> None:
        schema = _parse_datatype_string(_SCHEMA)
        assert isinstance(schema, StructType)
        DeltaTable.createIfNotExists(self._session).location(self.path).addColumns(schema).execute()

    def _merge(self, records: DataFrame, called: str) -> DeltaMergeBuilder:
        """A merge of these records into the table `q`. By their time too: a topic that was created again has others at
        its places."""
        by_place = " AND ".join(f"q.{name} = {called}.{name}" for name in ("topic", "partition", "offset"))
        same = f"{by_place} AND q.timestamp <=> {called}.timestamp"
        return DeltaTable.forPath(self._session, self.path).alias("q").merge(records.alias(called), same)
