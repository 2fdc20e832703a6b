"""A Spark session for tests, and one table's worker without the rest of the service."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyspark.sql import DataFrame, SparkSession
from tests.support import memory_kafka
from tests.support.kafka import Sendable, create_topic, delete_topic, end_offsets, produce
from tests.support.lake import read_table

from distributary.config import Config, load
from distributary.config.clients import spark_options
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.source import KafkaRecords
from distributary.consume.topics import TableId
from distributary.ingest.registry import registry_of
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.source_types import announced_source_types
from distributary.launch.session import open_session
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.preflight.existing_table import read_existing_table
from distributary.quarantine.table import Quarantine
from distributary.workers.context import WorkerContext
from distributary.workers.table_worker import TableWorker


def running_session() -> Iterator[SparkSession]:
    """The service's own session, small."""
    session = open_session({"spark.master": "local[2]", "spark.driver.memory": "3g"})
    yield session
    session.stop()


@lru_cache
def _records_of(kafka: str) -> KafkaRecords:
    """One source for all tests with that Kafka, because its connections stay open."""
    return KafkaRecords({"bootstrap.servers": kafka})


@dataclass
class Bench:
    """One topic and its table: records are produced to a Kafka (a real one, or one in memory), and the real worker
    applies them."""

    session: SparkSession
    kafka: str
    folder: Path
    topic: str
    rule: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def create(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> Bench:
        """Makes the topic."""
        create_topic(self.kafka, self.topic, partitions, config)
        return self

    def create_again(self) -> None:
        """Deletes the topic and creates it again, with one partition."""
        delete_topic(self.kafka, self.topic)
        self.create()

    @property
    def prefix(self) -> str:
        """The source's topic prefix."""
        return self.topic.partition(".")[0]

    @property
    def table(self) -> Path:
        """Where the table lies."""
        return self.folder / "lake" / "dbo" / "t"

    @property
    def quarantine(self) -> Path:
        """Where the quarantine table lies."""
        return self.folder / "lake" / "_quarantine"

    def config(self) -> Config:
        """The config of the service."""
        text = {
            "version": 1,
            "kafka": {"bootstrap.servers": self.kafka},
            "source": {"topic_prefix": self.prefix},
            "target": {"path": str(self.folder / "lake")},
            "checkpoint": str(self.folder / "checkpoint"),
            "tables": [{"match": "dbo.t", **self.rule}],
            **self.options,
        }
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(text), encoding="utf-8")
        return load(path)

    def client(self, config: Config) -> KafkaClient:
        """The service's client of the Kafka."""
        if memory_kafka.is_in_memory(self.kafka):
            return memory_kafka.MemoryClient(self.kafka)
        return KafkaClient(config.kafka_properties())

    def context(self) -> WorkerContext:
        """The context that a new driver's workers share."""
        config = self.config()
        kafka = self.client(config)
        return WorkerContext(
            config=config,
            session=self.session,
            kafka=kafka,
            options=spark_options(config.kafka_properties()),
            records=kafka if isinstance(kafka, memory_kafka.MemoryClient) else _records_of(self.kafka),
            quarantine=Quarantine(self.session, config.quarantine_path()),
            recorder=Recorder(ServiceStatus()),
            stopping=threading.Event(),
            registry=registry_of(config.source),
            announced_types=announced_source_types(config, kafka).of,
        )

    def worker(self) -> TableWorker:
        """A new driver's worker: it has no state beside the table's."""
        context = self.context()
        settings = context.config.settings_for("dbo", "t")
        assert settings is not None
        return TableWorker(context, TableId("dbo", "t"), self.topic, settings, str(self.table))

    def take(self, records: Iterable[Sendable], worker: TableWorker | None = None) -> TableWorker:
        """Produces the records and lets a worker (by default a new one) apply them."""
        produce(self.kafka, records)
        worker = worker or self.worker()
        worker.set_target(end_offsets(self.kafka, self.topic))
        while worker.has_to_step():
            worker.step()
        return worker

    def columns(self) -> dict[str, str]:
        """The table's columns that are the source's: name to Spark type."""
        settings, table = self.config().settings_for("dbo", "t"), read_existing_table(str(self.table))
        assert settings is not None
        assert table is not None
        return table.of_the_source(service_columns_of(settings))

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """The table's rows, sorted, by an independent reader; the named columns, else all of the source's."""
        return rows_of(self.table, *columns)

    def frame(self) -> DataFrame:
        """The table, read by Spark."""
        return self.session.read.format("delta").load(str(self.table))

    def rows_by_spark(self, *columns: str) -> list[tuple[Any, ...]]:
        """The table's rows, sorted, read by Spark: the named columns."""
        return sorted(
            (tuple(row) for row in self.frame().select(*(f"`{name}`" for name in columns)).collect()), key=repr
        )


def new_bench(
    session: SparkSession, kafka: str, folder: Path, options: Mapping[str, Any] | None = None, **rule: Any
) -> Bench:
    """A bench with a topic and a folder of its own; the topic is not created yet. `rule` is the table's settings,
    `options` are those of the whole config."""
    prefix = f"bench{uuid.uuid4().hex[:12]}"
    own = folder / prefix
    own.mkdir(parents=True)
    return Bench(session, kafka, own, f"{prefix}.dbo.t", rule, options or {})


def rows_of(place: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a Delta table, sorted."""
    table = read_table(place)
    assert isinstance(table, pa.Table)
    names = list(columns) or [name for name in table.column_names if not name.startswith("__")]
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True), key=repr)
