"""How far a table is to go: the planner's thread moves the target on, the table's own thread corrects it."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from distributary.consume.offsets import Offsets, largest


class Target:
    """Per partition the offset that a table is to reach. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.offsets: Offsets = {}

    def advance(self, end: Offsets) -> bool:
        """Moves the target on to `end`; gives whether a partition ends before its earlier target, as it does where the
        topic was created again."""
        shorter = any(offset < self.offsets.get(p, 0) for p, offset in end.items())
        with self._lock:
            self.offsets = largest([self.offsets, end])
        return shorter

    def restart(self, end: Offsets) -> None:
        """Sets the target, also to lower offsets."""
        with self._lock:
            self.offsets = end

    def limit(self, end: Offsets, before: Offsets) -> None:
        """Moves no partition's target beyond the topic's `end`. `before`: the target when the end was requested;
        targets that were set since then are newer than that end and stay."""
        with self._lock:
            self.offsets = {
                p: min(own, end.get(p, own)) if before.get(p) == own else own for p, own in self.offsets.items()
            }

    def within(self, before: Offsets) -> Offsets:
        """The target, no further than it was `before`."""
        return {p: min(end, before[p]) for p, end in self.offsets.items() if p in before}

    def lag(self, next_offsets: Offsets, first: Mapping[int, int]) -> int:
        """How many offsets lie between `next_offsets` and the target. A partition that was never read starts at the
        `first` offset that Kafka has."""
        return sum(max(0, end - next_offsets.get(p, first.get(p, 0))) for p, end in self.offsets.items())
