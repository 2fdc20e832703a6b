"""Resumes halted tables: hands operators' requests (control/resume_requests.py) to the workers of the tables."""

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

_EVERY = 3.0  # seconds between two polls
_log = get_logger(__name__)


class ResumePoller:
    """Polls for requests. `on_resume` is called with each table that is to be tried at once."""

    def __init__(
        self, session: SparkSession, config: Config, halts: Halts, on_resume: Callable[[TableWorker], object]
    ) -> None:
        self._requests = Requests(session, config)
        self._halts = halts
        self._on_resume = on_resume
        self._next = 0.0
        self._polling = threading.Lock()
        self._in_progress: dict[str, tuple[Request, TableWorker]] = {}
        self._topics_with_requests: set[str] = set()

    def waits_for(self, table: TableWorker) -> bool:
        """Whether the table is to process no further batch until it was handed a request: a table far behind is never
        idle by itself."""
        return table.topic in self._topics_with_requests

    def poll(self, tables: Iterable[TableWorker], *, now: bool = False) -> None:
        """Hands waiting requests to those of the tables that are idle."""
        with self._polling:
            self._hand_requests(tables, now=now)

    def _hand_requests(self, tables: Iterable[TableWorker], *, now: bool) -> None:
        if not now and not self._topics_with_requests and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        try:
            requests_of: dict[str, list[Request]] = {}
            for request in self._requests.waiting():
                requests_of.setdefault(request.topic, []).append(request)
            wanted: set[str] = set()
            for table in tables:
                requests = requests_of.get(table.topic)
                if not requests:
                    continue
                if table.turn_lock.acquire(blocking=False):
                    try:
                        self._hand_one(requests, table)
                    finally:
                        table.turn_lock.release()
                elif self._request_in_progress(table) is None:  # else the table is applying it now
                    wanted.add(table.topic)
            self._topics_with_requests = wanted
        except Exception as error:
            self._topics_with_requests = set()
            _log.warning("resume requests could not be read", reason=classify(error).message)

    def finish_request(self, table: TableWorker) -> None:
        """Removes the request of a table that has applied it, or has halted again and needs another one.

        Until then the request stays, so that the next driver applies one that a crash interrupted. Called while the
        table does no other work.
        """
        handed = self._request_in_progress(table)
        if handed is None or (table.halted is None and table.resume_action is not None):
            return
        try:
            failpoints.passing("after-request", table.name)
            self._requests.done(handed)
            del self._in_progress[table.topic]
        except Exception as error:
            _log.warning("a resume request could not be removed", reason=classify(error).message)

    def _request_in_progress(self, table: TableWorker) -> Request | None:
        """The request that this worker was handed and has not finished. One of an earlier worker of the table is not
        its."""
        request, worker = self._in_progress.get(table.topic, (None, None))
        return request if worker is table else None

    def _hand_one(self, requests: Sequence[Request], table: TableWorker) -> None:
        """Hands over the first request that the table does not have yet. A table applies one request at a time, except
        that one which keeps failing does not hold back the next. A request of an earlier worker is handed over
        again."""
        self.finish_request(table)
        handed = self._request_in_progress(table)
        if handed is not None and not table.failing:
            return
        new = next((request for request in requests if request != handed), None)
        if new is not None and self._requests.waits(new):  # since it was read
            self._hand(new, table)

    def _hand(self, request: Request, table: TableWorker) -> None:
        failpoints.passing("before-request", table.name)
        self._in_progress[table.topic] = (request, table)
        if table.halted is not None and table.halted.code == TWO_TOPICS:
            self.finish_request(table)
            return
        table.resume(request.action)
        self._halts.remove(table.topic)
        self._on_resume(table)
        _log.info("table continues", table=table.name, action=request.action.value)
