"""Runs maintenance of the tables' files between batches: one task at a time, while no batch waits.

A task takes its table's lock, as a batch does, so that the two never change one table at once. A failed task is logged
and tried again later; it halts no table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from distributary.error_mapping import classify
from distributary.errors import DistributaryError
from distributary.lake.optimize import Compacted
from distributary.launch.tagged_jobs import TaggedJobs
from distributary.logs import get_logger
from distributary.maintain.schedule import Due, MaintenanceSchedule, Task
from distributary.observe.recorder import Recorder

_TURN = 1.0  # seconds between two looks
_STOPPING = 30.0  # seconds that a task may take to end once it was cancelled
_log = get_logger(__name__)


class Maintainable(Protocol):
    """A table whose files are maintained."""

    @property
    def turn_lock(self) -> threading.Lock:
        """Held while a batch or a task changes the table."""
        ...

    @property
    def name(self) -> str:
        """Its name in logs and metrics."""
        ...

    @property
    def schedule(self) -> MaintenanceSchedule:
        """The record of the last maintenance, and the time of the next try."""
        ...

    def due(self) -> Due | None:
        """The tasks that are due. Called often by several threads, so it must be cheap."""
        ...

    def maintain(self, task: Task) -> Compacted | None:
        """Does it, and notes it in `schedule`. May raise anything."""
        ...


class MaintenanceThread:
    """The thread of maintenance. `tables` returns all tables; `busy` returns whether any table has a batch to
    process; `jobs` are the Spark jobs of its tasks."""

    def __init__(
        self,
        tables: Callable[[], Sequence[Maintainable]],
        busy: Callable[[], bool],
        recorder: Recorder,
        jobs: TaggedJobs,
    ) -> None:
        self._tables = tables
        self._busy = busy
        self._recorder = recorder
        self._jobs = jobs
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)
        self._waited_for: Maintainable | None = None

    def start(self) -> None:
        """At work until stop()."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the running task. Its table stays unchanged; a later VACUUM removes the files that it wrote."""
        self._stopping.set()
        until = time.monotonic() + _STOPPING
        while self._thread.is_alive() and time.monotonic() < until:
            self._jobs.cancel()  # again and again: the next job of the task may only just begin
            self._thread.join(_TURN)

    def has_work(self) -> bool:
        """Whether anything is due."""
        return any(self._due(table) is not None for table in self._tables())

    def waits_for(self, table: Maintainable) -> bool:
        """Whether the table is to take no further batch until an overdue task is done."""
        return self._waited_for is table

    def _run(self) -> None:
        while not self._stopping.wait(_TURN):
            self.do_next_task()

    def do_next_task(self) -> None:
        """Does the tasks that are due, table by table; those that are not overdue only while no batch waits."""
        for table in self._tables():
            due = self._due(table)
            if due is None or (self._busy() and not due.overdue) or not self._maintain(table, due):
                continue
            try:
                while due is not None and self._is_done(table, due.task):
                    due = self._due(table)
                    if self._busy():
                        break  # the other pieces wait, even if overdue: batches and pieces alternate
            finally:
                table.turn_lock.release()

    @staticmethod
    def _due(table: Maintainable) -> Due | None:
        try:
            return table.due()
        except Exception as error:  # one table's fault must not keep others from maintenance
            _log.warning(
                "the maintenance that a table needs can't be determined",
                table=table.name,
                reason=classify(error).message,
            )
            return None

    def _maintain(self, table: Maintainable, due: Due) -> bool:
        """Runs a task with the table's lock. An overdue task waits for the batch in flight."""
        if not due.overdue:
            return table.turn_lock.acquire(blocking=False)
        self._waited_for = table
        try:
            # A table that is replaced meanwhile never gives its lock back.
            while not self._stopping.is_set() and any(other is table for other in self._tables()):
                if table.turn_lock.acquire(timeout=_TURN):
                    return True
            return False
        finally:
            self._waited_for = None

    def _is_done(self, table: Maintainable, task: Task) -> bool:
        if self._stopping.is_set():
            return False
        began = time.monotonic()
        try:
            with self._jobs.tagged():
                result = table.maintain(task)
        except Exception as error:
            if not self._stopping.is_set():
                self._failed(table, task, classify(error))
            return False
        seconds = time.monotonic() - began
        self._recorder.maintained(table.name, task.value, seconds, result)
        counts = {} if result is None else {"files": result.removed, "into": result.added, "bytes": result.bytes}
        _log.info("maintenance done", table=table.name, task=task.value, **counts)
        return True

    def _failed(self, table: Maintainable, task: Task, fault: DistributaryError) -> None:
        pause = table.schedule.failed(task)
        self._recorder.maintenance_failed(table.name, task.value)
        _log.warning(
            "maintenance failed; it is tried again later",
            table=table.name,
            task=task.value,
            code=fault.code,
            reason=fault.message,
            seconds=round(pause),
        )
