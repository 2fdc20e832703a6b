"""Recent rates of each table, for the page's small charts: bounded in time and memory, lost with the process."""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

STEP_SECONDS = 30
POINTS = 60  # half an hour; a table costs about a kilobyte


class History:
    """Per table a ring of `points` slots of `step_seconds` each. Every method may be called from any thread.

    `clock` gives seconds since 1970. A clock that is set back adds to the newest slot until it is where it was.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, step_seconds: int = STEP_SECONDS, points: int = POINTS
    ) -> None:
        self._clock = clock
        self._step = step_seconds
        self._points = points
        self._lock = threading.Lock()
        self._rings: dict[str, _Ring] = {}

    def add(self, table: str, records: int, freshness_seconds: float | None) -> None:
        """A commit of so many records, and the seconds from the source's commit of its oldest change to it."""
        with self._lock:
            ring = self._rings.setdefault(table, _Ring(self._points))
            ring.move(self._slot())
            ring.add(records, freshness_seconds)

    def forget(self, table: str) -> None:
        """Forgets `table`."""
        with self._lock:
            self._rings.pop(table, None)

    def as_json(self) -> dict[str, Any]:
        """Per table with a commit in that time its `records` per slot, and `freshness`: the largest seconds of a slot's
        commits, None for a slot without one. The last slot ends at `until` and is not over yet."""
        with self._lock:
            slot = self._slot()
            tables = {}
            for name, ring in sorted(self._rings.items()):
                ring.move(slot)
                if ring.has_any():
                    tables[name] = ring.as_json()
        return {
            "step_seconds": self._step,
            "points": self._points,
            "until": (slot + 1) * self._step,
            "tables": tables,
        }

    def _slot(self) -> int:
        return int(self._clock() // self._step)


class _Ring:
    """The slots of one table, as plain arrays: a thousand tables must stay small."""

    __slots__ = ("_commits", "_freshness", "_newest", "_points", "_records")

    def __init__(self, points: int) -> None:
        self._points = points
        self._records = array("q", [0] * points)
        self._commits = array("l", [0] * points)
        self._freshness = array("d", [math.nan] * points)
        self._newest = 0

    def move(self, slot: int) -> None:
        """Empties the slots that begin between the newest one and `slot`."""
        for passed in range(max(self._newest + 1, slot - self._points + 1), slot + 1):
            at = passed % self._points
            self._records[at], self._commits[at], self._freshness[at] = 0, 0, math.nan
        self._newest = max(self._newest, slot)

    def add(self, records: int, freshness_seconds: float | None) -> None:
        at = self._newest % self._points
        self._records[at] += records
        self._commits[at] += 1
        if freshness_seconds is not None:
            known = self._freshness[at]
            self._freshness[at] = freshness_seconds if math.isnan(known) else max(known, freshness_seconds)

    def has_any(self) -> bool:
        return any(self._commits)

    def as_json(self) -> dict[str, list[Any]]:
        order = [at % self._points for at in range(self._newest + 1, self._newest + 1 + self._points)]
        return {
            "records": [self._records[at] for at in order],
            "freshness": [None if math.isnan(self._freshness[at]) else round(self._freshness[at], 3) for at in order],
        }
