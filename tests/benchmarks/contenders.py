"""The ways to keep a table that are compared, each in a process of its own (see separate_process.py).

`service` is the service's worker. `recipe` is what
people copy, `append` writes Kafka's records as they are and does nothing else, `loop` is the recipe without Spark.
All take batches of one partition of one topic into the table of source.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from tests.benchmarks.source import ARROW, COLUMNS
from tests.support.spark import Bench

from distributary.lake.table import LakeTable
from distributary.launch.jars import jars
from distributary.launch.session import open_session

_MACHINE = {"spark.master": "local[2]", "spark.driver.memory": "4g"}
# More than any workload has: how a backlog is cut is the workload's to say.
ANY_NUMBER = 100_000_000


class Contender(Protocol):
    """One way to keep a table."""

    def begin(self, topic: str, folder: Path, at: int) -> None:
        """Goes on with the table in `folder`, whose next offset is `at`; there is none yet where that is not in it."""
        ...

    def take(self, end: int, most: int = ANY_NUMBER) -> None:
        """Applies what the topic has up to this offset, in batches of so many records; returns when it is
        committed."""
        ...


class Service:
    """The service's worker: from the topic's records to the commit, as the service runs it."""

    def __init__(self, kafka: str, rule: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> None:
        self._kafka = kafka
        self._rule = rule
        self._options = options or {}
        self._session = open_session(_MACHINE)

    def begin(self, topic: str, folder: Path, at: int) -> None:  # noqa: ARG002 - the table knows where it is
        folder.mkdir(parents=True, exist_ok=True)
        self._table = table_of(folder)
        self._topic, self._folder = topic, folder
        self._open(ANY_NUMBER)

    def _open(self, most: int) -> None:
        """With a worker whose batches have at most so many records."""
        options = {"trigger": {"max_records": most}, **self._options}
        self._worker = Bench(self._session, self._kafka, self._folder, self._topic, self._rule, options).worker()
        self._worker.start()
        self._most = most

    def take(self, end: int, most: int = ANY_NUMBER) -> None:
        if most != self._most:
            self._open(most)
        self._worker.set_target({0: end})
        while self._worker.has_to_step():
            self._worker.step()

    def grow(self, rows: int) -> None:
        """Puts rows into the table, beside those that are there, until it has so many; in files in the order of their
        keys, as a snapshot leaves them. The table's record counts them, as if they had come as records."""
        lake = LakeTable(self._session, str(self._table), {})
        table = lake.rows()
        has = table.count()
        template = table.limit(1).drop(*COLUMNS)
        made = {"id": "id", **{name: f"CAST({_MADE.get(kind, _MADE_TEXT)} AS {kind})" for name, kind in _REST.items()}}
        new = lake.session.range(has + 1, rows + 1, 1, -(-rows // 500_000)).selectExpr(
            *(f"{value} AS {name}" for name, value in made.items())
        )
        head = lake.head()
        assert head is not None
        assert head.progress is not None
        added = new.crossJoin(template).write.format("delta").mode("append")
        lake.commit(
            head,
            head.progress.next_commit(records=rows),
            lambda _head, record: added.option("userMetadata", record.to_json()).save(lake.path),
        )

    def held(self, keys: Sequence[int]) -> tuple[int, dict[int, str]]:
        """How many rows the table has, and the names of those with these keys; by Spark, which knows deletion
        vectors."""
        table = self._session.read.format("delta").load(str(self._table))
        rows = table.where(F.col("id").isin(list(keys))).select("id", "name").collect()
        return table.count(), {row["id"]: row["name"] for row in rows}


_REST = dict(list(COLUMNS.items())[1:])
_MADE_TEXT = "concat('some text ', hash(id))"
_MADE = {
    "decimal(18,2)": "hash(id) / 100", "double": "hash(id) / 7", "boolean": "id % 2 = 0",
    "date": "date_add(DATE'1910-01-01', CAST(id % 30000 AS INT))", "int": "hash(id)",
    "timestamp_ntz": "timestamp_micros(1714500000000000 + id * 1000)",
}  # fmt: skip


class _Spark:
    """A session as Spark and Delta have it by default."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        settings = {
            **_MACHINE,
            "spark.jars": ",".join(str(jar) for jar in jars()),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._session: SparkSession = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")

    def begin(self, topic: str, folder: Path, at: int) -> None:
        """See Contender."""
        self.go_on(topic, table_of(folder), at)

    def go_on(self, topic: str, table: Path, at: int) -> None:
        """Takes a topic from here on, into that table."""
        self._topic = topic
        self._table = table
        self._at = at

    def take(self, end: int, most: int = ANY_NUMBER) -> None:
        """See Contender."""
        while self._at < end:
            self._apply(self._records(min(end, self._at + most)))

    def _apply(self, raw: DataFrame) -> None:
        raise NotImplementedError

    def _records(self, end: int) -> DataFrame:
        raw = (
            self._session.read.format("kafka")
            .option("kafka.bootstrap.servers", self._kafka)
            .option("subscribe", self._topic)
            .option("startingOffsets", json.dumps({self._topic: {"0": self._at}}))
            .option("endingOffsets", json.dumps({self._topic: {"0": end}}))
            .load()
        )
        self._at = end
        return raw


class Append(_Spark):
    """Kafka's records as they are, appended."""

    def _apply(self, raw: DataFrame) -> None:
        raw.write.format("delta").mode("append").save(str(self._table))


class Recipe(_Spark):
    """What people copy: the whole message through from_json, the newest change by row_number, a MERGE; Spark's and
    Delta's own defaults. It keeps no progress with the rows and knows no rule beyond these."""

    def __init__(self, kafka: str, schema: bool = True) -> None:
        super().__init__(kafka)
        row = "STRUCT<" + ", ".join(f"{name}: {_WIRE.get(kind, kind)}" for name, kind in COLUMNS.items()) + ">"
        envelope = f"op STRING, before {row}, after {row}, source STRUCT<commit_lsn: STRING, change_lsn: STRING>"
        self._value = f"payload STRUCT<{envelope}>" if schema else envelope
        self._key = "payload STRUCT<id: BIGINT>" if schema else "id BIGINT"
        self._inner = "m.payload" if schema else "m"
        self._id = "k.payload.id" if schema else "k.id"

    def _apply(self, raw: DataFrame) -> None:
        newest = self._newest(raw)
        if not self._table.exists():
            newest.where("op <> 'd'").select(*COLUMNS).write.format("delta").save(str(self._table))
            return
        values = {name: f"s.{name}" for name in COLUMNS}
        (
            SparkTable.forPath(self._session, str(self._table))
            .alias("t")
            .merge(newest.alias("s"), "t.id = s.key")
            .whenMatchedDelete("s.op = 'd'")
            .whenMatchedUpdate(None, dict(values))
            .whenNotMatchedInsert("s.op <> 'd'", dict(values))
            .execute()
        )

    def _newest(self, raw: DataFrame) -> DataFrame:
        order = Window.partitionBy("key").orderBy(F.desc("p.source.commit_lsn"), F.desc("p.source.change_lsn"))
        parsed = raw.where("value IS NOT NULL").select(
            F.from_json(F.col("key").cast("string"), self._key).alias("k"),
            F.from_json(F.col("value").cast("string"), self._value).alias("m"),
        )
        return (
            parsed.select(F.expr(self._id).alias("key"), F.expr(self._inner).alias("p"))
            .withColumn("n", F.row_number().over(order))
            .where("n = 1")
            .select(
                "key",
                "p.op",
                *(F.expr(_TYPED.get(k, "{}").format(f"p.after.{c}")).alias(c) for c, k in COLUMNS.items()),
            )
        )


# How the recipe's authors turn what Connect writes into what the column is.
_WIRE = {"decimal(18,2)": "STRING", "date": "INT", "timestamp_ntz": "BIGINT"}
_TYPED = {
    "decimal(18,2)": "CAST(conv(hex(unbase64({})), 16, 10) / 100 AS DECIMAL(18,2))",
    "date": "date_from_unix_date({})",
    "timestamp_ntz": "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)",
}


class Loop:
    """A consumer, a dict and the `deltalake` library: the recipe without Spark, for small batches."""

    def __init__(self, kafka: str) -> None:
        settings = {"bootstrap.servers": kafka, "group.id": "loop", "enable.auto.commit": False}
        self._consumer = Consumer(settings)

    def begin(self, topic: str, folder: Path, at: int) -> None:
        """See Contender."""
        self._table = table_of(folder)
        self._at = at
        self._consumer.assign([TopicPartition(topic, 0, at)])

    def take(self, end: int, most: int = ANY_NUMBER) -> None:
        """See Contender."""
        assert end - self._at <= most, "it takes small batches alone"
        newest: dict[int, tuple[tuple[str, str], dict[str, Any] | None]] = {}
        while self._at < end:
            for message in self._consumer.consume(end - self._at, 1.0):
                self._at = (message.offset() or 0) + 1
                value = message.value()
                if value is None:
                    continue
                key = json.loads(message.key() or b"")["payload"]["id"]
                change = json.loads(value)["payload"]
                place = (change["source"]["commit_lsn"], change["source"]["change_lsn"] or "")
                if key not in newest or newest[key][0] <= place:
                    newest[key] = (place, change["after"])
        rows = [_typed(row) for _, row in newest.values() if row is not None]
        given = pa.Table.from_pylist(rows, schema=ARROW)
        if not self._table.exists():
            write_deltalake(str(self._table), given)
            return
        gone = [{"id": key} for key, (_, row) in newest.items() if row is None]
        source = given.append_column("gone", pa.array([False] * len(rows), pa.bool_()))
        source = pa.concat_tables([source, pa.Table.from_pylist([{**g, "gone": True} for g in gone], source.schema)])
        values = {name: f"s.{name}" for name in COLUMNS}
        (
            DeltaTable(str(self._table))
            .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_delete("s.gone")
            .when_matched_update(values)
            .when_not_matched_insert(values, "NOT s.gone")
            .execute()
        )


_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001 - the column has no zone


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    unscaled = int.from_bytes(base64.b64decode(row["credit"]), "big", signed=True)
    return {
        **row,
        "credit": Decimal(unscaled).scaleb(-2),
        "born": date(1970, 1, 1) + timedelta(days=row["born"]),
        "created": _MIDNIGHT + timedelta(microseconds=row["created"]),
    }


def table_of(folder: Path) -> Path:
    """Where a contender's table lies in its folder."""
    return folder / "lake" / "dbo" / "t"


def contender(
    name: str, kafka: str, rule: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
) -> Contender:
    """By its name; `rule`: further settings of the table in the service's config; `options`: other parts of the
    config."""
    if name == "recipe":
        return Recipe(kafka)
    if name == "append":
        return Append(kafka)
    if name == "loop":
        return Loop(kafka)
    return Service(kafka, rule or {}, options)
