"""Kafka as DataFrames: the stream that plans batches, and the bounded read of one table's batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from distributary.config.clients import librdkafka_options, spark_options
from distributary.consume.fetch import FetchedRecords, FetchPieces, RecordFetcher
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import RAW
from distributary.launch.classes import frame_of, java_class, scala_object

# Larger fetches read a backlog markedly faster than Kafka's defaults (1 MB per partition); still small beside the heap.
_FETCH = {"kafka.fetch.max.bytes": "67108864", "kafka.max.partition.fetch.bytes": "33554432"}
_KAFKA = "org.apache.spark.sql.kafka010"
_GROUP = "spark-kafka-relation"  # as Spark's source calls the groups of bounded reads
_TO_SCALA = "org.apache.spark.api.python.PythonUtils"


def stream(session: SparkSession, options: Mapping[str, str], pattern: str) -> DataFrame:
    """The stream over all topics that match; it finds new topics by itself and starts at their first record.

    Each of its batches reaches the ends of the topics. Nothing reads a batch's rows, so that a large one costs as
    little as a small one; with smaller ones, tables would wait for their next target.

    failOnDataLoss is off because one topic's loss would end the query for all: each table checks its own offsets.
    """
    reader = session.readStream.format("kafka").options(**options)
    return (
        reader.option("subscribePattern", pattern)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .option("kafka.metadata.max.age.ms", "5000")  # how soon a new topic is noticed
        .load()
    )


class RecordSource(Protocol):
    """Reads the records of offset ranges. Both methods raise TransientError, or what Spark raises."""

    def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
        """A range's records in this process, as far as they have no more bytes."""
        ...

    @property
    def fetch_pieces(self) -> Callable[[OffsetRange, int, int], Iterator[pa.Table]]:
        """Reads offset ranges in pieces, for Spark's tasks: see fetch.FetchPieces."""
        ...

    def frame(self, session: SparkSession, offset_range: OffsetRange) -> DataFrame:
        """A range's records as a DataFrame: see read()."""
        ...


class KafkaRecords:
    """Records of the Kafka that the config's properties name."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._fetcher = RecordFetcher(librdkafka_options(properties))
        self._options = spark_options(properties)
        self.fetch_pieces = FetchPieces(librdkafka_options(properties))

    def fetch(self, offset_range: OffsetRange, most_bytes: int) -> FetchedRecords:
        """A range's records in this process, as far as they have no more bytes. Raises TransientError."""
        return self._fetcher.fetch(offset_range, most_bytes)

    def frame(self, session: SparkSession, offset_range: OffsetRange) -> DataFrame:
        """A range's records, read by all cores, with the columns of record_tables.RAW."""
        records = read(session, self._options, offset_range, session.sparkContext.defaultParallelism)
        return records.select(*RAW.names)

    def close(self) -> None:
        """Ends the connections to Kafka."""
        self._fetcher.close()


def read(session: SparkSession, options: Mapping[str, str], offset_range: OffsetRange, tasks: int = 1) -> DataFrame:
    """The records of a batch: key, value, topic, partition, offset, timestamp, headers ARRAY<STRUCT<key, value>>.

    `tasks`: about so many tasks share the work, even if the batch has fewer partitions. The consumer's settings in
    `options` override those of this function.

    Builds the tasks of Spark's Kafka source directly: Spark's own way plans a query, and requests offsets, which are
    known here, by a new Kafka client.
    """
    consumer = {**_FETCH, **options}
    settings, timeout = _settings_of(session.sparkContext, tuple(consumer.items()))
    settings = java_class(session, "java.util.HashMap")(settings)
    # One of its own for each batch: Spark keeps readers, and what they read ahead, by their group; that of a topic
    # which was deleted and made again would be the old one's.
    settings.put("group.id", f"{_GROUP}-{uuid4()}")
    place, offsets, reads = (
        java_class(session, name)
        for name in (
            "org.apache.kafka.common.TopicPartition",
            f"{_KAFKA}.KafkaOffsetRange",
            f"{_KAFKA}.KafkaBatchInputPartition",
        )
    )
    option, sequence = java_class(session, "scala.Option"), java_class(session, _TO_SCALA).toSeq
    inputs = [
        option.apply(
            reads(offsets(place(offset_range.topic, p), start, end, option.empty()), settings, timeout, True, True)
        )
        for p, start, end in ranges(offset_range, tasks)
    ]
    rows = java_class(session, "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD")(
        session._jsparkSession.sparkContext(),
        sequence(inputs),
        scala_object(session, f"{_KAFKA}.KafkaBatchReaderFactory"),
        False,
        java_class(session, _TO_SCALA).toScalaMap({}),
    )
    return frame_of(session, rows, scala_object(session, f"{_KAFKA}.KafkaRecordToRowConverter").kafkaSchema(True))


def ranges(offset_range: OffsetRange, tasks: int) -> list[tuple[int, int, int]]:
    """The part of each task: a partition, its first offset, and the one after its last. Long partitions are cut if
    there are fewer partitions than `tasks`."""
    out = []
    for partition, end in sorted(offset_range.end.items()):
        start = offset_range.start[partition]
        pieces = (
            max(1, round((end - start) * tasks / max(1, offset_range.records))) if tasks > len(offset_range.end) else 1
        )
        cuts = [start + (end - start) * i // pieces for i in range(pieces + 1)]
        out += [(partition, first, after) for first, after in pairwise(cuts) if after > first]
    return out


@lru_cache(maxsize=16)
def _settings_of(context: SparkContext, options: tuple[tuple[str, str], ...]) -> tuple[Any, int]:
    """Spark's form of the consumer's settings for its tasks, and the milliseconds that a task waits for records."""
    named = {key.removeprefix("kafka."): value for key, value in options if key.startswith("kafka.")}
    provider = scala_object(context, f"{_KAFKA}.KafkaSourceProvider")
    given = java_class(context, _TO_SCALA).toScalaMap(named)
    # A number alone is seconds.
    timeout = context._jsc.sc().conf().getTimeAsSeconds("spark.network.timeout", "120s")
    return provider.kafkaParamsForExecutors(given, _GROUP), 1000 * int(timeout)
