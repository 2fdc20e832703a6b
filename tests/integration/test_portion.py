"""A backlog is taken in slices that have so many bytes at most, by what Kafka shows of it."""

from __future__ import annotations

import pytest
from tests.support.changes import LONG, TEXT, Topic
from tests.support.kafka import end_offsets, produce
from tests.support.spark import Bench

from distributary.operate import taking

MOST = 2_000_000


def test_a_slice_has_no_more_bytes_than_the_drivers_memory_is_for(
    kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "slice_bytes", lambda _session: MOST)
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
    table.aim(end_offsets(bench.kafka, topic.name))
    while table.has_to_step():
        before = table.taken
        table.step()
        taken.append(sum(sum(sizes[p][before.get(p, 0) : end]) for p, end in table.taken.items()))
    assert sum(taken) == sum(map(sum, sizes.values()))
    assert max(taken) <= 2 * MOST, taken
    assert len(taken) <= 9, taken
    assert bench.rows("id", "text") == sorted(
        {number % 1_000: (number % 1_000, f"{number} {text}") for number, text in enumerate(texts)}.values(), key=repr
    )


def test_of_one_key_a_slice_has_no_more_than_can_be_folded(kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "key_bytes", lambda _session: 200_000)
    bench = kafka_bench.create()
    topic = Topic(bench.topic)
    for number in range(800):
        key = {"id": 7 if number % 2 else number}
        record = topic.change("u", key, {**key, "text": f"{number} " + "text " * 200}, at=number + 1)
        topic.with_schema(record, {"id": LONG, "text": TEXT})
    produce(bench.kafka, topic.records)
    table, taken = bench.worker(), []
    table.aim(end_offsets(bench.kafka, topic.name))
    while table.has_to_step():
        before = sum(table.taken.values())
        table.step()
        taken.append(sum(table.taken.values()) - before)
    # Of the key that each second record has: some 1,200 bytes each, with what else is in a payload.
    assert sum(taken) == 800
    assert max(taken) <= 340, taken
    assert len(taken) <= 6, taken
    newest = {7 if number % 2 else number: number for number in range(800)}
    assert [(id_, text.split()[0]) for id_, text in bench.rows("id", "text")] == sorted(
        ((id_, str(number)) for id_, number in newest.items()), key=repr
    )
