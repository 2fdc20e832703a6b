"""What a slice's consumer is told."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from distributary.consume.offsets import Slice
from distributary.consume.source import read

WAIT = "kafka.fetch.max.wait.ms"


@pytest.mark.parametrize(
    ("at_once", "configured", "told"),
    [(True, {}, "5"), (False, {}, None), (True, {WAIT: "900"}, "900"), (False, {WAIT: "900"}, "900")],
)
def test_the_configs_settings_of_a_consumer_count_before_the_services(
    session: SparkSession, at_once: bool, configured: dict[str, str], told: str | None
) -> None:
    options = {"kafka.bootstrap.servers": "localhost:1", "kafka.fetch.max.bytes": "1000", **configured}
    rows = read(session, options, Slice("a.b.c", {0: 0}, {0: 10}), at_once=at_once)
    given = rows._jdf.queryExecution().analyzed().collectLeaves().apply(0).options()
    assert given.get(WAIT) == told
    assert given.get("kafka.fetch.max.bytes") == "1000"
    assert given.get("kafka.max.partition.fetch.bytes") == "33554432"
