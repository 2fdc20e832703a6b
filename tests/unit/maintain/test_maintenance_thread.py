"""The maintenance thread: when it maintains a table, and what it does after a failure."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from tests.support.maintenance import MemoryRecord, clock_of_schedule

from distributary.config.maintenance import Maintenance
from distributary.errors import TableHalt
from distributary.lake.optimize import Compacted
from distributary.launch.tagged_jobs import TaggedJobs
from distributary.maintain.maintenance_thread import MaintenanceThread
from distributary.maintain.schedule import Due, MaintenanceSchedule, Task
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus


@dataclass
class Table:
    """A table at a version; counts what is done to it."""

    name: str = "dbo.t"
    version: int = 10
    fault: Exception | None = None
    turn_lock: threading.Lock = field(default_factory=threading.Lock)
    schedule: MaintenanceSchedule = field(
        default_factory=lambda: MaintenanceSchedule(Maintenance(compact_after=10), MemoryRecord(), clock_of_schedule())
    )
    tended: int = 0
    pieces: int = 1
    """How often a task is called until it is done."""

    def __post_init__(self) -> None:
        self.schedule.start()

    def due(self) -> Due | None:
        return self.schedule.due(self.version, None)

    def maintain(self, task: Task) -> Compacted:
        assert self.turn_lock.locked()
        if self.fault is not None:
            raise self.fault
        self.tended += 1
        self.version += 1
        if self.tended % self.pieces == 0:
            self.schedule.done(task, self.version)
        return Compacted(added=1, removed=9, bytes=900)


class NoJobs:
    """In the place of Spark's."""

    cancelled = 0

    def tagged(self) -> Any:
        return nullcontext()

    def cancel(self) -> None:
        self.cancelled += 1


def maintenance_thread(*tables: Table, busy: bool = False) -> tuple[MaintenanceThread, Recorder]:
    recorder = Recorder(ServiceStatus())
    return MaintenanceThread(lambda: tables, lambda: busy, recorder, cast(TaggedJobs, NoJobs())), recorder


def value(recorder: Recorder, name: str, **labels: str) -> float | None:
    return recorder.registry.get_sample_value(name, labels)


def test_what_is_due_is_done_once_and_told() -> None:
    table, other = Table(), Table("dbo.other", version=9)
    care, recorder = maintenance_thread(table, other)
    assert care.has_work()
    for _ in range(3):
        care.do_next_task()
    assert (table.tended, other.tended, care.has_work()) == (1, 0, False)
    assert not table.turn_lock.locked()
    assert value(recorder, "distributary_table_compacted_files_total", table="dbo.t") == 9
    assert value(recorder, "distributary_table_compacted_bytes_total", table="dbo.t") == 900
    assert value(recorder, "distributary_table_maintenance_duration_seconds_count", table="dbo.t", task="compact") == 1


def test_while_batches_wait_only_what_is_overdue_is_done() -> None:
    usual, overdue = Table(version=39), Table(version=40)
    care, _ = maintenance_thread(usual, overdue, busy=True)
    care.do_next_task()
    assert (usual.tended, overdue.tended) == (0, 1)


def test_batches_and_the_pieces_of_an_overdue_task_take_turns() -> None:
    table = Table(version=40, pieces=3)
    care, _ = maintenance_thread(table, busy=True)
    for done in (1, 2, 3):
        care.do_next_task()
        assert table.tended == done
        assert not table.turn_lock.locked()
    care.do_next_task()
    assert table.tended == 3


def test_all_pieces_of_a_task_are_done_at_once_while_nothing_waits() -> None:
    table = Table(version=40, pieces=3)
    maintenance_thread(table)[0].do_next_task()
    assert table.tended == 3


def test_a_table_at_work_is_left_alone() -> None:
    table = Table()
    care, _ = maintenance_thread(table)
    with table.turn_lock:
        care.do_next_task()
    assert table.tended == 0
    care.do_next_task()
    assert table.tended == 1


def test_what_is_overdue_takes_the_place_of_the_tables_next_batch() -> None:
    table = Table(version=40)
    care, _ = maintenance_thread(table, busy=True)
    table.turn_lock.acquire()
    turn = threading.Thread(target=care.do_next_task)
    turn.start()
    while not care.waits_for(table):
        assert turn.is_alive()
    table.turn_lock.release()
    turn.join(30)
    assert (table.tended, care.waits_for(table)) == (1, False)


def test_a_table_that_is_replaced_holds_up_no_other() -> None:
    old, new = Table(version=40), Table(version=10)
    old.turn_lock.acquire()  # for good
    tables = [old]
    care = MaintenanceThread(
        lambda: tuple(tables), lambda: False, Recorder(ServiceStatus()), cast(TaggedJobs, NoJobs())
    )
    turn = threading.Thread(target=care.do_next_task)
    turn.start()
    while not care.waits_for(old):
        assert turn.is_alive()
    tables[:] = [new]
    turn.join(30)
    care.do_next_task()
    assert (old.tended, new.tended) == (0, 1)


@pytest.mark.parametrize("fault", [RuntimeError("whatever"), TableHalt("progress-lost", "gone")])
def test_a_failure_is_reported_and_changes_nothing_else(fault: Exception) -> None:
    broken, other = Table("dbo.broken", fault=fault), Table()
    care, recorder = maintenance_thread(broken, other)
    for _ in range(3):
        care.do_next_task()
    assert (broken.tended, other.tended, care.has_work()) == (0, 1, False)
    assert not broken.turn_lock.locked()
    assert value(recorder, "distributary_table_maintenance_failures_total", table="dbo.broken", task="compact") == 1


def test_a_table_that_cant_find_what_it_needs_holds_up_no_other() -> None:
    class Unreadable(Table):
        def due(self) -> Due | None:
            raise OSError("no such bucket")

    table = Table()
    care, _ = maintenance_thread(Unreadable("dbo.unreadable"), table)
    care.do_next_task()
    assert (table.tended, care.has_work()) == (1, False)


def test_it_stops_within_the_task() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Long(Table):
        def maintain(self, task: Task) -> Compacted:  # noqa: ARG002
            begun.set()
            assert cancelled.wait(30)
            raise RuntimeError("cancelled")

    class Cancelling(NoJobs):
        def cancel(self) -> None:
            cancelled.set()

    recorder, table = Recorder(ServiceStatus()), Long()
    care = MaintenanceThread(lambda: [table], lambda: False, recorder, cast(TaggedJobs, Cancelling()))
    care.start()
    assert begun.wait(30)
    care.stop()
    assert not table.turn_lock.locked()
    # Nothing failed: what was cut short is due at the next start.
    assert value(recorder, "distributary_table_maintenance_failures_total", table="dbo.t", task="compact") is None
    assert table.due() is not None
