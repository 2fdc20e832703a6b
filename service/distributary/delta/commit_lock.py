"""Keeps other drivers of this machine out while one commits to a table on a local file system.

Hadoop first checks whether the file of a version exists, and then renames a temporary file to it. If two processes did
this at the same time, both would succeed, and the commit of the first would be lost. Object stores have no such lock.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from pyarrow import fs

from distributary.delta.storage import TableFiles

LOCK = "_distributary/commit.lock"
_PATIENCE = 5.0
"""Seconds to wait for a process that commits. One that was suspended meanwhile must not hold up the table."""
_LOOK_EVERY = 0.005


@contextmanager
def commit_lock(files: TableFiles) -> Iterator[None]:
    """Holds the lock of a table. Continues without it if there is none: on other stores, on file systems that know no
    locks, where the file can't be written, and where another process keeps it for longer than a commit takes."""
    if not isinstance(files.filesystem, fs.LocalFileSystem):
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):
            place = files.filesystem_path(LOCK)
            files.make_parent(place)
            _wait_for(stack.enter_context(Path(place).open("ab")))  # closing the file ends the lock
        yield


def _wait_for(file: IO[bytes]) -> None:
    until = time.monotonic() + _PATIENCE
    while not _is_ours(file) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)


def _is_ours(file: IO[bytes]) -> bool:
    """Whether this process has the lock now, or the file system knows none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
