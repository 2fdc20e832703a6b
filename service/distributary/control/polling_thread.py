"""Polls files outside of the service's main loop. A storage that does not answer blocks its caller, and the main loop
must not block: `/livez` watches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from distributary.error_mapping import classify
from distributary.logs import get_logger

_JOIN_SECONDS = 5.0  # limit for a running poll to end; polls only read, so it may be abandoned
_log = get_logger(__name__)


class PollingThread:
    """A thread that calls all `polls` every `every` seconds."""

    def __init__(self, name: str, polls: Sequence[Callable[[], object]], every: float) -> None:
        self._name = name
        self._polls = polls
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Runs until stop()."""
        self._thread.start()

    def stop(self) -> None:
        """Stops polling. Waits for a running poll, but not for a storage that does not answer."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            for poll in self._polls:
                self._try(poll)

    def _try(self, poll: Callable[[], object]) -> None:
        try:
            poll()
        except Exception as error:
            _log.warning("polling failed", what=self._name, reason=classify(error).message)
