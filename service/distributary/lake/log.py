"""A Delta table's commit files, read where the table lies (any file system that Hadoop knows)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from distributary.errors import TableHalt
from distributary.launch.classes import DELTA_LOG, HADOOP_PATH, java_class, lines_of, scala_object
from distributary.progress.record import (
    APP_ID,
    Head,
    Progress,
    Restored,
    committed_at,
    restored,
    table_restored,
    user_metadata,
)

_COMMIT = re.compile(r"/_delta_log/([0-9]{20})\.json;")  # as every FileStatus tells its path
_LOOK_BACK = 2000  # commit files of other writers (OPTIMIZE, ALTER …) that may lie over the last one of ours


class DeltaLog:
    """The `_delta_log` folder of one table. Reads single small files; runs no Spark job."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._place = path
        self._path = java_class(session, HADOOP_PATH)
        self._folder = self._path(path, "_delta_log")
        self._files = self._folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def exists(self) -> bool:
        """Whether there is a Delta table at the path."""
        return bool(self._files.exists(self._folder))

    def local_path(self) -> str | None:
        """The table's directory as this machine's own file system has it; None where it lies elsewhere."""
        return local_path(self._files, self._folder.getParent())

    def version(self, known: int | None = None) -> int | None:
        """The newest version; None where there is no table. `known` is one that was seen, which spares a listing."""
        if known is None or not self._files.exists(self._file(known)):
            return next(iter(self._versions()), None) if self.exists() else None
        while self._files.exists(self._file(known + 1)):
            known += 1
        return known

    def head(self) -> Head | None:
        """The newest version and the progress record that holds for it (None in a table of another writer); None where
        there is no table.

        Raises TableHalt where a record was there but its commit file is gone.
        """
        if not self.exists():
            return None
        versions = self._versions()
        if not versions:
            return None
        if (found := self._below(versions)) is not None:
            return replace(found, version=versions[0])
        if (versions[-1] > 0 or len(versions) > _LOOK_BACK) and last_sequence(self._session, self._place):
            raise TableHalt(
                "progress-lost",
                f"no commit file from version {versions[-1]} to {versions[0]} holds the table's progress record:"
                " other writers committed for so long that Delta's log retention removed it",
                "delete the table's directory to have it filled again from the start of its topic",
            )
        return Head(versions[0], None)

    def since(self, head: Head) -> Head | None:
        """The head as it is now, looking only at what was committed after `head`. Where that version is there no more
        (the table was deleted, or an older copy of it put back) it is looked for anew."""
        if not self._files.exists(self._file(head.version)):
            return self.head()
        version = head.version
        while self._files.exists(self._file(version + 1)):
            version += 1
            found = self._read(version)
            head = (self._restored(found) if isinstance(found, Restored) else found) or head
        return replace(head, version=version)

    def _below(self, versions: Sequence[int]) -> Head | None:
        """The newest record of these versions, the newest first; None where none has one."""
        for version in versions[:_LOOK_BACK]:
            found = self._read(version)
            if found is not None:
                return self._restored(found) if isinstance(found, Restored) else found
        return None

    def _restored(self, by: Restored) -> Head | None:
        """The record that holds after a RESTORE: the one of the version that was gone back to. It goes on counting
        where the newest one is: Delta keeps the table's `txn` actions through it. None where no record was there."""
        before = [version for version in self._versions() if version < by.version]
        newest = next((found for version in before if isinstance(found := self._read(version), Head)), None)
        if newest is None or newest.progress is None:
            return None
        to = by.to
        if to is None or to < before[-1]:
            raise table_restored()
        found = self._below([version for version in before if version <= to])
        held = newest.progress.cleared() if found is None or found.progress is None else found.progress
        return Head(by.version, held.model_copy(update={"sequence": newest.progress.sequence}))

    def _versions(self) -> list[int]:
        # All names in one call: 20,000 files took 7 s when each was asked for by itself, and take 0.5 s so.
        seq = scala_object(self._session, "scala.collection.mutable.ArraySeq")
        names = seq.make(self._files.listStatus(self._folder)).mkString("\n")
        return sorted(map(int, _COMMIT.findall(names)), reverse=True)

    def _file(self, version: int) -> Any:
        return self._path(self._folder, f"{version:020d}.json")

    def _read(self, version: int) -> Head | Restored | None:
        """One commit, where it has a progress record or is a RESTORE.

        Spark writes the commitInfo as the file's first line, deltalake as its last.
        """
        stream = self._files.open(self._file(version))
        try:
            lines = lines_of(self._session, stream)
            while (line := lines.readLine()) is not None:
                if '"commitInfo"' in line:
                    progress = Progress.from_json(user_metadata(line))
                    return restored(line, version) if progress is None else Head(version, progress, committed_at(line))
        finally:
            stream.close()
        return None


def log_of_spark(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Spark's DeltaLog of a table, and its newest snapshot."""
    none = java_class(session, "scala.Option").empty()
    log = java_class(session, DELTA_LOG).forTable(session._jsparkSession, path)
    return log, log.update(False, none, none)


def last_sequence(session: SparkSession, path: str) -> int:
    """The number of the service's last commit to a table, which Delta keeps as long as the table is there; 0 where it
    never committed."""
    _, snapshot = log_of_spark(session, path)
    known = snapshot.transactions().get(APP_ID)
    return int(known.get()) if known.isDefined() else 0


def local_path(files: Any, folder: Any) -> str | None:
    """A Hadoop path as a path of this machine's own file system; None where `files`, its file system, is another."""
    if files.getUri().getScheme() != "file":
        return None
    return str(files.makeQualified(folder).toUri().getPath())
