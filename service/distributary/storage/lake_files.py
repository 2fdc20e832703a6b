"""Reads from the lake without Spark: a table's newest progress record, from its Delta log, and small files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from distributary.errors import SetupError
from distributary.progress.record import Progress, restored_to, table_restored

_STEPS = (10, 200, 2000)  # commits of other writers (OPTIMIZE, ALTER …) may lie over the last one of ours


@dataclass(frozen=True)
class Newest:
    """A table's newest progress record, and when it was committed, in seconds since 1970."""

    progress: Progress
    committed_at: float | None


def newest_record(path: str) -> Newest | None:
    """The newest record of the table at `path`; None if there is no table, or the service never wrote to it. After a
    RESTORE it is the record of the restored version. Raises TableHalt for a record that this version can't read and for
    a RESTORE by timestamp, SetupError if the storage can't be read.
    """
    try:
        table = DeltaTable(plain(path))
        for limit in _STEPS:
            commits = table.history(limit)
            if (found := _newest(commits)) is not None:
                return found
            if len(commits) < limit:
                return None
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise SetupError(
            "lake-unreadable",
            f"the table at {path} can't be read ({type(error).__name__})",
            "check that this machine may read target.path; keys of an object store are taken from the environment",
        ) from error
    return None


def _newest(commits: Iterable[Mapping[str, Any]]) -> Newest | None:
    """The newest record that counts; the newest commit comes first."""
    upto: int | None = None
    for commit in commits:
        if upto is not None and commit["version"] > upto:
            continue
        text = commit.get("userMetadata")
        progress = Progress.from_json(text if isinstance(text, str) else None)
        if progress is not None:
            at = commit.get("timestamp")
            return Newest(progress, at / 1000 if isinstance(at, int | float) else None)
        if commit.get("operation") == "RESTORE":
            upto = restored_to(commit.get("operationParameters"))
            if upto is None:
                raise table_restored()
    return None


def note_at(path: str) -> bytes | None:
    """The content of a small file; None if there is none. Raises SetupError if the storage can't be read."""
    try:
        files, place = fs.FileSystem.from_uri(plain(path))
        with files.open_input_stream(place) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> SetupError:
    """The error of a file that can't be read or understood."""
    return SetupError(
        "lake-unreadable",
        f"{path} can't be read ({type(error).__name__})",
        "check that this machine may read target.path; keys of an object store are taken from the environment",
    )


def plain(path: str) -> str:
    """The path as readers without Hadoop spell it."""
    for ours, theirs in (("s3a://", "s3://"), ("s3n://", "s3://"), ("file://", "/")):
        if path.startswith(ours):
            return theirs + path[len(ours) :].lstrip("/")
    return path
