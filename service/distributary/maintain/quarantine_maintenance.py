"""Maintenance of the quarantine table's files, as of any table's: each batch with bad records adds some."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary.lake.log import DeltaLog
from distributary.lake.optimize import Compacted, compact, vacuum
from distributary.maintain.schedule import APPENDED_FILE, Due, MaintenanceSchedule, Task
from distributary.quarantine.table import Quarantine


class QuarantineFiles:
    """The Delta table of all tables' bad records, as the caretaker sees it (see caretaker.Maintainable)."""

    name = "_quarantine"

    def __init__(
        self,
        session: SparkSession,
        quarantine: Quarantine,
        upkeep: MaintenanceSchedule,
        keep: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`keep`: after so many seconds a record goes; None: never."""
        self.schedule = upkeep
        self._session = session.newSession()
        self._quarantine = quarantine
        self._log = DeltaLog(self._session, quarantine.path)
        self._keep = keep
        self._clock = clock
        self._seen = -1
        self._version: int | None = None
        self._changed_at: float | None = None

    @property
    def running(self) -> threading.Lock:
        """Held while the table is written to."""
        return self._quarantine.lock

    def due(self) -> Due | None:
        """Looks at the log where this process has written since the last time, and once after its start."""
        if self._seen != self._quarantine.writes:
            self._seen = self._quarantine.writes
            self._look()
        if self._version is None:
            return None
        # Records grow old in a table that does not change, too.
        changed_at = self._changed_at if self._keep is None else self._clock()
        return self.schedule.due(self._version, changed_at)

    def maintain(self, task: Task) -> Compacted | None:
        """Compacts it, or removes old files. Raises what Spark raises."""
        done = None
        if task is Task.COMPACT:
            done = compact(self._session, self._quarantine.path, APPENDED_FILE)
        else:
            if self._keep is not None:
                before = self._clock() - self._keep
                DeltaTable.forPath(self._session, self._quarantine.path).delete(
                    F.col("quarantined_at") < F.timestamp_seconds(F.lit(before))
                )
            vacuum(self._session, self._quarantine.path)
        self._look()
        self.schedule.done(task, self._version or 0)
        return done

    def _look(self) -> None:
        before, self._version = self._version, self._log.version(self._version)
        if before is None and self._version is not None:
            self.schedule.start()
        if before != self._version:
            self._changed_at = self._clock()
