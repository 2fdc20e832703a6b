"""Halted tables continue: hands what operators ask for (control/resume_requests.py) to the tables of the service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import SparkSession

from distributary import failpoints
from distributary.config import Config
from distributary.control.halts import Halts
from distributary.control.resume_requests import Request, Requests
from distributary.error_mapping import classify
from distributary.ingest.continuity import TWO_TOPICS
from distributary.logs import get_logger
from distributary.workers.table_worker import TableWorker

_EVERY = 3.0  # seconds between two looks
_log = get_logger(__name__)


class Resuming:
    """Looks for requests now and then. `goes_on` is told of each table that is to be tried at once."""

    def __init__(
        self, session: SparkSession, config: Config, halts: Halts, goes_on: Callable[[TableWorker], object]
    ) -> None:
        self._requests = Requests(session, config)
        self._halts = halts
        self._goes_on = goes_on
        self._next = 0.0
        self._looking = threading.Lock()
        self._handed: dict[str, tuple[Request, TableWorker]] = {}
        self._wanted: set[str] = set()

    def waits_for(self, table: TableWorker) -> bool:
        """Whether the table is to take no further batch until it was handed a request: one that has a long way to go is
        at work all the time."""
        return table.topic in self._wanted

    def look(self, tables: Iterable[TableWorker], *, now: bool = False) -> None:
        """Hands what is asked for to those of the tables that are not at work."""
        with self._looking:
            self._look(tables, now=now)

    def _look(self, tables: Iterable[TableWorker], *, now: bool) -> None:
        if not now and not self._wanted and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        try:
            asked: dict[str, list[Request]] = {}
            for request in self._requests.waiting():
                asked.setdefault(request.topic, []).append(request)
            wanted: set[str] = set()
            for table in tables:
                requests = asked.get(table.topic)
                if not requests:
                    continue
                if table.running.acquire(blocking=False):
                    try:
                        self._hand_one(requests, table)
                    finally:
                        table.running.release()
                elif self._handed_to(table) is None:  # else it is what the table is at work on
                    wanted.add(table.topic)
            self._wanted = wanted
        except Exception as error:
            self._wanted = set()
            _log.warning("requests of operators could not be read", reason=classify(error).message)

    def settle(self, table: TableWorker) -> None:
        """Takes away the request of a table that has done it or halted: what keeps it halted then needs another one.

        Until then the request stays, so that one which a crash cuts short is done by the next driver. Called while the
        table is kept from other work.
        """
        handed = self._handed_to(table)
        if handed is None or (table.halted is None and table.asked is not None):
            return
        try:
            failpoints.passing("after-request", table.name)
            self._requests.done(handed)
            del self._handed[table.topic]
        except Exception as error:
            _log.warning("a request of an operator could not be taken away", reason=classify(error).message)

    def _handed_to(self, table: TableWorker) -> Request | None:
        """What this worker was handed and has not settled; what another one of its table was is not done by it."""
        request, to = self._handed.get(table.topic, (None, None))
        return request if to is table else None

    def _hand_one(self, requests: Sequence[Request], table: TableWorker) -> None:
        """Hands the first of them that the table has not, unless it has one to do: the next comes once that is done.
        One that fails again and again keeps out no other. One that another worker had is handed to this one."""
        self.settle(table)
        handed = self._handed_to(table)
        if handed is not None and not table.failing:
            return
        new = next((one for one in requests if one != handed), None)
        if new is not None and self._requests.waits(new):  # since it was read
            self._hand(new, table)

    def _hand(self, request: Request, table: TableWorker) -> None:
        failpoints.passing("before-request", table.name)
        self._handed[table.topic] = (request, table)
        if table.halted is not None and table.halted.code == TWO_TOPICS:
            self.settle(table)
            return
        table.resume(request.accept)
        self._halts.remove(table.topic)
        self._goes_on(table)
        _log.info("table continues", table=table.name, accepted=request.accept.value)
