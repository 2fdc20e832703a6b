"""Waits for a condition instead of a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 60.0
"""How long it may take, where nothing else is said."""


def wait_until(
    holds: Callable[[], object],
    seconds: float = SECONDS,
    what: str | Callable[[], str] = "",
    every: float = 0.05,
    alive: Callable[[], bool] = lambda: True,
) -> None:
    """Returns once `holds` does, which is asked every so many seconds. Raises AssertionError after `seconds`, and as
    soon as `alive` does not hold: nothing is to be waited for any more. The error says `what` was waited for, or what
    it gives then: the end of a log, say."""

    def described() -> str:
        return what() if callable(what) else what

    deadline = time.monotonic() + seconds
    while not holds():
        assert alive(), f"it will not happen any more: {described()}"
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {described()}"
        time.sleep(every)
