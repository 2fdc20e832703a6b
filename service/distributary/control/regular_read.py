"""Looks at things beside the service's loop: a storage that does not answer holds up whoever asks it, and the loop says
by its turns that the service lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from distributary.error_mapping import classified
from distributary.logs import get_logger

_ENDING = 5.0  # seconds that a look may take to end; what it asks the storage for changes nothing
_log = get_logger(__name__)


class Lookout:
    """A thread that calls `looks` one after the other, again and again, with a pause of `every` seconds."""

    def __init__(self, name: str, looks: Sequence[Callable[[], object]], every: float) -> None:
        self._name = name
        self._looks = looks
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """At work until stop()."""
        self._thread.start()

    def stop(self) -> None:
        """Looks no more; waits for a look that is under way, but not for a storage that does not answer."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_ENDING)

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            for look in self._looks:
                self._try(look)

    def _try(self, look: Callable[[], object]) -> None:
        try:
            look()
        except Exception as error:
            _log.warning("a look failed", what=self._name, reason=classified(error).message)
