"""Decides which table processes its next batch: a few at a time, each one batch, then the end of the queue."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from distributary import failpoints
from distributary.consume.kafka_errors import OFFSETS_GONE
from distributary.control.halts import Halts
from distributary.error_mapping import classify, is_fault, pause_after
from distributary.errors import DistributaryError, TableHalt, TransientError
from distributary.halt_actions import with_names
from distributary.ingest.started_pool import started_pool
from distributary.logs import get_logger
from distributary.table_state import TableState
from distributary.workers.context import WorkerContext
from distributary.workers.table_worker import TableWorker

_TRIES = 4  # in a round, with short pauses between them; then comes a longer one
_FIRST_PAUSE = 0.5  # seconds at most between the first two tries of a round, doubled with each further one
_ROUNDS_OF_ONCE = 3  # after so many rounds `--once` gives up a table, and logs this
_log = get_logger(__name__)


class Scheduler:
    """Advances the tables in its own threads, until `context.stopping` is set. `tables` returns all tables; `waits`
    returns whether a table has to wait with its next batch; `finish_request` is called after each turn of a table,
    while the table does no other work.
    """

    def __init__(
        self,
        context: WorkerContext,
        halts: Halts,
        tables: Callable[[], Sequence[TableWorker]],
        waits: Callable[[TableWorker], bool],
        finish_request: Callable[[TableWorker], None],
    ) -> None:
        self._context = context
        self._halts = halts
        self._tables = tables
        self._waits = waits
        self._finish_request = finish_request
        self._pool = started_pool(context.config.trigger.tables_at_once, "table")
        self._retry_at: dict[str, float] = {}
        self.give_up = False
        """Whether a table that keeps failing is halted, so that a run with `--once` ends."""

    def schedule(self) -> None:
        """Queues every table that is behind its target, unless it is queued or waits for its next retry."""
        for worker in self._to_step():
            self._submit(worker)

    def busy(self) -> bool:
        """Whether a table has a batch to process now. One that waits for its next retry has none."""
        return bool(self._to_step())

    def _to_step(self) -> Sequence[TableWorker]:
        now = time.monotonic()
        return [
            worker for worker in self._tables() if worker.has_to_step() and now >= self._retry_at.get(worker.topic, 0.0)
        ]

    def try_at_once(self, worker: TableWorker) -> None:
        """Ends the wait of a table for its next retry."""
        self._retry_at.pop(worker.topic, None)

    def halt(self, worker: TableWorker, halt: TableHalt) -> None:
        """Halts the table: it stays unchanged until an operator, another config or a restart ends that."""
        halt = TableHalt(halt.code, halt.message, with_names(halt.fix, table=worker.name))
        worker.halted = halt
        self._halts.add(worker.topic, worker.name, halt)  # first: who sees the halt in the status may resume it at once
        self._show(worker, TableState.HALTED, halt)
        _log.error("table halted", table=worker.name, code=halt.code, reason=halt.message, fix=halt.fix)

    def forget(self, worker: TableWorker) -> None:
        """Drops the status of a table that is no longer in the config, or gets another worker."""
        self._retry_at.pop(worker.topic, None)
        self._halts.remove(worker.topic)
        self._context.status.forget(worker.name)
        self._context.recorder.forget(worker.name)

    def end(self) -> None:
        """Lets the batches in flight end, and ends what was begun for others."""
        self._pool.shutdown(wait=True)
        for worker in self._tables():
            worker.end_next()

    def _submit(self, worker: TableWorker) -> None:
        if self._context.stopping.is_set() or self._waits(worker) or not worker.turn_lock.acquire(blocking=False):
            return
        try:
            self._pool.submit(self.advance, worker)
        except RuntimeError:  # the pool was shut down in between
            worker.turn_lock.release()

    def advance(self, worker: TableWorker) -> None:
        """One batch of one table, then back to the end of the queue, so that a table far behind starves no other."""
        if self._context.stopping.is_set():
            worker.turn_lock.release()
            return
        try:
            self._attempt(worker)
            worker.failed_tries = 0
        except TableHalt as halt:
            self.halt(worker, halt)
        except DistributaryError as fault:
            self._try_later(worker, fault)
        finally:
            if self._context.stopping.is_set() or worker.failed_tries or not worker.has_to_step():
                worker.end_next()
            self._finish_request(worker)
            worker.turn_lock.release()
        if worker.has_to_step() and worker.failed_tries == 0:
            self._submit(worker)

    def _try_later(self, worker: TableWorker, fault: DistributaryError) -> None:
        """Has the table wait for its next try, without a thread: others process their batches meanwhile."""
        rounds, tries = divmod(worker.failed_tries, _TRIES)
        tries = tries + 1 if isinstance(fault, TransientError) else _TRIES
        worker.failed_tries = rounds * _TRIES + tries
        if tries < _TRIES:
            # Not all at the same moment, where something that many tables need failed.
            pause = random.uniform(0, _FIRST_PAUSE * 2 ** (tries - 1))
        else:
            pause = pause_after(rounds + 1, self._context.config.trigger.interval_seconds())
            _log.warning("table is tried again later", table=worker.name, code=fault.code, reason=fault.message)
        self._retry_at[worker.topic] = time.monotonic() + pause
        if self.give_up and worker.failed_tries >= _ROUNDS_OF_ONCE * _TRIES:
            self.halt(worker, TableHalt(fault.code, fault.message, fault.fix))

    def _attempt(self, worker: TableWorker) -> None:
        try:
            failpoints.passing("before-batch", worker.name)
            worker.step()
        except BaseException as error:
            if not is_fault(error):
                raise
            _log.debug("a batch failed", table=worker.name, exc_info=error)
            fault = classify(error)
            if fault.code == OFFSETS_GONE:
                worker.request_recheck()
            if isinstance(fault, TransientError):
                self._context.recorder.retried(worker.name)
            if not isinstance(fault, TableHalt):
                worker.failing = True
                self._show(worker, TableState.RETRYING, fault)
            raise fault from error

    def _show(self, worker: TableWorker, state: TableState, error: DistributaryError) -> None:
        self._context.status.update(worker.name, state=state, error=error.as_dict())
