"""The contract of commits in this package: on exactly the version that was read, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from distributary.errors import TransientError


class ConcurrentChange(TransientError):
    """Another commit came first: nothing of this commit is in the table. Call `sync`, and plan the commit again."""


@dataclass(frozen=True)
class CommitPayload:
    """The record that a commit carries beside its rows: a `text` as its userMetadata, and a `txn` action that counts
    `sequence` for `app_id`."""

    text: str
    app_id: str
    sequence: int


@dataclass(frozen=True)
class Committed:
    """The result of a write: the new version, and how many rows it inserted, updated and deleted."""

    version: int
    inserted: int
    updated: int
    deleted: int


class Committer(Protocol):
    """Commits to one table."""

    def commit(
        self,
        seen_version: int,
        actions: Sequence[Mapping[str, Any]],
        record: CommitPayload,
        *,
        changes_rows: bool = True,
    ) -> int:
        """Commits on the version `seen_version`; returns the new one. Without `changes_rows` the table's history shows
        it as an OPTIMIZE. Raises ConcurrentChange if another commit came first; after any error the commit is not in
        the table, or the next write fails by ConcurrentChange."""

    def check(self, rows: pa.Table, constraints: Mapping[str, str]) -> None:
        """Raises TableHalt where a row breaks a CHECK constraint (name to Spark's SQL)."""

    def enable_vectors(self) -> None:
        """Lets the table have deletion vectors, by a commit of its own."""


def concurrent_change(path: str, seen_version: int) -> ConcurrentChange:
    """The error of a commit on a version that is no longer the newest."""
    return ConcurrentChange(
        "commit-lost",
        f"the commit to {path} on version {seen_version} failed: another writer was faster",
        "run one driver per config; the batch is tried again from the newest version",
    )
