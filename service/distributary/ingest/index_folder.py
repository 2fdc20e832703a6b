"""The directory in which a process keeps the key indexes of its tables; removed when the process ends."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from distributary.delta.index_cache import IndexCache

_PREFIX = "distributary-index-"
_NEW_PREFIX = ".distributary-index-"
_LOCK = "in-use"
_MEMORY = 256 * 2**20
_DISK = 4 * 2**30
_LONGEST_START = 3600.0  # seconds
_one_at_a_time = threading.Lock()


def index_cache() -> IndexCache:
    """The key indexes of all tables of this process, whichever table's thread asks first."""
    with _one_at_a_time:
        return _index_cache()


@cache
def _index_cache() -> IndexCache:
    return IndexCache(new_folder(Path(tempfile.gettempdir())) / "indexes", _MEMORY, _DISK)


def new_folder(parent: Path) -> Path:
    """A directory of this process. Directories of killed processes are removed: each process locks its own as long as
    it lives. A process id would not do, because in a container it is always 1.

    The directory gets its name when it is locked: before that another process would take it for a killed one's. Those
    of processes that were killed in between are removed an hour later.
    """
    for other in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process's, or deleted meanwhile
            lock = os.open(other / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other)
            finally:
                os.close(lock)
    for other in parent.glob(f"{_NEW_PREFIX}*"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _LONGEST_START:
                shutil.rmtree(other)
    unnamed = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX, dir=parent))
    lock = os.open(unnamed / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = unnamed.rename(parent / unnamed.name.removeprefix("."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
