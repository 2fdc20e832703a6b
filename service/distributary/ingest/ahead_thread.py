"""The thread in which one table's next batch is decoded, while its worker applies the one before."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from distributary.ingest.started_pool import started_pool

_T = TypeVar("_T")


class AheadThread:
    """A thread that all tables share. One table at a time has it, with its result: a decoded batch is large (see
    ingest/batch_size.py), and where several tables are behind, they keep all cores busy anyway."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: weakref.ref[object] | None = None
        self._pool = started_pool(1, "ahead")

    @property
    def is_free(self) -> bool:
        """Whether nobody has it."""
        return self._owner is None or self._owner() is None

    def submit(self, owner: object, work: Callable[[], _T]) -> Future[_T] | None:
        """Begins the work, unless another owner has the thread; None then. It is the owner's until release(), or until
        the owner is gone."""
        with self._lock:
            if not self.is_free:
                return None
            self._owner = weakref.ref(owner)
        return self._pool.submit(work)

    def release(self, owner: object) -> None:
        """Gives the thread to others, if it is this owner's."""
        with self._lock:
            if self._owner is not None and self._owner() is owner:
                self._owner = None
