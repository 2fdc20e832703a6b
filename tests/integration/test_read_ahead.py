"""While a batch is applied, Spark's tasks decode the next one: the tables are those of batches one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.support.ahead import Begun
from tests.support.changes import Topic, key, row
from tests.support.kafka import end_offsets, produce
from tests.support.lake import read_table
from tests.support.spark import Bench
from tests.support.spark import rows_of as rows_in

from distributary.consume.kafka_errors import OFFSETS_GONE
from distributary.errors import TransientError
from distributary.ingest import raw_records, task_records, task_writer
from distributary.ingest.ahead_thread import AheadThread
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.batch_size import BatchSizer
from distributary.ingest.raw_records import RawSource
from distributary.lake.layout import FILES_KEPT
from distributary.maintain.schedule import Task
from distributary.workers.table_set import TableSet
from distributary.workers.table_worker import TableWorker

COLUMNS = {"id": "bigint", "v": "string", "later": "int"}
IN_BATCHES = {"trigger": {"max_records": 12}}
RULES: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "vectors": {"layout": "vectors", "deletes": "soft"},
    "history": {"mode": "history"},
    "append": {"mode": "append"},
}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Tasks decode all batches, and write all rows that they may write."""
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 0)
    monkeypatch.setattr(task_writer, "LEAST_BYTES", 1)
    return Begun(monkeypatch)


def changes(topic: Topic) -> None:
    """A snapshot, changes, and a column that comes later."""
    for number in range(1, 41):
        topic.change("r", key(number), row(number, "read"), at=1, partition=number % 2)
    topic.add(key(50), b"no json")
    for number in range(100, 125):
        topic.change("c", key(number), row(number, "made"), at=number, partition=number % 2)
    for number in range(1, 30):
        topic.change("u", key(number), row(number, "changed"), at=200 + number, partition=number % 2)
    for number in range(30, 41):
        topic.change("d", key(number), at=300 + number, partition=number % 2)
        topic.tombstone(key(number), partition=number % 2)
    for number in range(1, 30):
        topic.change("u", key(number), row(number, "more", later=number), at=400 + number, partition=number % 2)


def play(bench: Bench) -> None:
    """All batches, with all records in Kafka before the first one."""
    topic = Topic(bench.create(partitions=2).topic)
    changes(topic)
    bench.take(topic.records)


def rows_of(bench: Bench) -> list[str]:
    """The table's rows with the service's columns."""
    table = read_table(bench.table)
    assert isinstance(table, pa.Table)
    columns = [name for name in table.column_names if name != "__topic"]
    return sorted(json.dumps(row, default=str) for row in table.select(columns).to_pylist())


def unknown_files(bench: Bench) -> set[str]:
    """The data files that the table's log does not name."""
    log = "".join(path.read_text("utf-8") for path in (bench.table / "_delta_log").glob("*.json"))
    files = {path.name for path in bench.table.rglob("*.parquet") if "_delta_log" not in str(path)}
    return {name for name in files if name not in log}


def without_ahead(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    with monkeypatch.context() as patched:
        patched.setattr(RawSource, "can_begin_next", False)
        play(bench)
    return bench


@pytest.mark.parametrize("name", RULES)
def test_the_table_is_the_same_as_without_it(
    make_bench: Callable[..., Bench], begun: Begun, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rule = {"columns": COLUMNS, **RULES[name]}
    expected = rows_of(without_ahead(make_bench(IN_BATCHES, **rule), monkeypatch))
    assert begun.begun == 0
    bench = make_bench(IN_BATCHES, **rule)
    play(bench)
    assert rows_of(bench) == expected
    assert begun.used > 5
    assert begun.begun - begun.used <= 2, "only what was begun with the columns of the batch before is decoded again"
    assert len(rows_in(bench.quarantine, "offset")) == 1


def test_a_file_that_was_written_ahead_is_in_the_table_or_gone(make_bench: Callable[..., Bench], begun: Begun) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS)
    play(bench)
    assert begun.used
    assert begun.files
    assert not unknown_files(bench)


@pytest.mark.bench(options=IN_BATCHES)
@pytest.mark.parametrize("is_done", [True, False])
def test_a_failed_commit_ends_it_and_the_next_try_is_right(
    bench: Bench, begun: Begun, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    worker = behind(bench)
    worker.step()
    assert begun.begun == 1
    with monkeypatch.context() as patched:
        patched.setattr(worker.lake, "commit", _refused)
        with pytest.raises(TransientError):
            worker.step()
    if is_done:  # else its jobs are stopped, and VACUUM removes what they wrote
        begun.wait()
    worker.end_next()  # as the scheduler does after an error
    assert worker.context.ahead.is_free
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == sorted(((number,) for number in range(60)), key=repr)
    assert not is_done or not unknown_files(bench)


def behind(bench: Bench) -> TableWorker:
    """A worker whose table lacks sixty rows of a snapshot."""
    topic = Topic(bench.create().topic)
    for number in range(60):
        topic.change("r", key(number), {"id": number, "v": "a"}, at=1)
    produce(bench.kafka, topic.records)
    worker = bench.worker()
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    return worker


def finish(bench: Bench, worker: TableWorker, *, may_leave_files: bool = False) -> None:
    """Takes what is left: the table must have each row of behind(), and no file that its log does not name."""
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == sorted(((number,) for number in range(60)), key=repr)
    assert may_leave_files or not unknown_files(bench)


def test_the_first_batches_of_a_table_with_a_change_feed_are_decoded_once(
    make_bench: Callable[..., Bench], begun: Begun
) -> None:
    bench = make_bench(IN_BATCHES, properties={"delta.enableChangeDataFeed": "true"})
    finish(bench, behind(bench))
    assert (begun.begun, begun.used) == (4, 4)


def test_a_worker_that_is_replaced_leaves_nothing_behind(make_bench: Callable[..., Bench], begun: Begun) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS)
    worker = behind(bench)
    tables = TableSet(worker.context, lambda *_: None, lambda _: None)
    tables._workers[bench.topic] = worker
    worker.step()
    begun.wait()
    bench.rule = {**bench.rule, "layout": "vectors"}
    tables.follow(bench.config())
    tables.replace_outdated()
    [new] = tables.tables()
    assert new is not worker
    assert worker.context.ahead.is_free
    finish(bench, new)
    assert begun.begun == 4


def test_vacuum_does_not_take_the_files_of_a_batch_that_comes_next(
    make_bench: Callable[..., Bench], begun: Begun
) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS, properties={FILES_KEPT: "interval 0 seconds"})
    worker = behind(bench)
    worker.step()
    begun.wait()
    worker.maintain(Task.VACUUM)
    finish(bench, worker)


def test_what_is_ended_before_its_job_begins_does_nothing(
    make_bench: Callable[..., Bench], begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS)
    worker, may_go_on = behind(bench), threading.Event()
    writer_of = RawSource._writer_of

    def waits(*given: Any) -> Any:
        assert not threading.current_thread().name.startswith("ahead") or may_go_on.wait(30)
        return writer_of(*given)

    with monkeypatch.context() as patched:
        patched.setattr(RawSource, "_writer_of", waits)
        patched.setattr(task_records, "_CANCEL_INTERVAL", 0.005)  # so short a job would be done
        worker.step()
        future = begun.future
        ending = threading.Thread(target=worker.end_next)
        ending.start()
        ending.join(0.3)
        assert ending.is_alive()
        may_go_on.set()
        ending.join(30)
        assert not ending.is_alive()
    assert future.exception() is not None
    finish(bench, worker, may_leave_files=True)  # of tasks that were stopped; VACUUM removes them


def test_a_fault_between_fetching_and_decoding_ends_it(
    make_bench: Callable[..., Bench], begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS)
    worker = behind(bench)
    worker.step()
    begun.wait()
    with monkeypatch.context() as patched:
        patched.setattr(BatchReader, "_follow_columns", _refused)
        with pytest.raises(TransientError):
            worker.step()
    assert worker.context.ahead.is_free
    finish(bench, worker)


def test_a_kafka_that_does_not_answer_for_the_next_batch_does_not_concern_this_one(
    make_bench: Callable[..., Bench], begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(IN_BATCHES, columns=COLUMNS)
    worker, following = behind(bench), BatchSizer.next

    def answers_once(sizer: BatchSizer, start: Mapping[int, int], target: Mapping[int, int]) -> Any:
        if start.get(0):
            raise TransientError("kafka-unreachable", "no answer", "wait")
        return following(sizer, start, target)

    with monkeypatch.context() as patched:
        patched.setattr(BatchSizer, "next", answers_once)
        worker.step()
    assert len(bench.rows("id")) == 12
    assert begun.begun == 0
    finish(bench, worker)


def _refused(*_: object) -> None:
    raise TransientError(OFFSETS_GONE, "refused", "try again")


def test_one_table_at_a_time_has_a_batch_decoded_ahead(make_bench: Callable[..., Bench], begun: Begun) -> None:
    ahead = AheadThread()
    workers = []
    for _ in range(2):
        bench = make_bench(IN_BATCHES)
        topic = Topic(bench.create().topic)
        for number in range(30):
            topic.change("c", key(number), {"id": number}, at=number + 1)
        produce(bench.kafka, topic.records)
        first = bench.worker()
        worker = TableWorker(
            replace(first.context, ahead=ahead), first.table, first.topic, first.settings, str(bench.table)
        )
        worker.set_target(end_offsets(bench.kafka, bench.topic))
        worker.step()
        workers.append(worker)
    assert begun.begun == 1
    workers[0].end_next()
    workers[1].step()
    assert begun.begun == 2
