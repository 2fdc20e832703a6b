"""A table's progress record after a batch, from the one before and the statistics of the batch
(ingest/batch_counts.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.consume.offsets import Offsets
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Last, Progress, later
from distributary.progress.snapshots import after_batch
from distributary.rules.position_text import highest_of


def advanced(
    progress: Progress,
    stats: BatchStats,
    end: Mapping[int, int],
    truncated: str | None,
    first: Mapping[int, int],
    latest: Callable[[], Offsets],
) -> Progress:
    """The record for the batch's commit.

    `end`: the offsets behind the batch's last records; `truncated`: the position of the newest truncate in it that
    counts; `first`: the first offset that Kafka had of each partition; `latest` requests the ends of all partitions
    from Kafka.
    """
    connector, last = progress.connector, dict(progress.last)
    for p, of_partition in stats.partitions.items():
        before = last.get(p, Last())
        last[p] = Last(
            position=highest_of(connector, (before.position, of_partition.position)),
            ts_ms=max(filter(None, (before.ts_ms, of_partition.ts_ms)), default=None),
            transaction=later(connector, before.transaction, of_partition.transaction),
        )
    return progress.next_commit(
        **after_batch(progress, stats, {**first, **progress.next, **end}, latest),
        # Partitions without records are included: otherwise records that arrive there and expire before they are
        # applied would be lost unnoticed.
        next={**first, **progress.next, **end},
        last=last,
        position=highest_of(connector, (progress.position, stats.position)),
        truncated=highest_of(connector, (progress.truncated, truncated)),
        source_ts_ms=max(filter(None, (progress.source_ts_ms, stats.newest_ts_ms)), default=None),
        snapshot_ts_ms=max(filter(None, (progress.snapshot_ts_ms, stats.snapshot_ts_ms)), default=None),
        records=progress.records + stats.applied,
        quarantined=progress.quarantined + stats.bad,
        strays={**(progress.strays or {}), **stats.strays} or None,
        recent=(*progress.recent, (stats.records, stats.bad)),
    )
