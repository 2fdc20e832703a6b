"""Frees Java objects that Python still holds, between the steps of tables.

A py4j object refers to itself by the methods that were called on it. So Python frees it only in a full garbage
collection, and Java only after that. A Delta transaction holds the table's whole state: a few that wait for one of
Python's rare full collections may fill the driver's memory.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SHARE = 50
"""Looks take no more than one part in so many of the time."""


class Garbage:
    """Runs full garbage collections, but not too often: one takes milliseconds."""

    def __init__(self) -> None:
        self._next = 0.0

    @contextmanager
    def after(self) -> Iterator[None]:
        """Collects after the call, unless the last collection was a moment ago."""
        try:
            yield
        finally:
            began = time.monotonic()
            if began >= self._next:
                gc.collect()
                ended = time.monotonic()
                self._next = ended + _SHARE * (ended - began)


GARBAGE = Garbage()
"""That of the process."""
