"""One step of a table's worker: what it asks first, and what it learns anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.offsets import OffsetRange, Offsets, next_range
from distributary.consume.topics import TableId
from distributary.progress.record import Head, first_progress
from distributary.workers.table_worker import TableWorker

NAME = "p.dbo.t"
WORKER = "distributary.workers.table_worker"
PROGRESS = first_progress(NAME, "id", "sqlserver", "upsert", ("id",))


class Parts:
    """The parts of a table, of which nothing but the reader's resets and the batches is seen."""

    def __init__(self, *_: object) -> None:
        self.settings = TableSettings("dbo.t")
        self.lake = self.processor = self.topic_check = self.layout_sync = self
        self.writer = self.entry = None
        self.newest: Head | None = None
        self.resets = 0
        self.before: list[Head | None] = []
        self.partitions: tuple[int, ...] = (0,)
        self.processed: list[tuple[Topic, OffsetRange]] = []
        self.on_find: Callable[[], None] = lambda: None
        self.warnings: tuple[Mapping[str, str], ...] = ()

    def head(self, _known: Head | None = None) -> Head | None:
        return self.newest

    def reset_reader(self) -> None:
        self.resets += 1

    def reset_if_columns_changed(self, before: Head | None) -> None:
        self.before.append(before)

    def find(self) -> Topic:
        found = Topic(NAME, "id", self.partitions)
        self.on_find()
        return found

    def check(self, _topic: Topic) -> None: ...

    def commit_lost_ends(self, _topic: Topic, _end: Offsets) -> None: ...

    def ensure(self) -> None: ...

    def next_range(self, target: Offsets) -> OffsetRange:
        return next_range(NAME, {}, target, 1000)

    def commit_record_if_old(self, head: Head | None) -> Head | None:
        return head

    def process(self, topic: Topic, offset_range: OffsetRange, _target: Offsets, _stopwatch: object) -> None:
        self.processed.append((topic, offset_range))

    def write_log_checkpoint_if_due(self) -> None: ...

    def register_in_catalog(self) -> None: ...


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    made = Parts()
    monkeypatch.setattr(f"{WORKER}.TableParts.make", lambda *_: made)
    monkeypatch.setattr(f"{WORKER}.maintenance_path", lambda *_: "")
    monkeypatch.setattr(f"{WORKER}.JsonFile", lambda *_: None)
    monkeypatch.setattr(f"{WORKER}.MaintenanceSchedule", lambda *_: SimpleNamespace(last_done=dict, start=nullcontext))
    monkeypatch.setattr(f"{WORKER}.report_state", lambda *_, **__: None)
    monkeypatch.setattr(f"{WORKER}.commit_orphan_count", lambda _lake, _writer, head, _log: head)
    return made


def worker_of(parts: Parts) -> TableWorker:
    kafka = SimpleNamespace(earliest=lambda topic: dict.fromkeys(topic.partitions, 0), latest=lambda _topic: {})
    context = SimpleNamespace(
        kafka=kafka,
        config=None,
        session=None,
        set_aside=None,
        is_lake_there=lambda: True,
        status=SimpleNamespace(update=lambda *_, **__: None),
        recorder=SimpleNamespace(add_table=lambda _name: None),
        pause_reason=lambda _topic: None,
        report_offsets=lambda *_: None,
    )
    return TableWorker(cast(Any, context), TableId("dbo", "t"), NAME, parts.settings, "/lake/t")


def test_2_5_no_record_is_read_that_is_newer_than_what_the_topic_was_asked_for(parts: Parts) -> None:
    """Partition 0 gets records after the topic has got a second partition, which it had not when it was looked at: they
    wait for the next step, which notices the partition first."""
    worker = worker_of(parts)
    worker.set_target({0: 5})
    parts.on_find = lambda: worker.set_target({0: 8, 1: 2})
    worker.step()
    parts.partitions, parts.on_find = (0, 1), lambda: None
    worker.step()
    [(before, first), (after, second)] = parts.processed
    assert (before.partitions, first.end) == ((0,), {0: 5})
    assert (after.partitions, second.end) == ((0, 1), {0: 8, 1: 2})


def test_a_table_that_was_created_since_the_last_look_is_read_anew(parts: Parts) -> None:
    worker = worker_of(parts)
    worker.step()
    assert parts.resets == 0, "there is still none"
    parts.newest = Head(0, None)
    worker.step()
    assert parts.resets == 1, "a batch made it that failed then, or another driver"
    worker.step()
    assert parts.resets == 1


def test_a_topic_and_table_that_another_driver_continues_with_are_read_anew(parts: Parts) -> None:
    worker = worker_of(parts)
    parts.newest = Head(1, PROGRESS.next_commit(next={0: 1}))
    worker.step()
    parts.newest = Head(2, PROGRESS.next_commit(next={0: 2}))
    worker.step()
    worker.step()
    assert parts.resets == 1
    assert worker.next_offsets == {0: 2}


def test_5_1_a_table_to_which_somebody_else_committed_is_asked_for_its_columns(parts: Parts) -> None:
    worker, progress = worker_of(parts), PROGRESS.next_commit(next={0: 1})
    heads = [Head(version, progress) for version in (1, 2, 3)]
    for parts.newest in heads:
        worker.step()
    assert parts.before[-2:] == heads[:2]
    assert parts.resets == 0
