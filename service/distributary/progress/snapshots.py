"""The complete snapshots of a table, recognized from the statistics of its batches. No I/O.

Rows that were deleted while no snapshot was complete and no change was read are never deleted by a record. The newest
complete snapshot shows them: it does not have them, and they are older than it is (see orphaned_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from distributary.decode.source_block import BY_OFFSET
from distributary.errors import UsageError
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Progress, SourceSnapshot
from distributary.rules.log_traits import log_traits
from distributary.rules.position_text import highest_of, lowest_of, position_order


def after_batch(
    progress: Progress, stats: BatchStats, next_offsets: Mapping[int, int], latest: Callable[[], Mapping[int, int]]
) -> dict[str, Any]:
    """The changes of a batch to the progress record: its fields `snapshot`, `lowest`, `snapshot_row`,
    `incomplete_snapshot` and `lost`.

    `next_offsets`: by partition, after the batch. `latest` requests the ends of all partitions from Kafka; it is only
    called for a batch that ends a snapshot, because rows of the snapshot may be before these ends.
    """
    connector, order = progress.connector, position_order(progress.connector)
    lowest = lowest_of(connector, (progress.lowest, stats.lowest))
    if (progress.records or progress.adopted is not None) and progress.lowest is None:
        lowest = None  # a record of a version that did not keep it, or rows of another writer: some may be older
    row = highest_of(connector, (progress.snapshot_row, stats.snapshot_row))
    snapshot = progress.snapshot
    # A record that can't be read may be a snapshot's row, even if the batch has no other snapshot row.
    is_behind = snapshot is not None and row is not None and order(row) > order(snapshot.position)
    may_be_read = stats.snapshot_row is not None or snapshot is None or snapshot.open or is_behind
    # Lost records may also have been snapshot rows, up to the ends that Kafka had when the loss was accepted.
    missed = stats.bad_snapshot_rows > 0 or progress.lost is not None
    incomplete = highest_of(connector, (progress.incomplete_snapshot, row if missed and may_be_read else None))
    lost = {p: end for p, end in (progress.lost or {}).items() if end > next_offsets.get(p, 0)} or None
    if _ends_one(progress, stats):
        snapshot = SourceSnapshot(position=str(stats.snapshot), open=latest())
    if snapshot is not None and snapshot.open:
        unread = {p: end for p, end in snapshot.open.items() if end > next_offsets.get(p, 0)}
        snapshot = snapshot.model_copy(update={"open": unread})
    counts = _is_countable(connector, snapshot, incomplete)
    is_older = lowest is None or snapshot is None or order(lowest) < order(snapshot.position)
    if log_traits(connector).level_may_be_unknown and lowest is not None and snapshot is not None:
        # Without a level times decide, and a snapshot's time is not of the database's clock.
        is_older = is_older or lowest < snapshot.position
    if counts and snapshot is not None and not is_older:
        # No row can be older: the table need not be read.
        snapshot = snapshot.model_copy(update={"orphaned_rows": 0})
    return {
        "snapshot": snapshot,
        "lowest": lowest,
        "snapshot_row": row,
        "incomplete_snapshot": incomplete,
        "lost": lost,
    }


def after_loss(progress: Progress, end: Mapping[int, int]) -> dict[str, Any]:
    """The changes of the record when an operator accepts a loss of records: the lost records may be rows of a snapshot
    that is being read, or unread rows of a complete one. `end`: the ends of all partitions now."""
    snapshot = progress.snapshot
    unfinished = snapshot.position if snapshot is not None and snapshot.open else None
    incomplete = highest_of(progress.connector, (progress.incomplete_snapshot, unfinished))
    return {"lost": {p: at for p, at in end.items() if at > 0} or None, "incomplete_snapshot": incomplete}


def _ends_one(progress: Progress, stats: BatchStats) -> bool:
    # By offset each row has a position of its own. Other modes than upsert keep rows that no snapshot has.
    if stats.snapshot is None or progress.connector == BY_OFFSET or progress.mode != "upsert":
        return False
    order = position_order(progress.connector)
    return progress.snapshot is None or order(stats.snapshot) > order(progress.snapshot.position)


def is_countable(progress: Progress) -> bool:
    """Whether the rows that the newest complete snapshot leaves over can be counted, and were not yet."""
    return _is_countable(progress.connector, progress.snapshot, progress.incomplete_snapshot)


def _is_countable(connector: str, snapshot: SourceSnapshot | None, incomplete: str | None) -> bool:
    if snapshot is None or snapshot.open or snapshot.orphaned_rows is not None:
        return False
    order = position_order(connector)
    return incomplete is None or order(incomplete) < order(snapshot.position)


def complete_snapshot(table: str, progress: Progress) -> SourceSnapshot:
    """The table's newest complete snapshot. Raises UsageError if no row may be removed for not being in it."""
    if progress.mode != "upsert":
        raise not_for_mode(table, progress.mode)
    snapshot = progress.snapshot
    if snapshot is None:
        raise UsageError(
            "no-complete-snapshot",
            f"{table} has not applied the end of a snapshot, so it is unknown which rows are orphaned"
            + (" (its records have no position in the source's log)" if progress.connector == BY_OFFSET else ""),
            "let the connector finish its snapshot, or take a blocking one (`distributary snapshot`)",
        )
    if snapshot.open:
        ends = ", ".join(f"{end - 1} (partition {p})" for p, end in sorted(snapshot.open.items()))
        raise UsageError(
            "snapshot-not-taken-in",
            f"rows of the snapshot may still be unread: {table} has to apply the records up to {ends} first",
            "run the service until it has: distributary run --once",
        )
    order = position_order(progress.connector)
    if progress.incomplete_snapshot is not None and order(progress.incomplete_snapshot) >= order(snapshot.position):
        raise UsageError(
            "snapshot-incomplete",
            f"records that came with the rows of {table}'s snapshot are in the quarantine table, or were removed from"
            " Kafka before they were applied: their rows would look orphaned",
            "fix the cause and take a new snapshot (`distributary snapshot`)",
        )
    return snapshot


def not_for_mode(table: str, mode: str) -> UsageError:
    """Why tables of other modes are not reconciled."""
    why = {
        "append": "it keeps every change, also those of rows that are gone",
        "history": "ending versions by a snapshot is not built",
    }
    return UsageError(
        "not-for-this-mode",
        f"{table} is kept in mode: {mode}, and can't be reconciled: {why.get(mode, '')}",
        "fill the table again: delete its directory" if mode == "history" else "nothing has to be removed",
    )
