"""The tasks of a batch: their consumer's settings, and the offsets that each of them reads."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from distributary.consume.offsets import OffsetRange
from distributary.consume.source import ranges, read

WAIT = "fetch.max.wait.ms"
PART = OffsetRange("a.b.c", {0: 0}, {0: 10})


def tasks_of(rows: DataFrame) -> list[Any]:
    rdd = rows._jdf.queryExecution().logical().rdd()
    return [each.inputPartition().get() for each in rdd.partitions()]


@pytest.mark.parametrize(("configured", "found"), [({}, None), ({WAIT: "900"}, "900")])
def test_the_configs_settings_of_a_consumer_count_before_the_services(
    session: SparkSession, configured: dict[str, str], found: str | None
) -> None:
    options = {"bootstrap.servers": "localhost:1", "fetch.max.bytes": "1000", **configured}
    rows = read(session, {f"kafka.{key}": value for key, value in options.items()}, PART)
    [task] = tasks_of(rows)
    given = task.executorKafkaParams()
    assert given.get(WAIT) == found
    assert given.get("fetch.max.bytes") == "1000"
    assert given.get("max.partition.fetch.bytes") == "33554432"
    assert given.get("auto.offset.reset") == "none"
    assert given.get("enable.auto.commit") == "false"


def test_no_batch_finds_what_another_one_read_ahead(session: SparkSession) -> None:
    batches = [tasks_of(read(session, {"kafka.bootstrap.servers": "localhost:1"}, PART, tasks=2)) for _ in range(2)]
    groups = [{task.executorKafkaParams().get("group.id") for task in tasks} for tasks in batches]
    assert [len(tasks) for tasks in batches] == [2, 2]
    assert [len(group) for group in groups] == [1, 1]
    assert groups[0] != groups[1]


def test_records_that_are_gone_are_an_error(session: SparkSession) -> None:
    [task] = tasks_of(read(session, {"kafka.bootstrap.servers": "localhost:1"}, PART))
    assert task.failOnDataLoss()
    assert task.includeHeaders()
    assert task.pollTimeoutMs() == 120_000


@pytest.mark.parametrize(("given", "wanted"), [("300", 300_000), ("7s", 7_000), ("5m", 300_000)])
def test_a_task_waits_for_records_as_long_as_spark_says(session: SparkSession, given: str, wanted: int) -> None:
    settings = session.sparkContext._jsc.sc().conf()
    settings.set("spark.network.timeout", given)
    try:
        [task] = tasks_of(read(session, {"kafka.bootstrap.servers": f"localhost:{given}"}, PART))
    finally:
        settings.remove("spark.network.timeout")
    assert task.pollTimeoutMs() == wanted


@pytest.mark.parametrize(
    ("start", "end", "tasks", "wanted"),
    [
        ({0: 5}, {0: 9}, 1, [(0, 5, 9)]),
        ({0: 5}, {0: 10}, 2, [(0, 5, 7), (0, 7, 10)]),
        ({0: 5}, {0: 6}, 4, [(0, 5, 6)]),
        ({0: 0, 2: 7}, {0: 90, 2: 17}, 4, [(0, 0, 22), (0, 22, 45), (0, 45, 67), (0, 67, 90), (2, 7, 17)]),
        ({0: 0, 1: 0}, {0: 90, 1: 10}, 2, [(0, 0, 90), (1, 0, 10)]),
        ({0: 0, 1: 4}, {0: 3, 1: 4}, 1, [(0, 0, 3)]),
        ({0: 4}, {0: 4}, 2, []),
    ],
)
def test_each_offset_is_one_tasks(
    start: dict[int, int], end: dict[int, int], tasks: int, wanted: list[tuple[int, int, int]]
) -> None:
    assert ranges(OffsetRange("t", start, end), tasks) == wanted
