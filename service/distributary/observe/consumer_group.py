"""Commits the tables' applied offsets to a Kafka consumer group, for existing lag tools.

Only those tools read them: the service itself uses the tables' progress records. A failure is logged once, tried again
later, and delays nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from distributary.config import Config
from distributary.consume.offsets import Offsets
from distributary.error_mapping import classify
from distributary.errors import DistributaryError
from distributary.logs import get_logger

PAUSE = 10.0  # seconds from one commit to the next
PAUSE_AFTER_FAULT = 60.0
# A group without members forgets an offset that nobody commits again, after seven days as brokers are set up.
AGAIN = 3600.0
_ENDING = 5.0  # seconds that the end of the service waits for a commit in flight
_log = get_logger(__name__)


class ConsumerGroup:
    """Commits offsets of all tables' topics to the group that the config names, by `commit` (see KafkaClient.commit),
    from its own thread; does nothing if the config turns it off."""

    def __init__(
        self, config: Config, commit: Callable[[str, Mapping[str, Offsets]], None], pause: float = PAUSE
    ) -> None:
        self._enabled = config.consumer_group.enabled
        self._group = config.consumer_group_name()
        self._commit = commit
        self._pause = pause
        self._lock = threading.Lock()
        self._known: dict[str, dict[int, int]] = {}
        self._news: dict[str, dict[int, int]] = {}
        self._all_at = time.monotonic()
        self._faults = 0
        self._logged: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag-group", daemon=True)

    def report(self, topic: str, offsets: Offsets) -> None:
        """The table of the topic has these next offsets in its commits. Returns at once; from any thread."""
        with self._lock:
            known = self._known.setdefault(topic, {})
            changed = {p: offset for p, offset in offsets.items() if known.get(p) != offset}
            known.update(changed)
            if changed:
                self._news.setdefault(topic, {}).update(changed)

    def start(self) -> None:
        """Starts the thread that commits reported offsets."""
        if self._enabled:
            self._thread.start()

    def stop(self) -> None:
        """Stops the thread, after a last try to commit."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_ENDING)

    def _run(self) -> None:
        rest = self._pause
        while not self._stopping.wait(rest):
            self._report_due()
            rest = self._pause if self._faults < 2 else max(self._pause, PAUSE_AFTER_FAULT)
        self._report_due(last=True)

    def _report_due(self, *, last: bool = False) -> None:
        """Commits new offsets. If that fails they are committed with the next ones."""
        offsets = self._next()
        if not offsets:
            return
        try:
            self._commit(self._group, offsets)
        except Exception as error:
            self._faults += 1
            # Once may be a broker that has just started, or a group whose place moves.
            self._log_error(classify(error), quietly=self._faults == 1 and not last)
            with self._lock:
                for topic, partitions in offsets.items():
                    self._news[topic] = {**partitions, **self._news.get(topic, {})}
            return
        self._faults = 0
        if self._logged:
            self._logged.clear()
            _log.info("offsets are committed to the consumer group again", group=self._group)

    def _next(self) -> dict[str, dict[int, int]]:
        with self._lock:
            if time.monotonic() - self._all_at > AGAIN:
                self._all_at = time.monotonic()
                self._news = {topic: dict(partitions) for topic, partitions in self._known.items()}
            offsets, self._news = self._news, {}
            return offsets

    def _log_error(self, fault: DistributaryError, *, quietly: bool) -> None:
        log = _log.debug if quietly or fault.code in self._logged else _log.warning
        if not quietly:
            self._logged.add(fault.code)
        log(
            "offsets can't be committed to the consumer group: lag tools don't see the tables' progress",
            group=self._group,
            code=fault.code,
            reason=fault.message,
            fix=fault.fix,
        )
