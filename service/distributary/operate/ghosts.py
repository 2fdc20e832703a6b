"""A running table's look at its own ghosts: counted once per complete snapshot, shown, never removed by itself."""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.merge.ghosts import count, is_ghost
from distributary.merge.progress import Head
from distributary.merge.snapshots import to_count
from distributary.merge.table import SMALL_SLICE, LakeTable


def counted(lake: LakeTable, head: Head | None, *, marks_deleted: bool, log: FilteringBoundLogger) -> Head | None:
    """The table's head, after a commit with the number of ghosts where they can be counted and were not yet."""
    progress = head.progress if head else None
    if head is None or progress is None or progress.snapshot is None or not to_count(progress):
        return head
    lake.suit(SMALL_SLICE + 1)  # the whole table is looked at
    found = count(lake.rows(), is_ghost(progress.connector, progress.snapshot.position, marks_deleted=marks_deleted))
    snapshot = progress.snapshot.model_copy(update={"ghosts": found})
    head = lake.commit(head, progress.next_commit(snapshot=snapshot), lake.nothing())
    warn(head, log)
    return head


def warn(head: Head | None, log: FilteringBoundLogger) -> None:
    """Says that there are ghosts, and what removes them. `log` has the table's name as `table`."""
    progress = head.progress if head else None
    if progress is not None and progress.snapshot is not None and progress.snapshot.ghosts:
        log.warning(
            "the table has rows that its last complete snapshot does not have",
            rows=progress.snapshot.ghosts,
            fix="distributary resume -c FILE TABLE --reconcile removes them",
        )
