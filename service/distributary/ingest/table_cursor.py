"""Where a table is, shared by those who move it."""

from __future__ import annotations

from dataclasses import dataclass, field

from distributary.consume.offsets import Offsets
from distributary.progress.record import Head, Progress


@dataclass
class TableCursor:
    """Where a table is, as last seen: set as soon as a commit is done, whatever becomes of the work around it.

    `head`: None before the table was made; `first`: the first offset that Kafka had of each partition, or as far as it
    was seen to have none of a table that is not there yet.
    """

    head: Head | None = None
    first: Offsets = field(default_factory=dict)

    @property
    def progress(self) -> Progress | None:
        """The table's own record."""
        return self.head.progress if self.head else None

    @property
    def taken(self) -> Offsets:
        """The next offset per partition."""
        progress = self.progress
        return dict(progress.next) if progress else {}
