"""How much may be in this process's memory at once, of all tables that are committed side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """So many bytes; who needs more than are left waits. More than there are in all is taken alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._changed = threading.Condition()

    def widen(self, size: int) -> None:
        """From now on there are so many bytes, where there were fewer."""
        with self._changed:
            self._size = max(self._size, size)
            self._changed.notify_all()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Takes so many bytes until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + size <= self._size)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()
