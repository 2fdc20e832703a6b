"""Reads the commit files of a Delta table, on any file system that Hadoop supports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from distributary.errors import TableHalt
from distributary.launch.classes import HADOOP_PATH, java_class, lines_of, newest_snapshot, scala_object
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

_COMMIT = re.compile(r"/_delta_log/([0-9]{20})\.json;")  # from a FileStatus as text
_LOOK_BACK = 2000  # maximum number of newer commits by other writers (OPTIMIZE, ALTER …)


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
        """The table's directory as a local path; None if it is on another file system."""
        return local_path(self._files, self._folder.getParent())

    def version(self, known: int | None = None) -> int | None:
        """The newest version; None if there is no table. `known`: an earlier version, which saves a listing."""
        if known is None or not self._files.exists(self._file(known)):
            return next(iter(self._versions()), None) if self.exists() else None
        while self._files.exists(self._file(known + 1)):
            known += 1
        return known

    def head(self) -> Head | None:
        """The newest version and its progress record (None in a table of another writer); None if there is no table.

        Raises TableHalt if the commit file with the record no longer exists.
        """
        if not self.exists():
            return None
        versions = self._versions()
        if not versions:
            return None
        if (older := self._below(versions)) is not None:
            return replace(older, version=versions[0])
        if (versions[-1] > 0 or len(versions) > _LOOK_BACK) and last_sequence(self._session, self._place):
            raise TableHalt(
                "progress-lost",
                f"no commit file from version {versions[-1]} to {versions[0]} has the table's progress record:"
                " only other writers committed for so long that Delta's log retention removed it",
                "delete the table's directory so that it is filled again from the start of its topic",
            )
        return Head(versions[0], None)

    def since(self, head: Head) -> Head | None:
        """The current head; reads only commits after `head`. If that version no longer exists (the table was deleted or
        replaced by an older copy), searches from the newest version."""
        if not self._files.exists(self._file(head.version)):
            return self.head()
        version = head.version
        while self._files.exists(self._file(version + 1)):
            version += 1
            version_head = self._read(version)
            head = (self._restored(version_head) if isinstance(version_head, Restored) else version_head) or head
        return replace(head, version=version)

    def are_tagged(self, after: int, until: int, name: str) -> bool:
        """Whether all commits behind version `after` up to `until` have that text as their user metadata."""
        lines = map(self._commit_info, range(after + 1, until + 1))
        return all(line is not None and user_metadata(line) == name for line in lines)

    def _below(self, versions: Sequence[int]) -> Head | None:
        """The newest record in these versions (sorted, newest first); None if none has one."""
        for version in versions[:_LOOK_BACK]:
            version_head = self._read(version)
            if version_head is not None:
                return self._restored(version_head) if isinstance(version_head, Restored) else version_head
        return None

    def _restored(self, by: Restored) -> Head | None:
        """The record after a RESTORE: that of the restored version, but with the sequence of the newest one, because
        Delta keeps the table's `txn` actions. None if there was no record."""
        before = [version for version in self._versions() if version < by.version]
        newest = next((restored for version in before if isinstance(restored := self._read(version), Head)), None)
        if newest is None or newest.progress is None:
            return None
        to = by.to
        if to is None or to < before[-1]:
            raise table_restored()
        restored = self._below([version for version in before if version <= to])
        progress = newest.progress.cleared() if restored is None or restored.progress is None else restored.progress
        return Head(by.version, progress.model_copy(update={"sequence": newest.progress.sequence}))

    def _versions(self) -> list[int]:
        # All names in one call: for 20,000 files one call per name took 7 s, this takes 0.5 s.
        seq = scala_object(self._session, "scala.collection.mutable.ArraySeq")
        names = seq.make(self._files.listStatus(self._folder)).mkString("\n")
        return sorted(map(int, _COMMIT.findall(names)), reverse=True)

    def _file(self, version: int) -> Any:
        return self._path(self._folder, f"{version:020d}.json")

    def _read(self, version: int) -> Head | Restored | None:
        """The progress record or the RESTORE in a commit; None for other commits.

        Spark writes the commitInfo as the file's first line, deltalake as its last.
        """
        line = self._commit_info(version)
        if line is None:
            return None
        progress = Progress.from_json(user_metadata(line))
        return restored(line, version) if progress is None else Head(version, progress, committed_at(line))

    def _commit_info(self, version: int) -> str | None:
        """The line of a commit's file with its commitInfo; None if it has none."""
        stream = self._files.open(self._file(version))
        try:
            lines = lines_of(self._session, stream)
            while (line := lines.readLine()) is not None:
                if '"commitInfo"' in line:
                    return str(line)
        finally:
            stream.close()
        return None


def last_sequence(session: SparkSession, path: str) -> int:
    """The number of the service's last commit to a table, which Delta keeps as long as the table is there; 0 where it
    never committed."""
    _, snapshot = newest_snapshot(session, path)
    known = snapshot.transactions().get(APP_ID)
    return int(known.get()) if known.isDefined() else 0


def local_path(files: Any, folder: Any) -> str | None:
    """A Hadoop path as a local path; None if `files`, its file system, is not the local one."""
    if files.getUri().getScheme() != "file":
        return None
    return str(files.makeQualified(folder).toUri().getPath())
