"""What people copy: the whole message through from_json, the newest change by row_number, a MERGE; Spark's and Delta's
own defaults. It keeps no progress with the rows and knows no rule beyond these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from tests.support.kafka import end_offsets

# What the service's session has otherwise, as Spark and Delta have it.
_DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.databricks.delta.merge.materializeSource": "auto",
    "spark.sql.constraintPropagation.enabled": "true",
}


class Recipe:
    """One topic and its table; `columns`: name to Spark type, the first one is the key."""

    def __init__(self, session: SparkSession, kafka: str, topic: str, folder: Path, columns: Mapping[str, str]) -> None:
        self.topic = topic
        self.table = folder / "t"
        self._session = session.newSession()
        for name, value in _DEFAULTS.items():
            self._session.conf.set(name, value)
        self._kafka = kafka
        self._columns = columns
        self._key = next(iter(columns))
        self._at = 0

    def take(self) -> None:
        """Takes in what is in the topic (one partition)."""
        end = end_offsets(self._kafka, self.topic)[0]
        raw = (
            self._session.read.format("kafka")
            .option("kafka.bootstrap.servers", self._kafka)
            .option("subscribe", self.topic)
            .option("startingOffsets", f'{{"{self.topic}":{{"0":{self._at}}}}}')
            .option("endingOffsets", f'{{"{self.topic}":{{"0":{end}}}}}')
            .load()
        )
        self._merge(self._newest(raw))
        self._at = end

    def _newest(self, raw: DataFrame) -> DataFrame:
        row = f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in self._columns.items())}>"
        envelope = f"op STRING, before {row}, after {row}, source STRUCT<commit_lsn: STRING, change_lsn: STRING>"
        key = F.from_json(F.col("key").cast("string"), f"{self._key} {self._columns[self._key]}")[self._key]
        order = Window.partitionBy("key").orderBy(F.desc("p.source.commit_lsn"), F.desc("p.source.change_lsn"))
        return (
            raw.where("value IS NOT NULL")
            .select(key.alias("key"), F.from_json(F.col("value").cast("string"), envelope).alias("p"))
            .withColumn("n", F.row_number().over(order))
            .where("n = 1")
            .select("key", "p.op", "p.after.*")
        )

    def _merge(self, newest: DataFrame) -> None:
        if not self.table.exists():
            newest.where("op <> 'd'").select(*self._columns).write.format("delta").save(str(self.table))
            return
        values = {name: f"s.{name}" for name in self._columns}
        (
            DeltaTable.forPath(self._session, str(self.table))
            .alias("t")
            .merge(newest.alias("s"), f"t.{self._key} = s.key")
            .whenMatchedDelete("s.op = 'd'")
            .whenMatchedUpdate(None, dict(values))
            .whenNotMatchedInsert("s.op <> 'd'", dict(values))
            .execute()
        )
