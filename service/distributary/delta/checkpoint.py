"""Checkpoints of a table's log, written between commits: Spark's take seconds, which no change should wait for."""

from __future__ import annotations

import json
import re
import time

from deltalake import DeltaTable
from pyarrow import fs
from pyspark.sql import SparkSession

from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.storage import TableFiles
from distributary.launch.classes import java_class, newest_snapshot
from distributary.launch.small_commits import CHECKPOINT_INTERVAL, SELDOM

_DELTAS_INTERVAL = 10  # commits, of a table without the property
_MOST_BEHIND = 2000  # commits that Delta may have to read behind the checkpoint that it knows
_DAY = 24 * 3600.0  # seconds; no table keeps its log for less
_LAST = "_delta_log/_last_checkpoint"
# A checkpoint of the `deltalake` library was compared action by action for tables with these features alone.
_BY_LIBRARY = {"columnMapping", "deletionVectors", "timestampNtz", "appendOnly", "invariants"}
# The form in which the library reads the time for which removed files are remembered; it ignores other forms.
_KEPT = re.compile(r"interval \d+ (second|minute|hour|day|week)s?")


class LogCheckpointer:
    """Writes checkpoints of one table's log. `path`: the table for Hadoop; `files`: the same files for Arrow."""

    def __init__(self, session: SparkSession, path: str, files: TableFiles) -> None:
        self._session, self._path, self._files = session, path, files
        self._clean_at = 0.0  # when the log may have something too old again, in seconds since 1970
        self._checked_version = 0  # the version in which Delta last looked for checkpoints

    def is_due(self, table: DeltaSnapshot) -> bool:
        """Whether a checkpoint is due, by the number of commits since the last one."""
        wanted = int(table.properties.get("delta.checkpointInterval", _DELTAS_INTERVAL))
        return table.version - self._last() >= (wanted if wanted < SELDOM else CHECKPOINT_INTERVAL)

    def checkpoint(self, table: DeltaSnapshot) -> None:
        """Writes a checkpoint. Once a day, if the log may have expired commits, Spark writes it, and removes these
        commits."""
        if not self._may_have_old_commits(time.time()) and self._fits_library(table) and self._by_library():
            self._announce_to_delta(table.version)
            return
        self._by_spark()

    def _last(self) -> int:
        """The version of the last checkpoint; 0 where there is none."""
        try:
            with self._files.filesystem.open_input_stream(self._files.filesystem_path(_LAST)) as stream:
                return int(json.loads(stream.read())["version"])
        except (FileNotFoundError, ValueError, KeyError):
            return 0

    def _may_have_old_commits(self, now: float) -> bool:
        """Whether there are commits older than a day. Lists the log at most once a day; returns False in between."""
        if now < self._clean_at:
            return False
        log_files = self._files.filesystem.get_file_info(fs.FileSelector(self._files.filesystem_path("_delta_log")))
        times = [info.mtime_ns for info in log_files if info.extension == "json" and info.mtime_ns is not None]
        oldest = min(times) / 1e9 if times else 0.0
        is_old = now - oldest > _DAY
        self._clean_at = now + _DAY if is_old else oldest + _DAY
        return is_old

    def _fits_library(self, table: DeltaSnapshot) -> bool:
        features = {
            *(table.protocol.get("readerFeatures") or ()),
            *(table.protocol.get("writerFeatures") or ()),
        }
        retention = table.properties.get("delta.deletedFileRetentionDuration", "interval 7 days")
        local = isinstance(self._files.filesystem, fs.LocalFileSystem)
        return local and features <= _BY_LIBRARY and _KEPT.fullmatch(retention) is not None

    def _by_library(self) -> bool:
        """False if it failed, for any reason: Spark's checkpoint is tried next and raises a lasting error."""
        # Hadoop's checksum of the file that Spark wrote before: by it Spark would consider the new file broken.
        self._files.delete(["_delta_log/._last_checkpoint.crc"])
        try:
            DeltaTable(self._files.root).create_checkpoint()
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                return False
            raise
        return True

    def _by_spark(self) -> None:
        log, snapshot = newest_snapshot(self._session, self._path)
        log.checkpoint(snapshot, java_class(self._session, "scala.Option").empty())

    def _announce_to_delta(self, version: int) -> None:
        """Lets Delta find the new checkpoint, so that it reads only the commits behind it. For that it lists the whole
        log: the longer that is, the less often."""
        if version < self._checked_version:  # the table was made anew
            self._checked_version = 0
        if version - self._checked_version >= min(max(CHECKPOINT_INTERVAL, version // 20), _MOST_BEHIND):
            newest_snapshot(self._session, self._path)
            self._checked_version = version
