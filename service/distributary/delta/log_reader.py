"""A table's log, read where it lies: the newest checkpoint once, then one small file for each commit."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from distributary.delta.snapshot import Action, DeltaSnapshot, first_snapshot, incomplete_log
from distributary.delta.storage import TableFiles, file_damaged
from distributary.errors import TableHalt

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-f-]{36}))?\.(parquet|json)")
_ACTIONS = ("add", "metaData", "protocol", "sidecar")
_PARSED = ("stats_parsed", "partitionValues_parsed")  # the same once more, for readers that skip files
CommitFileStamp = tuple[int | None, int]
"""How the file of a commit looks: the time of its last change in ns, and its bytes."""


@dataclass(frozen=True)
class LogState:
    """A version, and the identity of its commit file, which shows that the table was deleted and created again."""

    snapshot: DeltaSnapshot
    commit_stamp: CommitFileStamp | None


class LogReader:
    """Reads versions of one table."""

    def __init__(self, files: TableFiles) -> None:
        self._files = files

    def newest(self, known: LogState | None = None) -> LogState:
        """The newest version. From a `known` one only later commits are read, while that is still in the log.

        Raises TableHalt if there is no table, or its log lacks a file.
        """
        if (
            known is None
            or known.commit_stamp is None
            or self.commit_file_stamp(known.snapshot.version) != known.commit_stamp
        ):
            return self._advance(self._read_checkpoint())
        return self._advance(known)

    def after(self, known: LogState, version: int) -> LogState:
        """The version of a commit that was just made upon a known one. Raises TableHalt if it is not there."""
        # Read before the actions: if the table is replaced in between, the next sync notices it.
        commit_file_stamp = self.commit_file_stamp(version)
        actions = self.read_commit(version)
        if actions is None:
            raise self._lacks_commit(version)
        return LogState(known.snapshot.after(version, actions), commit_file_stamp)

    def read_commit(self, version: int) -> list[Action] | None:
        """The actions of a commit; None if that version is not there."""
        path = f"{_LOG}/{version:020d}.json"
        try:
            with self._files.filesystem.open_input_stream(self._files.filesystem_path(path)) as stream:
                text = stream.read()
        except FileNotFoundError:
            return None
        return _lines(path, text)

    def _advance(self, known: LogState) -> LogState:
        while (actions := self.read_commit(version := known.snapshot.version + 1)) is not None:
            known = LogState(known.snapshot.after(version, actions), self.commit_file_stamp(version))
        return known

    def _read_checkpoint(self) -> LogState:
        """The table at its newest checkpoint, or at version 0."""
        commits, checkpoints = self._listed()
        if not commits and not checkpoints:
            raise TableHalt(
                "no-delta-table",
                f"there is no Delta table at {self._files.root}",
                "the first batch creates it; if it existed before, restore its directory",
            )
        if checkpoints:
            version, names = max(checkpoints.items())
            snapshot = first_snapshot(version, self._checkpoint(names))
        else:
            version = 0
            snapshot = first_snapshot(0, self.read_commit(0) or ())
        if commits and max(commits) > version and version + 1 not in commits:
            raise self._lacks_commit(version + 1)
        return LogState(snapshot, self.commit_file_stamp(version))

    def _lacks_commit(self, version: int) -> TableHalt:
        return incomplete_log(f"the log of the table at {self._files.root} lacks the commit of version {version}")

    def _listed(self) -> tuple[set[int], dict[int, list[str]]]:
        """Versions with a commit file, and the files of each complete checkpoint."""
        folder = fs.FileSelector(self._files.filesystem_path(_LOG), allow_not_found=True)
        commits: set[int] = set()
        parts: dict[tuple[int, str], list[str]] = defaultdict(list)
        expected: dict[tuple[int, str], int] = {}
        for info in self._files.filesystem.get_file_info(folder):
            if match := _COMMIT.fullmatch(info.base_name):
                commits.add(int(match[1]))
            elif match := _CHECKPOINT.fullmatch(info.base_name):
                kind = match[4] or (f"of {match[3]}" if match[3] else "")
                parts[int(match[1]), kind].append(info.base_name)
                expected[int(match[1]), kind] = int(match[3] or 1)
        complete = {
            version: sorted(names) for (version, kind), names in parts.items() if len(names) == expected[version, kind]
        }
        return commits, complete

    def commit_file_stamp(self, version: int) -> CommitFileStamp | None:
        """The file of a version's commit; None where there is none."""
        info = self._files.filesystem.get_file_info(self._files.filesystem_path(f"{_LOG}/{version:020d}.json"))
        return None if info.type == fs.FileType.NotFound else (info.mtime_ns, info.size)

    def _checkpoint(self, names: list[str]) -> Iterator[Action]:
        for name in names:
            for action in self._part(f"{_LOG}/{name}"):
                if sidecar := action.get("sidecar"):
                    yield from self._part(f"{_LOG}/_sidecars/{sidecar['path'].rpartition('/')[2]}")
                else:
                    yield action

    def _part(self, path: str) -> Iterator[Action]:
        if path.endswith(".json"):
            with self._files.open(path) as stream:
                yield from _lines(path, stream.read())
            return
        with self._files.parquet(path) as file:
            yield from _rows(file)


def _lines(path: str, text: bytes) -> list[Action]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise file_damaged(path) from error


def _rows(file: pq.ParquetFile) -> Iterator[Action]:
    """The actions in a checkpoint's file, as in a commit."""
    wanted = []
    for i in range(len(file.schema)):
        path = file.schema.column(i).path
        parts = path.split(".")
        if parts[0] in _ACTIONS and not (len(parts) > 1 and parts[1] in _PARSED):
            wanted.append(path)
    for batch in file.iter_batches(columns=wanted):
        for name in batch.schema.names:
            column = batch.column(name)
            for value in column.filter(column.is_valid()).to_pylist():
                yield {name: _plain(value, column.type)}


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON would have it: structs without their NULLs, maps as objects."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {
            inner.name: _plain(value[inner.name], inner.type) for inner in kind if value.get(inner.name) is not None
        }
    if pa.types.is_map(kind):
        return dict(value)
    return value
