"""Kafka as DataFrames: the stream that plans batches, and the bounded read of one table's slice."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from distributary.consume.offsets import Slice

# Larger fetches read a backlog markedly faster than Kafka's defaults (1 MB per partition); still small beside the heap.
# What a slice is made of is there: a broker that is asked for more is not to wait for it, as it does for half a second.
_FETCH = {
    "kafka.fetch.max.bytes": "67108864",
    "kafka.max.partition.fetch.bytes": "33554432",
    "kafka.fetch.max.wait.ms": "5",
}


def stream(session: SparkSession, options: Mapping[str, str], pattern: str, max_records: int) -> DataFrame:
    """The stream over all topics that match; it finds new topics by itself and starts at their first record.

    failOnDataLoss is off because one topic's loss would end the query for all: each table looks after its own offsets.
    """
    reader = session.readStream.format("kafka").options(**options)
    return (
        reader.option("subscribePattern", pattern)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", str(max_records))
        .option("kafka.metadata.max.age.ms", "5000")  # how soon a new topic is noticed
        .load()
    )


def read(session: SparkSession, options: Mapping[str, str], part: Slice, tasks: int = 1) -> DataFrame:
    """The records of a slice: key, value, topic, partition, offset, timestamp, headers ARRAY<STRUCT<key, value>>.

    `tasks`: so many at least share the work, also where the slice has fewer partitions.
    """
    split = {"minPartitions": str(tasks)} if tasks > len(part.end) else {}
    return (
        session.read.format("kafka")
        .options(**options, **_FETCH, **split)
        .option("assign", _assignment(part))
        .option("startingOffsets", part.starting_json())
        .option("endingOffsets", part.ending_json())
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
    )


def _assignment(part: Slice) -> str:
    partitions = ", ".join(str(p) for p in sorted(part.end))
    return f'{{"{part.topic}": [{partitions}]}}'
