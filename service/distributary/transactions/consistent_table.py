"""The Delta table `_distributary/consistent`: for complete transactions the Delta version of each table, for readers
that want several tables as of one moment of the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from distributary.config import Config
from distributary.error_mapping import classify
from distributary.ingest.tables import own_path
from distributary.launch.small_commits import CHECKPOINTED
from distributary.logs import get_logger
from distributary.transactions.frontier import Transaction

_SCHEMA = (
    "topic_prefix STRING, transaction_id STRING, committed_at TIMESTAMP, table STRING, version BIGINT, exact BOOLEAN,"
    " written_at TIMESTAMP"
)
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last one of Python's datetime."""
_log = get_logger(__name__)


@dataclass(frozen=True)
class Complete:
    """A transaction up to which all tables are complete, and versions of the tables that have it (see
    frontier.Answer), by the tables' names."""

    transaction: Transaction
    versions: Mapping[str, int]
    exact: bool

    def adds_nothing_to(self, other: Complete) -> bool:
        """Whether the other one reports the same transaction, and is as exact."""
        return self.transaction.id == other.transaction.id and other.exact >= self.exact


class ConsistentTable:
    """The table at `path`; several services may write into it. A transaction is written at most once in `every`
    seconds: the newest one then, with a row for each table, in one commit."""

    name = "_distributary/consistent"
    time_column = "written_at"

    def __init__(
        self,
        session: SparkSession,
        path: str,
        topic_prefix: str,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session.newSession()
        self.path = path
        self._prefix = topic_prefix
        self._every = every
        self._clock = clock
        self._written_at: float | None = None
        self._waiting: Complete | None = None
        self._written: Complete | None = None
        self._is_failing = False
        self.lock = threading.Lock()
        """Must be held to write to the table."""
        self.writes = 0
        """Number of writes by this process."""

    def offer(self, complete: Complete) -> None:
        """Sets the transaction that is complete now. An exact one that was not written yet is not replaced by an
        inexact one."""
        waiting = self._waiting
        if complete.versions and (waiting is None or complete.exact or not waiting.exact):
            self._waiting = complete

    def withdraw(self) -> None:
        """No transaction is complete now, for example because a table was deleted. Drops the waiting one, which may
        name deleted versions."""
        self._waiting = None

    def write(self, *, at_once: bool = False) -> None:
        """Writes the offered transaction, if it is time. A failure is logged, and tried again at the next time."""
        now = self._clock()
        is_early = self._written_at is not None and now < self._written_at + self._every and not at_once
        if self._waiting is None or is_early:
            return
        self._written_at = now
        if self._written is not None and self._waiting.adds_nothing_to(self._written):
            self._waiting = None
            return
        try:
            if self._written is not None or not self._has(self._waiting):
                self._append(self._waiting)
        except Exception as error:  # tables and the report of transactions don't depend on it
            fault = classify(error)
            log = _log.debug if self._is_failing else _log.warning
            log("complete transactions can't be written", code=fault.code, reason=fault.message, fix=fault.fix)
            self._is_failing = True
            return
        self._is_failing = False
        self._written, self._waiting = self._waiting, None

    def _has(self, complete: Complete) -> bool:
        """Whether an earlier process wrote the transaction, and as exact as it is now."""
        if not DeltaTable.isDeltaTable(self._session, self.path):
            return False
        known = self._session.read.format("delta").load(self.path)
        same = known.where(
            (F.col("topic_prefix") == self._prefix) & (F.col("transaction_id") == complete.transaction.id)
        )
        return not (same.where("exact") if complete.exact else same).isEmpty()

    def _append(self, complete: Complete) -> None:
        schema = _parse_datatype_string(_SCHEMA)
        assert isinstance(schema, StructType)
        now = datetime.now(timezone.utc)
        of = complete.transaction
        committed = _instant(of.ts_ms)
        rows = [
            (self._prefix, of.id, committed, table, version, complete.exact, now)
            for table, version in sorted(complete.versions.items())
        ]
        with self.lock:
            try:
                table = DeltaTable.createIfNotExists(self._session).location(self.path).addColumns(schema)
                table.property(*CHECKPOINTED).execute()
                frame = self._session.createDataFrame(rows, schema).coalesce(1)
                frame.write.format("delta").mode("append").save(self.path)
            finally:
                self.writes += 1


def consistent_table(session: SparkSession, config: Config) -> ConsistentTable | None:
    """The table, if it is in the config; else None."""
    every = config.target.consistent_seconds()
    if every is None:
        return None
    return ConsistentTable(session, own_path(config, "consistent"), config.source.topic_prefix, every)


def _instant(ts_ms: int | None) -> datetime | None:
    if ts_ms is None or not 0 <= ts_ms <= _LAST_MS:
        return None
    return datetime.fromtimestamp(ts_ms / 1000, timezone.utc)
