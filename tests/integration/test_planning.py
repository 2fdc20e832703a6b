"""The planning stream: the target offsets of tables, and that a stopped stream leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from tests.support.changes import Topic
from tests.support.kafka import create_topic, produce
from tests.support.spark import Bench
from tests.support.waiting import wait_until

from distributary.consume.checkpoint import OffsetLog
from distributary.consume.offsets import Offsets
from distributary.errors import TransientError
from distributary.workers import offset_planner
from distributary.workers.offset_planner import OffsetPlanner


class Planned:
    """Records the end offsets of each micro-batch; the first `failing` micro-batches fail."""

    def __init__(self, bench: Bench, failing: int = 0, error: Exception | None = None) -> None:
        self.batches: list[Mapping[str, Offsets]] = []
        self.failed = 0
        self._failing, self._error = failing, error or RuntimeError("on purpose")
        context = bench.context()
        self.status = context.status
        self.stream = OffsetPlanner(context, self._plan, lambda: None)

    def _plan(self, ends: Mapping[str, Offsets]) -> None:
        if ends and self.failed < self._failing:
            self.failed += 1
            raise self._error
        self.batches += [dict(ends)] if ends else []

    def look_until(self, reached: Callable[[], bool]) -> None:
        def is_reached() -> bool:
            if reached():
                return True
            self.stream.keep_running()
            return False

        wait_until(is_reached, what=lambda: str(self.batches), every=0.1)


# On a real Kafka: the stream is Spark's.
pytestmark = pytest.mark.bench(
    on_kafka=True, rule={"match": "dbo.*"}, options={"trigger": {"interval": "1h", "max_records": 2}}
)


def test_a_micro_batch_plans_to_the_end_of_all_topics_whatever_the_limit_of_a_batch(bench: Bench) -> None:
    """Lower target offsets would hide the tables' lag, and limit all tables together."""
    topics = [Topic(bench.topic), Topic(bench.topic.removesuffix(".t") + ".other")]
    for topic in topics:
        create_topic(bench.kafka, topic.name)
        produce(bench.kafka, [topic.change("c", {"id": n}, {"id": n, "v": "x"}, at=n) for n in range(1, 8)])
    planned = Planned(bench)
    planned.stream.begin(once=False)
    try:
        planned.look_until(lambda: bool(planned.batches))
    finally:
        planned.stream.stop()
    assert planned.batches == [{topic.name: {0: 7} for topic in topics}]


def test_a_stream_that_has_planned_all_there_is_says_when(bench: Bench) -> None:
    bench.create()
    planned = Planned(bench)
    status = planned.status
    start = status.planned_at
    planned.stream.begin(once=False)
    try:
        planned.look_until(lambda: status.planned_at > start)
    finally:
        planned.stream.stop()


def test_another_pattern_is_followed_also_where_the_next_stream_does_not_start_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(bench.topic.removesuffix(".t") + ".other")
    for name in (bench.create().topic, topic.name):
        if name == topic.name:
            create_topic(bench.kafka, name)
        produce(bench.kafka, [Topic(name).change("c", {"id": 1}, {"id": 1, "v": "x"}, at=1)])
    bench.rule = {"match": "dbo.t"}
    planned = Planned(bench)
    planned.stream.begin(once=False)
    try:
        planned.look_until(lambda: planned.batches == [{bench.topic: {0: 1}}])
        start = planned.stream._start
        failed: list[bool] = []

        def fails_once() -> object:
            if not failed:
                failed.append(True)
                raise OSError("the checkpoint's storage is away")
            return start()

        monkeypatch.setattr(planned.stream, "_start", fails_once)
        bench.rule = {"match": "dbo.*"}
        planned.stream.follow(bench.config())
        assert planned.stream.fails
        assert planned.stream.keep_running() is False  # it has not come to its end
        planned.look_until(lambda: any(topic.name in batch for batch in planned.batches))
    finally:
        planned.stream.stop()


@pytest.mark.parametrize("error", [TransientError("kafka-unreachable", "no answer", ""), OSError("AWS Error SLOW")])
def test_a_fault_that_passes_leaves_the_checkpoint_where_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(offset_planner, "pause_after", lambda *_: 0.0)
    moved: list[OffsetLog] = []
    monkeypatch.setattr(OffsetLog, "move_away", lambda log: moved.append(log))
    topic = Topic(bench.create().topic)
    produce(bench.kafka, [topic.change("c", {"id": 1}, {"id": 1, "v": "x"}, at=1)])
    planned = Planned(bench, failing=2, error=error)
    planned.stream.begin(once=False)
    try:
        planned.look_until(lambda: bool(planned.batches))
    finally:
        planned.stream.stop()
    assert planned.failed == 2
    assert not moved


def test_a_stream_that_failed_is_begun_anew_and_it_is_this_one_that_is_cut(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    produce(bench.kafka, [topic.change("c", {"id": 1}, {"id": 1, "v": "x"}, at=1)])
    planned = Planned(bench, failing=1)
    planned.stream.begin(once=False)
    try:
        planned.look_until(lambda: bool(planned.batches))
    finally:
        planned.stream.stop()
    assert (planned.failed, planned.batches) == (1, [{topic.name: {0: 1}}])
    assert not bench.session.streams.active
