"""What a slice needed is gone after it: what read it from Kafka, the rows that Spark kept for it, and its queries."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from tests.support.changes import LONG, TEXT, Topic
from tests.support.spark import Bench

from distributary.merge import kept as rows_kept

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


def of_java() -> int:
    """How many objects of Java Python holds on to, those that it has not found yet to be of no use among them."""
    return sum(isinstance(one, JavaObject) for one in gc.get_objects())


def test_slices_leave_nothing_behind(
    session: SparkSession, kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = kafka_bench.create()
    bench.options = {"trigger": {"max_records": 1}}
    topic = Topic(bench.topic)
    for number in range(SLICES):
        record = topic.change("c", {"id": number}, {"id": number, "text": "text"}, at=number + 1)
        topic.with_schema(record, {"id": LONG, "text": TEXT})
    worker = bench.take(topic.records[:2])  # a table's first slices make what stays
    gc.collect()
    gc.freeze()  # as the service does
    before, kept_before, held_before = readers(session), kept(session), of_java()
    bench.take(topic.records[2:], worker)
    # how soon the next look may come depends on what else this process holds: here it may come now
    monkeypatch.setattr(rows_kept, "_LOOKS", rows_kept._Looks())
    with rows_kept.keeping():
        pass
    held = of_java()
    gc.unfreeze()
    assert held < held_before + 10
    assert bench.rows("id") == [(number,) for number in range(SLICES)]
    assert readers(session) <= before + 2
    assert not kept(session) - kept_before
