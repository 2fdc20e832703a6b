"""Kafka as DataFrames: the stream that plans batches, and the bounded read of one table's slice."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from distributary.consume.offsets import Slice

# Larger fetches read a backlog markedly faster than Kafka's defaults (1 MB per partition); still small beside the heap.
_FETCH = {"kafka.fetch.max.bytes": "67108864", "kafka.max.partition.fetch.bytes": "33554432"}
# While it reads the end of a topic, the consumer asks for more than a slice has, and does not end before it is told of
# it: by default the broker waits half a second for records that nobody asked for. Of a large slice that is little, and
# brokers before 3.8 wait no longer than this for older records that they have to fetch from tiered storage.
_AT_ONCE = {"kafka.fetch.max.wait.ms": "5"}


def stream(session: SparkSession, options: Mapping[str, str], pattern: str) -> DataFrame:
    """The stream over all topics that match; it finds new topics by itself and starts at their first record.

    Each of its batches reaches the ends of the topics: nothing reads a batch's rows, so that it costs as little as a
    small one, and tables whose goal lies short of what Kafka has would wait for the next one while they could go on.

    failOnDataLoss is off because one topic's loss would end the query for all: each table looks after its own offsets.
    """
    reader = session.readStream.format("kafka").options(**options)
    return (
        reader.option("subscribePattern", pattern)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .option("kafka.metadata.max.age.ms", "5000")  # how soon a new topic is noticed
        .load()
    )


def read(
    session: SparkSession, options: Mapping[str, str], part: Slice, tasks: int = 1, at_once: bool = False
) -> DataFrame:
    """The records of a slice: key, value, topic, partition, offset, timestamp, headers ARRAY<STRUCT<key, value>>.

    `tasks`: so many at least share the work, also where the slice has fewer partitions. `at_once`: the slice is small,
    so that it counts how long a broker waits. What `options` have of the consumer's settings counts before these.
    """
    consumer = {**_FETCH, **(_AT_ONCE if at_once else {}), **options}
    split = {"minPartitions": str(tasks)} if tasks > len(part.end) else {}
    return (
        session.read.format("kafka")
        .options(**consumer, **split)
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
