"""While a batch is applied, Spark's tasks decode the next one: the tables are those of batches one after the other."""

from __future__ import annotations

import json
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
from distributary.ingest import raw_records, task_writer
from distributary.ingest.ahead_thread import AheadThread
from distributary.ingest.raw_records import RawSource
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
    topic = Topic(bench.create().topic)
    for number in range(60):
        topic.change("r", key(number), {"id": number}, at=1)
    produce(bench.kafka, topic.records)
    worker = bench.worker()
    worker.set_target(end_offsets(bench.kafka, bench.topic))
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
