"""Older rows of a table get the defaults of columns that were added after them.

The table's record says so before the table has the columns, and says that it is done by the commit that does it. No
change that has the columns is applied in between: so a row that has NULL there is one of the older ones.
"""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from distributary.config.table import TableSettings
from distributary.lake.table import LakeTable
from distributary.progress.record import Head


def fill_added(lake: LakeTable, head: Head | None, settings: TableSettings, log: FilteringBoundLogger) -> Head | None:
    """Fills the columns that are to be filled, by one commit, which writes all files of the table anew; gives the head
    that the table has then. Where the config does not want that any more, they are forgotten. Raises what
    LakeTable.commit raises."""
    if head is None or head.progress is None:
        return head
    added = head.progress.added or {}
    pending = {name: one for name, one in added.items() if one.pending}
    if pending and not settings.fills_defaults:
        kept = {name: one for name, one in added.items() if name not in pending}
        return lake.commit(head, head.progress.next_commit(added=kept or None), lake.empty_commit())
    there = lake.columns() if pending else {}
    values = {name: one.value for name, one in pending.items() if name in there}
    if not values:
        return head
    done = {name: one.model_copy(update={"pending": False}) for name, one in added.items() if name in values}
    log.info("older rows get the defaults of new columns", columns=list(values))
    head = lake.commit(head, head.progress.next_commit(added={**added, **done}), lake.fill(values))
    lake.release_cache()
    return head
