"""Whether a row of the table was still one of the source's when a change came to its key."""

from __future__ import annotations

from distributary import sql
from distributary.merge.position_sql import is_later, is_snapshot_row


def older_than(connector: str, position: str, row: str) -> str:
    """BOOLEAN: a row of the table is older than the position, a text, with all that is known of it: what a truncate
    there takes. `row` stands before `position` and `snapshot` in the names of its columns (`t.__`)."""
    at = sql.text(position)
    older = is_later(connector, at, f"{row}position")
    if connector != "postgresql":
        return older
    read = f"substring_index({row}snapshot, '#', 1)"
    return f"({older} AND ({row}snapshot IS NULL OR {is_later(connector, at, read)}))"


def dead_at(connector: str, row: str, *, soft: bool, truncated: str | None, at: str) -> str | None:
    """BOOLEAN: a row of the table was not one of the source's any more when the change at the position `at` came to its
    key: it was deleted softly (`soft`: there are such rows), or goes by a truncate in the slice that came before. None
    where each was one. `row` as older_than() has it, also before `deleted` and `op`."""
    ways = []
    if soft:
        # A truncate left the row's own position: what is not newer is sent again, and was there before the truncate.
        before = f"({row}op <> 't' OR {is_later(connector, at, f'{row}position')})"
        ways.append(f"(coalesce({row}deleted, false) AND {before})")
    if truncated is not None:
        before = f"NOT {is_later(connector, sql.text(truncated), at)}"
        ways.append(f"({older_than(connector, truncated, row)} AND {before})")
    return f"({' OR '.join(ways)})" if ways else None


def stays(connector: str, row: str, tx: str, at: str) -> str:
    """BOOLEAN: a row of the table is still there after a delete of its key at the position `at` (NULL: there was none)
    in the transaction `tx`: a key change of that had put it over the row that was deleted, or it is not older than the
    delete, which is sent again. `row` as older_than() has it."""
    newer = f"NOT {is_later(connector, at, f'{row}position')}"
    if connector == "postgresql":  # what a snapshot read is older than any change
        newer = f"NOT {is_snapshot_row(f'{row}position')} AND {newer}"
    return f"({at} IS NULL OR coalesce({row}moved = {tx}, false) OR ({newer}))"
