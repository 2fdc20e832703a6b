"""kafka2delta as a process of its own, in an environment that has it and nothing of this project (see peer.py).

Its one argument is a JSON object: `jars`, `registry`, `kafka`, and `folder` for what Spark writes beside. Standard
input has one JSON object a line: take `topic` from the offset `at` to `end` into the table `name` at `path`. Each is
answered with a line once it is done.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    """Serves until standard input ends."""
    given = json.loads(sys.argv[1])
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        "spark.jars": ",".join(given["jars"]),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": given["folder"],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _say("ready")
    for number, line in enumerate(sys.stdin):
        _take(session, given, json.loads(line), number)
        _say("done")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _take(session: SparkSession, given: Any, task: Any, number: int) -> None:
    """One micro-batch, as its stream_to_delta makes them and hands them on."""
    from kafka2delta.config import DeltaTableConfig  # type: ignore[import-not-found]
    from kafka2delta.stream.stream import merge_micro_batch  # type: ignore[import-not-found]
    from kafka2delta.udf import get_confluent_avro_value, get_schema_id  # type: ignore[import-not-found]

    raw = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", given["kafka"])
        .option("subscribe", task["topic"])
        .option("startingOffsets", json.dumps({task["topic"]: {"0": task["at"]}}))
        .option("endingOffsets", json.dumps({task["topic"]: {"0": task["end"]}}))
        .load()
    )
    records = raw.select(
        *("topic", "partition", "offset", "timestamp", "timestampType"),
        get_schema_id("key").alias("key_schema_id"),
        get_schema_id("value").alias("value_schema_id"),
        get_confluent_avro_value("value").alias("value_avro"),
    )
    table = DeltaTableConfig(schema="default", table_name=task["name"], path=task["path"])
    merge_micro_batch(given["registry"], {task["topic"]: table})(records, number)


if __name__ == "__main__":
    main()
