"""A table's turn: the effect of each kind of error, and that a stopping service waits for no retry."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.waiting import wait_until

from distributary.consume.kafka_errors import OFFSETS_GONE
from distributary.errors import TableHalt, TransientError
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.table_state import TableState
from distributary.workers.scheduler import Scheduler


class PanicException(BaseException):
    """As a fault inside a library in Rust comes: it is no Exception, and known by its name."""


@dataclass
class Table:
    """A table whose steps fail with that."""

    error: BaseException
    name: str = "dbo.t"
    topic: str = "p.dbo.t"
    turn_lock: threading.Lock = field(default_factory=threading.Lock)
    halted: TableHalt | None = None
    failed_tries: int = 0
    failing: bool = False
    steps: int = 0
    rechecks: int = 0
    ended: int = 0

    def end_next(self) -> None:
        self.ended += 1

    def step(self) -> None:
        self.steps += 1
        raise self.error

    def request_recheck(self) -> None:
        self.rechecks += 1

    def has_to_step(self) -> bool:
        return self.halted is None


@dataclass
class Meeting(Table):
    """A table whose one step ends when so many tables are in theirs."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))

    def step(self) -> None:
        self.steps += 1
        self.barrier.wait(timeout=10)

    def has_to_step(self) -> bool:
        return not self.steps


def test_so_many_tables_process_a_batch_at_once_as_the_config_says() -> None:
    barrier = threading.Barrier(3)
    tables: Any = [Meeting(ValueError(), name, name, barrier=barrier) for name in "abc"]
    status = ServiceStatus()
    config = SimpleNamespace(trigger=SimpleNamespace(interval_seconds=lambda: 1.0, tables_at_once=3))
    context: Any = SimpleNamespace(status=status, recorder=Recorder(status), stopping=threading.Event(), config=config)
    turns = Scheduler(context, cast(Any, SimpleNamespace()), lambda: tables, lambda _: False, lambda _: None)
    turns.schedule()
    turns.end()
    assert [(table.steps, table.halted) for table in tables] == [(1, None)] * 3


def turns_of(table: Table) -> tuple[Scheduler, ServiceStatus, threading.Event]:
    """The turns of that table, and the event that stops them."""
    status, stopping = ServiceStatus(), threading.Event()
    config = SimpleNamespace(trigger=SimpleNamespace(interval_seconds=lambda: 1.0, tables_at_once=2))
    context = SimpleNamespace(status=status, recorder=Recorder(status), stopping=stopping, config=config)
    halts = SimpleNamespace(add=lambda *_: None)
    found = cast(Any, table)
    return (
        Scheduler(cast(Any, context), cast(Any, halts), lambda: [found], lambda _: False, lambda _: None),
        status,
        stopping,
    )


def turn_of(table: Table, *, stop_after: float | None = None) -> tuple[ServiceStatus, float]:
    """One turn of the table; the status after it, and the seconds that it took."""
    turns, status, stopping = turns_of(table)
    started = time.monotonic()
    turns.schedule()
    if stop_after is not None:
        time.sleep(stop_after)
        stopping.set()
    turns.end()
    return status, time.monotonic() - started


@pytest.mark.parametrize("error", [ValueError("x"), PanicException("x")])
def test_an_error_that_nobody_expects_halts_the_table_be_it_a_panic(error: BaseException) -> None:
    table = Table(error)
    status, _ = turn_of(table)
    shown = status.table("dbo.t")
    assert shown is not None
    assert (shown.state, shown.error and shown.error["code"]) == (TableState.HALTED, "unexpected-error")
    assert (table.steps, table.turn_lock.locked()) == (1, False)


@pytest.mark.parametrize(("code", "rechecks"), [(OFFSETS_GONE, 1), ("commit-lost", 0)])
def test_offsets_that_are_gone_have_the_topic_checked(code: str, rechecks: int) -> None:
    table = Table(TransientError(code, "whatever it is", "wait"))
    turn_of(table, stop_after=0.05)
    assert (table.rechecks > 0) is bool(rechecks)
    assert table.failing


def test_a_table_that_waits_for_its_next_try_holds_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, high: high)  # the longest pause of each
    table = Table(TransientError("kafka-unreachable", "nobody answers", "wait"))
    _, seconds = turn_of(table)
    assert (table.steps, table.failing, table.turn_lock.locked()) == (1, True, False)
    assert seconds < 0.4


def test_four_tries_follow_each_other_closely_and_then_comes_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, high: high)
    monkeypatch.setattr("distributary.workers.scheduler.pause_after", lambda rounds, _: 100.0 * rounds)
    now = [0.0]
    monkeypatch.setattr("distributary.workers.scheduler.time", SimpleNamespace(monotonic=lambda: now[0]))
    table = Table(TransientError("kafka-unreachable", "nobody answers", "wait"))
    turns, _, _ = turns_of(table)
    tries: list[float] = []
    while len(tries) < 9:
        if turns.busy():
            turns.advance(locked(table))
            tries.append(now[0])
        now[0] += 0.5
    assert tries == [0, 0.5, 1.5, 3.5, 103.5, 104, 105, 107, 307]


def test_with_once_a_table_is_given_up_after_three_rounds() -> None:
    table = Table(TransientError("kafka-unreachable", "nobody answers", "wait"))
    turns, _, _ = turns_of(table)
    turns.give_up = True
    while table.halted is None:
        turns.advance(locked(table))
    assert (table.steps, table.halted.code) == (12, "kafka-unreachable")


def test_the_command_in_the_fix_of_a_halt_names_its_table() -> None:
    table = Table(TableHalt("key-changed", "another key", "`distributary resume -c FILE TABLE --rebuild`"))
    status, _ = turn_of(table)
    assert table.halted is not None
    assert table.halted.fix == f"`distributary resume -c FILE {table.name} --rebuild`"
    shown = status.table(table.name)
    assert shown is not None
    assert (shown.error or {})["fix"] == table.halted.fix


def locked(table: Table) -> Any:
    """The table while it has its turn."""
    assert table.turn_lock.acquire(blocking=False)
    return table


def test_a_table_that_waits_after_a_fault_does_not_keep_maintenance_from_work() -> None:
    table = Table(TransientError("kafka-unreachable", "nobody answers", "wait"))
    turns, _, _ = turns_of(table)
    assert turns.busy()
    turns.schedule()
    turns.end()
    assert (table.failed_tries, table.has_to_step()) == (1, True)
    turns._retry_at[table.topic] = time.monotonic() + 60
    assert not turns.busy()
    turns.try_at_once(cast(Any, table))
    assert turns.busy()


@pytest.mark.parametrize("error", [ValueError("halts it"), TransientError(OFFSETS_GONE, "passes", "wait")], ids=str)
def test_what_was_begun_for_the_next_step_ends_with_an_error(error: Exception) -> None:
    table = Table(error)
    turns, _, _ = turns_of(table)
    table.turn_lock.acquire()
    turns.advance(cast(Any, table))
    assert table.ended == 1


def test_no_thread_has_to_be_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two threads might process one table: the pool keeps a step for which it could start none."""
    table = Table(TransientError(OFFSETS_GONE, "passes", "wait"))
    turns, _, _ = turns_of(table)
    monkeypatch.delattr(threading.Thread, "start")
    turns.schedule()
    turns.end()
    assert (table.steps, table.turn_lock.locked()) == (1, False)


def test_what_was_begun_for_a_table_that_waits_ends_with_the_service() -> None:
    table = Table(ValueError())
    turns, _, _ = turns_of(table)
    turns.end()
    assert table.ended == 1


def test_what_was_begun_for_the_next_step_ends_with_the_last_one_and_not_before() -> None:
    @dataclass
    class Three(Table):
        def step(self) -> None:
            assert not self.ended
            self.steps += 1

        def has_to_step(self) -> bool:
            return self.steps < 3

    table = Three(ValueError())
    turns, _, _ = turns_of(table)
    turns.schedule()
    wait_until(lambda: table.ended, 10)
    assert (table.steps, table.ended) == (3, 1)
    turns.end()
