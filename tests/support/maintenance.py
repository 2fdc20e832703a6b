"""A schedule of maintenance without a lake: a test sets its clock, and its stored value is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.clock import ManualClock

NOW = 1_700_000_000.0


def clock_of_schedule() -> ManualClock:
    """A clock at NOW."""
    return ManualClock(NOW)


@dataclass
class MemoryRecord:
    """A schedule's stored value in memory; `fails`: it can't be read or written."""

    value: Any = None
    fails: bool = False
    writes: int = 0

    def read(self) -> Any:
        if self.fails:
            raise OSError("no such bucket")
        return self.value

    def write(self, value: Any) -> None:
        if self.fails:
            raise OSError("no such bucket")
        self.value = value
        self.writes += 1
