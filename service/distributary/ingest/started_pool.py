"""Thread pools whose threads run before work comes for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

_START_SECONDS = 10.0  # in which the threads start


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """A pool of so many threads, all of them started. ThreadPoolExecutor starts them on demand, and if the system
    refuses one, submit() raises an error although the work stays queued: it may then run twice, or never. Raises
    RuntimeError if the system refuses one now."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    all_run = threading.Barrier(threads)
    for _ in range(threads):
        pool.submit(all_run.wait, _START_SECONDS)
    return pool
