"""Failures at every point, a second driver, and a lake that is set back: nothing is lost, nothing comes twice.

A crash is played by an error at a failpoint and a new worker after it, which knows only what the table knows; a real
`kill -9` of the whole process is in tests/e2e/test_kills.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.changes import Topic
from tests.support.kafka import end_offsets, produce
from tests.support.spark import Bench, rows_of

from distributary import failpoints
from distributary.control.halts import Halts
from distributary.control.resume_requests import Request, Requests, write_request
from distributary.delta.commit import ConcurrentChange
from distributary.error_mapping import classify
from distributary.errors import DistributaryError, TableHalt
from distributary.halt_actions import ResumeAction
from distributary.ingest.batch_writer import BatchWriter
from distributary.ingest.decoded_batch import DecodedBatch, PreparedBatch
from distributary.lake.table import LakeTable
from distributary.progress.record import Head
from distributary.workers.resume import ResumePoller
from distributary.workers.table_worker import TableWorker

DRIVERS = pytest.mark.parametrize("driver", ["the same", pytest.param("a new one", marks=pytest.mark.slow)])
POINTS_OF_A_BATCH = ("after-schema-change", "before-quarantine", "after-quarantine", "before-commit", "after-commit")


pytestmark = pytest.mark.bench(partitions=1)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """No failpoint stays armed after a test."""
    yield
    failpoints.arm(None)


def inserted(bench: Bench, first: int, last: int) -> Topic:
    """A row for each number, at the place of that number."""
    topic = Topic(bench.topic)
    for number in range(first, last + 1):
        topic.change("c", {"id": number}, {"id": number, "v": number}, at=number)
    return topic


def batches(bench: Bench) -> Iterator[tuple[str, Topic]]:
    """A batch for each point: a record that can't be read, and a change of every kind, a new column among them."""
    for number, point in enumerate(POINTS_OF_A_BATCH, start=1):
        topic = Topic(bench.topic)
        topic.add({"id": 0}, b"no JSON")
        topic.change("c", {"id": number}, {"id": number, "v": point, f"c{number}": True}, at=10 * number)
        topic.change("u", {"id": 1}, {"id": 1, "v": point}, at=10 * number + 1)
        topic.change("c", {"id": -1}, {"id": -1, "v": point}, at=10 * number + 2)
        topic.change("d", {"id": -1}, at=10 * number + 3)
        yield point, topic


def advance(bench: Bench, worker: TableWorker) -> TableWorker:
    """The worker applies what is in the topic."""
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    while worker.has_to_step():
        worker.step()
    return worker


def test_6_1_a_crash_at_any_point_of_a_batch_loses_and_doubles_nothing(bench: Bench) -> None:
    for point, topic in batches(bench):
        produce(bench.kafka, topic.records)
        failpoints.arm(f"{point}:dbo.t=raise@1")
        with pytest.raises(TableHalt, match="MadeToFail"):
            advance(bench, bench.worker())
        failpoints.arm(None)
    again = Topic(bench.topic)
    again.change("u", {"id": -1}, {"id": -1, "v": "sent again"}, at=11)
    bench.take(again.records)
    last = len(POINTS_OF_A_BATCH)
    rows = [
        (number, POINTS_OF_A_BATCH[-1] if number == 1 else POINTS_OF_A_BATCH[number - 1])
        for number in range(1, last + 1)
    ]
    assert bench.rows("id", "v") == rows
    assert sorted(rows_of(bench.quarantine, "offset")) == [(5 * number,) for number in range(last)]


def test_6_1_of_two_drivers_that_commit_in_turn_and_at_once_neither_loses_or_doubles_anything(bench: Bench) -> None:
    one, other = bench.take(inserted(bench, 1, 2).records), advance(bench, bench.worker())
    bench.take(inserted(bench, 3, 4).records, one)
    bench.take(inserted(bench, 5, 6).records, other)  # it has seen neither the rows nor the record of the first one
    assert bench.rows() == [(n, n) for n in range(1, 7)]
    assert one.next_offsets != other.next_offsets == {0: 6}

    def meanwhile() -> None:
        advance(bench, one)

    produce(bench.kafka, inserted(bench, 7, 8).records)
    other.set_target(end_offsets(bench.kafka, bench.topic))
    with at_the_point("before-commit", meanwhile), pytest.raises(DistributaryError) as raised:
        step(other)
    assert (type(raised.value), raised.value.code) == (ConcurrentChange, "commit-lost")
    assert bench.rows() == [(n, n) for n in range(1, 9)]
    assert advance(bench, other).next_offsets == one.next_offsets == {0: 8}
    bench.take(inserted(bench, 9, 9).records, other)
    assert bench.rows() == [(n, n) for n in range(1, 10)]
    versions = [entry for entry in DeltaTable(str(bench.table)).history() if "userMetadata" in entry]
    assert len(versions) == 5  # each batch once


@pytest.mark.slow
def test_6_1_a_driver_that_slept_over_another_ones_new_column_goes_on(bench: Bench) -> None:
    one, other = bench.take(inserted(bench, 1, 2).records), advance(bench, bench.worker())
    wider = Topic(bench.topic)
    wider.change("c", {"id": 3}, {"id": 3, "v": 3, "w": "new"}, at=3)
    bench.take(wider.records, one)
    narrower = Topic(bench.topic)
    narrower.change("c", {"id": 4}, {"id": 4, "v": 4, "w": "newer"}, at=4)
    bench.take(narrower.records, other)
    assert bench.rows("id", "w") == [(1, None), (2, None), (3, "new"), (4, "newer")]


@DRIVERS
def test_6_1_a_table_that_was_restored_to_an_earlier_version_takes_in_again_what_it_lacks(
    bench: Bench, driver: str
) -> None:
    worker = bench.take(inserted(bench, 1, 2).records)
    earlier = DeltaTable(str(bench.table)).version()
    deleting = inserted(bench, 3, 4)
    deleting.change("d", {"id": 1}, at=5)
    bench.take(deleting.records, worker)
    restore(bench, earlier)
    assert bench.rows() == [(1, 1), (2, 2)]
    worker = worker if driver == "the same" else bench.worker()
    bench.take(inserted(bench, 6, 7).records, worker)
    assert bench.rows() == [(n, n) for n in (2, 3, 4, 6, 7)]
    restore(bench, 0)  # the empty table
    bench.take(inserted(bench, 8, 8).records)
    assert bench.rows() == [(n, n) for n in (2, 3, 4, 6, 7, 8)]


@pytest.mark.slow
def test_6_1_a_restore_that_tells_no_version_halts_the_table_until_one_tells(bench: Bench) -> None:
    bench.take(inserted(bench, 1, 2).records)
    earlier = DeltaTable(str(bench.table))
    at = earlier.history(1)[0]["timestamp"] + 1
    bench.take(inserted(bench, 3, 4).records)
    found = f"timestamp_millis({at})"
    stamp = bench.session.sql(f"SELECT CAST({found} AS STRING)").collect()[0][0]
    bench.session.sql(f"RESTORE TABLE delta.`{bench.table}` TO TIMESTAMP AS OF '{stamp}'")
    worker = bench.worker()
    with pytest.raises(DistributaryError, match="VERSION AS OF") as raised:
        bench.take([], worker)
    assert raised.value.code == "table-restored"
    restore(bench, earlier.version())
    bench.take(inserted(bench, 5, 5).records)
    assert bench.rows() == [(n, n) for n in range(1, 6)]


@DRIVERS
def test_6_1_a_table_whose_directory_was_deleted_is_filled_again(bench: Bench, driver: str) -> None:
    worker = bench.take(inserted(bench, 1, 2).records)
    shutil.rmtree(bench.table)
    worker = worker if driver == "the same" else bench.worker()
    bench.take(inserted(bench, 3, 4).records, worker)
    assert bench.rows() == [(n, n) for n in range(1, 5)]


@pytest.mark.slow
@DRIVERS
def test_6_1_an_older_copy_of_a_tables_directory_takes_in_again_what_it_lacks(bench: Bench, driver: str) -> None:
    worker = bench.take(inserted(bench, 1, 2).records)
    shutil.copytree(bench.table, bench.folder / "copy")
    for number in (3, 4):
        bench.take(inserted(bench, number, number).records, worker)
    shutil.rmtree(bench.table)
    shutil.copytree(bench.folder / "copy", bench.table)
    worker = worker if driver == "the same" else bench.worker()
    bench.take(inserted(bench, 5, 5).records, worker)
    assert bench.rows() == [(n, n) for n in range(1, 6)]


def test_6_2_a_request_that_a_crash_cut_short_is_done_by_the_next_driver(bench: Bench) -> None:
    killed = bench.take(inserted(bench, 1, 2).records)
    config = bench.config()
    write_request(config, Request(bench.topic, ResumeAction.REBUILD))

    def resuming() -> ResumePoller:
        return ResumePoller(bench.session, config, Halts(bench.session, config), lambda _table: None)

    resuming().poll([killed], now=True)
    assert killed.resume_action is ResumeAction.REBUILD
    worker, requests, again = bench.worker(), Requests(bench.session, config), resuming()
    again.poll([worker], now=True)
    again.finish_request(worker)
    assert [request.action for request in requests.waiting()] == [worker.resume_action]
    bench.take(inserted(bench, 3, 3).records, worker)
    again.finish_request(worker)
    assert (worker.resume_action, requests.waiting()) == (None, [])
    assert bench.rows() == [(n, n) for n in range(1, 4)]
    # A table that halts has had its chance: what keeps it halted needs another request.
    write_request(config, Request(bench.topic, ResumeAction.RETRY))
    again.poll([worker], now=True)
    worker.halted = TableHalt("any", "whatever it is")
    again.finish_request(worker)
    assert requests.waiting() == []


def restore(bench: Bench, version: int) -> None:
    """As an operator does it."""
    bench.session.sql(f"RESTORE TABLE delta.`{bench.table}` TO VERSION AS OF {version}")


def step(worker: TableWorker) -> None:
    """As the service takes a step: what fails is one of its own errors."""
    try:
        worker.step()
    except Exception as error:
        raise classify(error) from error


class at_the_point:  # noqa: N801 - reads as a statement
    """What is done, once, when the failpoint is passed."""

    def __init__(self, point: str, done: Any) -> None:
        self._point, self._done = point, done

    def __enter__(self) -> None:
        self._passing = failpoints.passing

        def passing(point: str, table: str = "") -> None:
            if point == self._point:
                failpoints.passing = self._passing
                self._done()
            self._passing(point, table)

        failpoints.passing = passing

    def __exit__(self, *_: object) -> None:
        failpoints.passing = self._passing


@pytest.mark.parametrize("do", ["restore", "compact"])
def test_6_1_what_another_writer_does_while_a_batch_is_read_is_seen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, do: str
) -> None:
    worker = bench.take(inserted(bench, 1, 1).records)
    bench.take(inserted(bench, 2, 3).records, worker)
    done: list[object] = []
    prepare = BatchWriter.prepare

    def after_another(self: BatchWriter, lake: LakeTable, batch: DecodedBatch, head: Head) -> PreparedBatch:
        if not done:
            table = DeltaTable(str(bench.table))
            done.append(table.restore(1) if do == "restore" else table.optimize.compact())
        return prepare(self, lake, batch, head)

    monkeypatch.setattr(BatchWriter, "prepare", after_another)
    produce(bench.kafka, inserted(bench, 4, 5).records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    if do == "restore":
        with pytest.raises(ConcurrentChange):
            step(worker)
    advance(bench, worker)
    assert done
    assert bench.rows() == [(n, n) for n in range(1, 6)]
