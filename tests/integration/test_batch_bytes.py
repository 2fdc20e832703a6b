"""A backlog is applied in batches with limited bytes, by a sample of Kafka's records."""

from __future__ import annotations

import pytest
from tests.support.changes import LONG, TEXT, Topic
from tests.support.kafka import LARGEST_MESSAGE, end_offsets, produce
from tests.support.spark import Bench

from distributary.ingest import batch_size, raw_records

MOST = 2_000_000


def test_a_batch_has_no_more_bytes_than_the_drivers_memory_is_for(
    kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "batch_bytes", lambda _session, _tables: MOST)
    bench = kafka_bench.create(partitions=2)
    topic = Topic(bench.topic)
    texts = ["short"] * 2_000 + ["long text " * 1_000] * 600 + ["short"] * 50
    for number, text in enumerate(texts):
        key = {"id": number % 1_000}
        record = topic.change("u", key, {**key, "text": f"{number} {text}"}, at=number + 1, partition=number % 2)
        topic.with_schema(record, {"id": LONG, "text": TEXT})
    sizes = {p: [len(r.value or b"") for r in topic.records if r.partition == p] for p in (0, 1)}
    produce(bench.kafka, topic.records)
    table, taken = bench.worker(), []
    table.set_target(end_offsets(bench.kafka, topic.name))
    while table.has_to_step():
        before = table.next_offsets
        table.step()
        taken.append(sum(sum(sizes[p][before.get(p, 0) : end]) for p, end in table.next_offsets.items()))
    assert sum(taken) == sum(map(sum, sizes.values()))
    assert max(taken) <= 2 * MOST, taken
    assert len(taken) <= 9, taken
    assert bench.rows("id", "text") == sorted(
        {number % 1_000: (number % 1_000, f"{number} {text}") for number, text in enumerate(texts)}.values(), key=repr
    )


def test_few_records_that_are_larger_than_usual_are_no_batch_together(
    kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table's first batch of 40 records of 20 MB used up a heap of 2 GB."""
    monkeypatch.setattr(batch_size, "batch_bytes", lambda _session, _tables: 4 * 2**20)
    monkeypatch.setattr(raw_records, "LOCAL_BYTES", 2**20)
    bench = kafka_bench.create(config={"max.message.bytes": str(LARGEST_MESSAGE)})
    topic = Topic(bench.topic)
    texts = [f"{number} " + "x" * 3_000_000 for number in range(4)]
    for number, text in enumerate(texts):
        topic.change("c", {"id": number}, {"id": number, "text": text}, at=number + 1)
    produce(bench.kafka, topic.records)
    table, taken = bench.worker(), []
    table.set_target(end_offsets(bench.kafka, topic.name))
    while table.has_to_step():
        before = table.next_offsets.get(0, 0)
        table.step()
        taken.append(table.next_offsets[0] - before)
    assert taken == [1, 1, 1, 1]
    assert bench.rows("id", "text") == list(enumerate(texts))
