"""The newest commit of a table that its worker knows, shared by all parts that commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from distributary.consume.offsets import Offsets
from distributary.progress.record import Head, Progress
from distributary.storage.json_file import lake_missing


@dataclass
class TableCursor:
    """Where a table is. Moved as soon as a commit is done, even if the work around it fails afterwards.

    `head`: the newest commit, None before the table exists. `first`: the first offset that Kafka has of each partition;
    of a table that does not exist yet, the offset up to which no record was left.
    """

    head: Head | None = None
    first: Offsets = field(default_factory=dict)

    @property
    def progress(self) -> Progress | None:
        """The table's progress record."""
        return self.head.progress if self.head else None

    @property
    def commit(self) -> str | None:
        """The commit id in the table's progress record."""
        return self.progress.commit if self.progress else None

    def move_to(self, newest: Head | None, is_lake_there: Callable[[], bool] = lambda: True) -> bool:
        """Takes over the table's newest commit. Returns whether the table was created or has another progress record
        than before: another driver continued it, or somebody restored or deleted it. Raises TransientError if there is
        neither the table nor the lake: the table would be made in the empty directory where a volume was mounted."""
        known, commit = self.head, self.commit
        if newest is None and not is_lake_there():
            raise lake_missing()
        self.head = newest
        return commit != self.commit or (known is None and newest is not None)

    @property
    def next_offsets(self) -> Offsets:
        """Per partition the first offset that the table has not applied."""
        progress = self.progress
        return dict(progress.next) if progress else {}

    @property
    def from_offsets(self) -> Offsets:
        """The same, and for partitions that were never read the first offset that Kafka has."""
        return {**self.first, **self.next_offsets}
