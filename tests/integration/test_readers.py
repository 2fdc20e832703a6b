"""What a slice needed is gone after it: what read it from Kafka, and the rows that Spark kept for it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.support.changes import LONG, TEXT, Topic
from tests.support.spark import Bench

SLICES = 8


def readers(session: SparkSession) -> int:
    """How many Kafka consumers the JVM has open: each waits at a selector of its own."""
    gateway: Any = session.sparkContext._gateway
    return [str(one.readlink()) for one in Path(f"/proc/{gateway.proc.pid}/fd").iterdir()].count(
        "anon_inode:[eventpoll]"
    )


def kept(session: SparkSession) -> set[int]:
    """What Spark keeps the rows of, by numbers that it gives once."""
    context: Any = session.sparkContext._jsc
    return set(context.getPersistentRDDs())


def test_slices_leave_no_readers_and_no_rows_behind(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    topic = Topic(f"readers{random.randrange(10**9)}.dbo.t")
    bench = Bench(session, kafka, tmp_path, topic.name, options={"trigger": {"max_records": 1}}).create()
    for number in range(SLICES):
        record = topic.change("c", {"id": number}, {"id": number, "text": "text"}, at=number + 1)
        topic.with_schema(record, {"id": LONG, "text": TEXT})
    before, kept_before = readers(session), kept(session)
    bench.take(topic.records)
    assert bench.rows("id") == [(number,) for number in range(SLICES)]
    assert readers(session) <= before + 2
    assert not kept(session) - kept_before
