"""Waits for a condition instead of a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 180.0
"""The default time limit in seconds."""


def wait_until(
    holds: Callable[[], object],
    seconds: float = SECONDS,
    what: str | Callable[[], str] = "",
    every: float = 0.05,
    alive: Callable[[], bool] = lambda: True,
) -> None:
    """Returns once `holds` is true, which is checked every `every` seconds. Raises AssertionError after `seconds`, and
    as soon as `alive` is false. The error names `what` was waited for; if that is a function, it has its result, such
    as the end of a log."""

    def described() -> str:
        return what() if callable(what) else what

    deadline = time.monotonic() + seconds
    while not holds():
        assert alive(), f"it will not happen any more: {described()}"
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {described()}"
        time.sleep(every)
