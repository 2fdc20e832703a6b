"""The quarantine table: records that can't be applied, as raw bytes with their place, the reason and the time."""

from __future__ import annotations

import threading

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

_SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, table STRING, reason STRING, message STRING,"
    " quarantined_at TIMESTAMP, replayed_at TIMESTAMP"
)


class Quarantine:
    """One Delta table for all tables of the service, at `path`. Each record is in it once, however often it is met."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session.newSession()
        self._path = path
        self._lock = threading.Lock()

    def add(self, table: str, raw: DataFrame, bad: DataFrame) -> dict[str, int]:
        """Adds the records of `raw` (Kafka's columns) that `bad` (partition, offset, bad STRUCT<code, message>) names.

        Done before the table's own commit counts them as taken in; a slice that is taken again adds none twice. Gives
        how many records there are by reason.
        """
        # They are to be sent to every executor: fetched here, they can be counted on the way.
        named = bad.select("partition", "offset", "bad.code", "bad.message").toArrow()
        found = F.broadcast(raw.sparkSession.createDataFrame(named))
        rows = raw.join(found, ["partition", "offset"]).select(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "key",
            "value",
            "headers",
            F.lit(table).alias("table"),
            F.col("code").alias("reason"),
            "message",
            F.current_timestamp().alias("quarantined_at"),
            F.lit(None).cast("timestamp").alias("replayed_at"),
        )
        with self._lock:  # tables run side by side, and two MERGEs into one table would get in each other's way
            self._ensure()
            (
                DeltaTable.forPath(self._session, self._path)
                .alias("q")
                .merge(rows.alias("b"), "q.topic = b.topic AND q.partition = b.partition AND q.offset = b.offset")
                .whenNotMatchedInsertAll()
                .execute()
            )
        return {pair["values"]: pair["counts"] for pair in named["code"].value_counts().to_pylist()}

    def _ensure(self) -> None:
        schema = _parse_datatype_string(_SCHEMA)
        assert isinstance(schema, StructType)
        DeltaTable.createIfNotExists(self._session).location(self._path).addColumns(schema).execute()
