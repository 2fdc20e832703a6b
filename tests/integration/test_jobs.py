"""The number of Spark jobs of a batch. Each costs planning and a launch, so a new one must be a decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.support.changes import INT, TEXT, Topic
from tests.support.kafka import Record
from tests.support.spark import Bench

from distributary.workers.table_worker import TableWorker

COLUMNS = {"id": "int", "v": "string"}
SCHEMA = {"id": INT, "v": TEXT}
NOTHING = b'{"schema":null,"payload":null}'


@pytest.fixture
def topic(bench: Bench) -> Topic:
    return Topic(bench.create().topic)


def filled(bench: Bench, topic: Topic, **rule: Any) -> TableWorker:
    """A worker whose table has a few rows already."""
    bench.rule = {"columns": COLUMNS, **rule}
    worker = bench.take(creates(topic, range(1, 20)))
    return bench.take(creates(topic, range(20, 25)), worker)


def creates(topic: Topic, keys: range) -> list[Record]:
    return [topic.change("c", {"id": key}, {"id": key, "v": f"new {key}"}, at=key) for key in keys]


def ordinary(topic: Topic) -> Iterator[Record]:
    """Creates, updates and deletes with their tombstones."""
    yield from creates(topic, range(100, 105))
    for key in range(1, 5):
        yield topic.change("u", {"id": key}, {"id": key, "v": "changed"}, at=110 + key)
    yield topic.change("d", {"id": 7}, at=120)
    yield topic.tombstone({"id": 7})


def special(topic: Topic) -> Iterator[Record]:
    """A truncate, a change that comes late, a lone tombstone, a key change, what can't be read."""
    yield topic.change("u", {"id": 3}, {"id": 3, "v": "late"}, at=1)
    yield topic.tombstone({"id": 9})
    yield topic.add({"id": 10}, b"no JSON")
    yield topic.change("d", {"id": 4}, at=130, headers={"newkey": {"id": 40}})
    yield topic.tombstone({"id": 4})
    yield topic.change("c", {"id": 40}, {"id": 40, "v": "moved"}, at=130, step=2, headers={"oldkey": {"id": 4}})
    yield topic.change("t", None, at=140)
    yield from creates(topic, range(200, 203))


def jobs(session: SparkSession) -> int:
    """How many were started so far."""
    scheduler: Any = session.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.nextJobId())


def counted(bench: Bench, worker: TableWorker, records: Iterator[Record]) -> int:
    before = jobs(bench.session)
    bench.take(records, worker)
    return jobs(bench.session) - before


def test_nothing_to_do_runs_none(bench: Bench, topic: Topic) -> None:
    worker = filled(bench, topic)
    assert counted(bench, worker, iter(())) == 0
    worker.request_recheck()  # the topic and the table are looked at
    assert counted(bench, worker, iter(())) == 0


def test_a_small_batch(bench: Bench, topic: Topic) -> None:
    """It is decoded, applied and written by the driver."""
    worker = filled(bench, topic)
    assert counted(bench, worker, ordinary(topic)) == 0


def test_a_small_batch_with_a_schema(bench: Bench, topic: Topic) -> None:
    """It is read once, with tombstones in all forms and what is no JSON among it, and however it is written."""

    def with_schema(records: Iterable[Record]) -> list[Record]:
        found: list[Record] = []
        for record in records:
            is_tombstone = record.value is None
            found.append(record._replace(key=found[-1].key) if is_tombstone else topic.with_schema(record, SCHEMA))
        return found

    worker = bench.take(())
    # The first of them makes the table.
    assert counted(bench, worker, iter(with_schema(creates(topic, range(1, 20))))) == 0
    bench.take(with_schema(creates(topic, range(20, 25))), worker)
    assert counted(bench, worker, iter(with_schema(ordinary(topic)))) == 0
    [delete] = with_schema([topic.change("d", {"id": 8}, at=150)])
    assert counted(bench, worker, iter([delete, delete._replace(value=NOTHING)])) == 0
    one, two = with_schema(topic.change("c", {"id": 9}, {"id": 9, "v": "x"}, at=at) for at in (160, 170))
    bad = one._replace(value=b"no JSON")
    assert counted(bench, worker, iter([bad])) == 0  # the quarantine's table is made
    assert counted(bench, worker, iter([bad])) == 0
    loose = [r._replace(value=(r.value or b"").replace(b',"payload":', b', "payload": ')) for r in (one, two)]
    assert counted(bench, worker, iter(loose[:1])) == 0
    assert counted(bench, worker, iter(loose[1:])) == 0


def test_the_first_deletion_vectors(bench: Bench, topic: Topic) -> None:
    """Delta would compute the state of the whole table for its checksum, in this batch and the next one."""
    worker = filled(bench, topic, layout="vectors")
    assert counted(bench, worker, ordinary(topic)) == 0
    assert counted(bench, worker, iter(creates(topic, range(5, 9)))) == 0
    assert DeltaTable(bench.table).metadata().configuration["delta.enableDeletionVectors"] == "true"


def test_an_append(bench: Bench, topic: Topic) -> None:
    worker = filled(bench, topic, mode="append")
    assert counted(bench, worker, iter(creates(topic, range(100, 110)))) == 0


def test_a_batch_with_every_special_case(bench: Bench, topic: Topic) -> None:
    worker = filled(bench, topic)
    counted(bench, worker, ordinary(topic))
    assert counted(bench, worker, special(topic)) == 0


def test_values_that_are_read_with_care_cost_no_job_more(bench: Bench, topic: Topic) -> None:
    worker = filled(bench, topic)
    usual = counted(bench, worker, iter(creates(topic, range(20, 25))))

    def as_texts(keys: range) -> Iterator[Record]:
        return iter([topic.change("c", {"id": key}, {"id": str(key), "v": "text"}, at=key) for key in keys])

    assert counted(bench, worker, as_texts(range(30, 35))) == usual
