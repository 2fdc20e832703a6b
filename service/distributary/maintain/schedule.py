"""Which maintenance a table needs and when, decided from values in memory: no read and no Spark job.

The table's version counts its commits. The last maintenance is saved in the lake, so that a service which restarts
every hour neither skips nor repeats it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Protocol

from distributary.config.maintenance import Maintenance
from distributary.logs import get_logger

MIB = 1024 * 1024
REWRITTEN_FILE = 32 * MIB
"""The size of a table's files where changes rewrite them: a file that has one of a batch's keys may be read and written
as a whole."""
APPENDED_FILE = 128 * MIB
"""The size of compacted files if rows are only added: a good size for readers."""

_OVERDUE = 4
"""A task no longer waits for a quiet moment after so many times the number of commits, or the interval, in the
config."""
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 6 * 3600.0  # seconds, after failures
_log = get_logger(__name__)


class Task(str, Enum):
    """A task of maintenance. A `str`, so that logs and labels show its value."""

    COMPACT = "compact"
    VACUUM = "vacuum"


@dataclass(frozen=True)
class Done:
    """The last maintenance of a table: its `version` right after the last compaction (also one that found nothing to
    do), and the times of the last compaction and removal of old files, in seconds since 1970, None for never. `since`:
    when the record began."""

    since: float
    version: int = 0
    compacted_at: float | None = None
    vacuumed_at: float | None = None

    @staticmethod
    def of(value: Any, now: float) -> Done:
        """From its saved form; a new record if there is none that can be read."""
        try:
            done = Done(**value)
            times = (done.since, done.compacted_at or 0.0, done.vacuumed_at or 0.0)
            if isinstance(done.version, int) and all(math.isfinite(at) and at <= now for at in times):
                return done
        except TypeError:
            pass
        return Done(now)


@dataclass(frozen=True)
class Due:
    """A task that is due. `overdue`: it has waited for a quiet moment for so long that it waits no more."""

    task: Task
    overdue: bool


def due(
    settings: Maintenance,
    done: Done,
    version: int,
    changed_at: float | None,
    now: float,
    resting: Collection[Task] = (),
    *,
    needs_compaction: bool = False,
) -> Due | None:
    """The task that is due for a table at that version; None if none is. `changed_at`: the time of its last change
    (None: not known to have changed); `resting`: tasks that are paused. Times in seconds since 1970.
    `needs_compaction`: deleted rows are a large part of its data files."""
    commits = version - done.version if version >= done.version else version  # lower: the table was created again
    # A few large batches may leave more deleted rows than a hundred small ones.
    is_due = commits >= settings.compact_after or (commits and needs_compaction)
    if Task.COMPACT not in resting and settings.compact_after and is_due:
        return Due(Task.COMPACT, commits >= _OVERDUE * settings.compact_after)
    if Task.VACUUM in resting or not settings.vacuum_every or changed_at is None:
        return None
    # A compaction leaves files behind, too. When all of them are as old as `keep`, the next VACUUM is the last one.
    changed_at = max(changed_at, done.compacted_at or 0.0)
    waited = now - (done.since if done.vacuumed_at is None else done.vacuumed_at)
    nothing_left = done.vacuumed_at is not None and done.vacuumed_at > changed_at + settings.keep
    if nothing_left or waited < settings.vacuum_every:
        return None
    return Due(Task.VACUUM, waited >= _OVERDUE * settings.vacuum_every)


class StoredValue(Protocol):
    """Where `Done` is stored: a storage.json_file.JsonFile."""

    def read(self) -> Any:
        """The value that was written last; None if there is none."""
        ...

    def write(self, value: Any) -> None:
        """Replaces the value."""
        ...


class MaintenanceSchedule:
    """The maintenance of one table: its settings, the last run of each task, and the pause of a task after its failure.
    Only the thread that has the table's lock may call methods that change something; any thread may call `due`.
    """

    def __init__(self, settings: Maintenance, stored: StoredValue, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._stored = stored
        self._clock = clock
        self._done: Done | None = None
        self._faults: dict[Task, int] = {}
        self._not_before: dict[Task, float] = {}

    def start(self) -> None:
        """Reads the record. A new record is saved at once: otherwise the intervals of a service that restarts often
        would begin anew each time. If the storage fails, the record is in memory only, because no table should halt for
        that."""
        stored = None
        try:
            stored = self._stored.read()
            self._done = Done.of(stored, self._clock())
            if stored != asdict(self._done):
                self._stored.write(asdict(self._done))
        except Exception as error:
            _log.warning("the record of a table's last maintenance can't be read", reason=type(error).__name__)
            self._done = Done(self._clock())

    def due(self, version: int, changed_at: float | None, *, needs_compaction: bool = False) -> Due | None:
        """See due(); None before start(), and no task during its pause."""
        if self._done is None:
            return None
        now = self._clock()
        resting = [task for task, until in self._not_before.items() if now < until]
        return due(self._settings, self._done, version, changed_at, now, resting, needs_compaction=needs_compaction)

    def done(self, task: Task, version: int) -> None:
        """The task is done, and the table is at that version."""
        now = self._clock()
        before = self._done or Done(now)
        if task is Task.COMPACT:
            after = replace(before, version=version, compacted_at=now)
        else:
            after = replace(before, vacuumed_at=now)
        self._faults.pop(task, None)
        self._done = after
        self._stored.write(asdict(after))

    def failed(self, task: Task) -> float:
        """It is left alone for a while; gives the seconds. Another task is not: files that no table has any more must
        go, also where those that it has can't be compacted."""
        faults = self._faults.get(task, 0)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**faults)
        self._faults[task], self._not_before[task] = faults + 1, self._clock() + pause
        return pause

    def last_done(self) -> Mapping[str, float | None]:
        """The time of each task's last run, for the status; empty before start()."""
        if self._done is None:
            return {}
        return {"compacted_at": self._done.compacted_at, "vacuumed_at": self._done.vacuumed_at}
