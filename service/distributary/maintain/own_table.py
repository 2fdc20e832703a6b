"""Maintains the files of the service's own Delta tables like those of the source's tables: each write adds files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary.config import Config
from distributary.config.maintenance import resolve
from distributary.ingest.tables import own_path
from distributary.lake.log import DeltaLog
from distributary.lake.optimize import Compacted, compact, vacuum
from distributary.maintain.schedule import APPENDED_FILE, Due, MaintenanceSchedule, Task
from distributary.storage.json_file import JsonFile

_QUARANTINE = "_quarantine"
"""The first own table with a maintenance record: the record's name is the topic prefix alone."""


class OwnTable(Protocol):
    """A Delta table to which the service appends rows (quarantine.table.Quarantine, …)."""

    path: str
    lock: threading.Lock
    """Must be held to write to the table."""
    writes: int
    """Number of writes by this process."""
    time_column: str
    """When a row was written."""


class OwnTableFiles:
    """An OwnTable as the maintenance thread needs it (see maintenance_thread.Maintainable)."""

    def __init__(
        self,
        name: str,
        session: SparkSession,
        table: OwnTable,
        schedule: MaintenanceSchedule,
        keep: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`name`: in logs and metrics. `keep`: seconds after which a row is removed; None: never."""
        self.name = name
        self.schedule = schedule
        self._session = session.newSession()
        self._table = table
        self._log = DeltaLog(self._session, table.path)
        self._keep = keep
        self._clock = clock
        self._reading = threading.Lock()
        self._seen = -1
        self._version: int | None = None
        self._changed_at: float | None = None

    @property
    def turn_lock(self) -> threading.Lock:
        """Who has it writes to the table."""
        return self._table.lock

    def due(self) -> Due | None:
        """Reads the log if this process has written since the last time, and once after its start."""
        with self._reading:  # whoever asks meanwhile waits for the answer: `run --once` ends if nothing is due
            if self._seen != self._table.writes:
                self._seen = self._table.writes
                self._read_state()
        if self._version is None:
            return None
        # Rows grow old in a table that does not change, too.
        changed_at = self._changed_at if self._keep is None else self._clock()
        return self.schedule.due(self._version, changed_at)

    def maintain(self, task: Task) -> Compacted | None:
        """Compacts the table, or removes old files. Raises what Spark raises."""
        done = None
        if task is Task.COMPACT:
            done = compact(self._session, self._table.path, APPENDED_FILE)
        else:
            if self._keep is not None:
                before = self._clock() - self._keep
                DeltaTable.forPath(self._session, self._table.path).delete(
                    F.col(self._table.time_column) < F.timestamp_seconds(F.lit(before))
                )
            vacuum(self._session, self._table.path)
        self._read_state()
        self.schedule.done(task, self._version or 0)
        return done

    def _read_state(self) -> None:
        before, self._version = self._version, self._log.version(self._version)
        if before is None and self._version is not None:
            self.schedule.start()
        if before != self._version:
            self._changed_at = self._clock()


def own_table_files(
    name: str, table: OwnTable, session: SparkSession, config: Config, keep: float | None
) -> OwnTableFiles:
    """An OwnTableFiles with its maintenance record in the lake. `keep`: see OwnTableFiles."""
    of = config.source.topic_prefix + ("" if name == _QUARANTINE else f".{name.rpartition('/')[2]}")
    record = JsonFile(session, own_path(config, "maintenance", f"{of}.json"))
    schedule = MaintenanceSchedule(resolve(config.defaults.maintenance), record)
    return OwnTableFiles(name, session, table, schedule, keep)
