"""Rows that Spark keeps while a slice is at work, because several jobs read them, and lets go when the slice ends.

Spark would find out by itself, once Java's garbage collector has seen that nothing asks for them any more. By then the
rows of several slices may fill all the memory that Spark has for such rows, which with large records is a whole slice's
payload several times over.

And Java's collector sees it only after Python's has: py4j keeps whatever Python holds of Java, and each such object
refers to itself by the methods that were called on it. What is left of a slice's queries, with their plans and the
files of their shuffles, would wait for one of Python's rare looks at all that there is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

_mine: ContextVar[list[Any] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping() -> Iterator[None]:
    """At its end Spark lets go of what this thread had it keep inside, and Python of what it held of Java."""
    mine: list[Any] = []
    token = _mine.set(mine)
    try:
        yield
    finally:
        _mine.reset(token)
        for rdd in mine:
            with suppress(Py4JError, OSError):  # a JVM that is gone keeps nothing
                rdd.unpersist(False)
        mine.clear()
        _LOOKS.look()


class _Looks:
    """Python's looks at all its objects but those that are frozen. With some tables one takes milliseconds; however
    many there are, looks take no more than a fiftieth of the time."""

    def __init__(self) -> None:
        self._next = 0.0

    def look(self) -> None:
        """One look, where it is not too soon."""
        began = time.monotonic()
        if began >= self._next:
            gc.collect()
            ended = time.monotonic()
            self._next = ended + 50 * (ended - began)


_LOOKS = _Looks()


def kept(frame: DataFrame, *, eager: bool) -> DataFrame:
    """The same rows, kept until keeping() ends; `eager`: made at once, else with the first job that reads them.

    Unlike persist() this cuts the plan: what follows is planned on rows, not on all that made them. It is also what a
    MERGE may have as its source, which refuses one that is merely cached.
    """
    found = frame.localCheckpoint(eager=eager)
    mine = _mine.get()
    if mine is not None:
        mine.append(_rdd(found))
    return found


def let_go(*frames: DataFrame | None) -> None:
    """Spark lets go of what kept() gave, now. Nothing that reads it may come after."""
    for frame in frames:
        if frame is not None:
            _rdd(frame).unpersist(False)


def _rdd(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().logical().rdd()
