"""Older rows of a table get the defaults of columns that were added after them.

The progress record has them as pending before the table has the columns, and as done in the commit that fills them. No
change with these columns is applied in between, so a row with NULL there is an older one.
"""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.lake.table import LakeTable
from distributary.progress.record import Head


def commit_defaults(
    lake: LakeTable, head: Head | None, settings: TableSettings, log: FilteringBoundLogger
) -> Head | None:
    """Fills pending columns by one commit that rewrites all files of the table, and returns that commit. If the config
    no longer has this setting, it only commits that the columns are no longer pending. Raises what LakeTable.commit
    raises."""
    if head is None or head.progress is None:
        return head
    added = head.progress.added or {}
    pending = {name: column for name, column in added.items() if column.pending}
    if pending and not settings.fills_defaults:
        complete = {name: column for name, column in added.items() if name not in pending}
        return lake.commit(head, head.progress.next_commit(added=complete or None), lake.empty_commit())
    there = lake.columns() if pending else {}
    values = {name: column.value for name, column in pending.items() if name in there}
    if not values:
        return head
    done = {name: column.model_copy(update={"pending": False}) for name, column in added.items() if name in values}
    log.info("older rows get the defaults of new columns", columns=list(values))
    head = lake.commit(head, head.progress.next_commit(added={**added, **done}), lake.filling(values))
    lake.release_cache()
    return head
