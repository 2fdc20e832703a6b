"""A clock that a test sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ManualClock:
    """Seconds; they pass only when a test changes `now`."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
