"""A paused table applies nothing, shows its state, and continues from its own offsets."""

from __future__ import annotations

from dataclasses import replace

from tests.support.changes import Topic
from tests.support.kafka import end_offsets, produce
from tests.support.spark import Bench

from distributary.consume.topics import TableId
from distributary.halt_actions import ResumeAction
from distributary.table_state import TableState
from distributary.workers.table_worker import TableWorker


def test_a_paused_table_takes_nothing_in_until_it_goes_on(bench: Bench) -> None:
    bench.create()
    why: list[str] = []
    context = replace(bench.context(), pause_reason=lambda _topic: why[0] if why else None)
    settings = context.config.settings_for("dbo", "t")
    assert settings is not None
    worker = TableWorker(context, TableId("dbo", "t"), bench.topic, settings, str(bench.table))
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1}, at=1)
    bench.take(topic.records, worker)
    assert bench.rows("id") == [(1,)]

    why.append("a restore")
    sent = len(topic.records)
    topic.change("c", {"id": 2}, {"id": 2}, at=2)
    produce(bench.kafka, topic.records[sent:])
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    worker.resume(ResumeAction.RETRY)  # what is asked of it waits as well
    steps = 0
    while worker.has_to_step():
        worker.step()
        steps += 1
    shown = context.status.table("dbo.t")
    assert shown is not None
    assert (steps, shown.state, shown.paused, shown.lag_records) == (1, TableState.PAUSED, "a restore", 1)
    assert bench.rows("id") == [(1,)]
    assert worker.due() is None

    why.clear()
    while worker.has_to_step():
        worker.step()
    shown = context.status.table("dbo.t")
    assert shown is not None
    assert (shown.state, shown.paused, shown.lag_records) == (TableState.UP_TO_DATE, None, 0)
    assert bench.rows("id") == [(1,), (2,)]


def test_a_table_that_is_paused_with_nothing_to_take_in_shows_that_it_goes_on(bench: Bench) -> None:
    bench.create()
    why = ["a restore"]
    context = replace(bench.context(), pause_reason=lambda _topic: why[0] if why else None)
    settings = context.config.settings_for("dbo", "t")
    assert settings is not None
    worker = TableWorker(context, TableId("dbo", "t"), bench.topic, settings, str(bench.table))
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    worker.step()
    assert not worker.has_to_step()
    why.clear()
    assert worker.has_to_step()
    worker.step()
    assert not worker.has_to_step()
    shown = context.status.table("dbo.t")
    assert shown is not None
    assert shown.state is TableState.UP_TO_DATE
