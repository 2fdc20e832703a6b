"""How many of the last records may be ones that can't be applied, before a table halts."""

from __future__ import annotations

from collections.abc import Sequence

from distributary.errors import TableHalt

WINDOW = 1_000  # records whose share of bad ones is limited
LEAST_REJECTED = 100


def too_many_rejected(
    recent: Sequence[tuple[int, int]], max_ratio: float
) -> tuple[tuple[tuple[int, int], ...], int | None]:
    """The batches that hold the last 1,000 records, newest last, and the number of bad ones where it is too large.

    `recent` counts (records, bad ones) per batch.
    """
    recent_batches: list[tuple[int, int]] = []
    records = bad = 0
    for batch in reversed(recent):
        if records >= WINDOW:
            break
        recent_batches.append(batch)
        records += batch[0]
        bad += batch[1]
    too_many = bad >= LEAST_REJECTED and bad > max_ratio * records
    return tuple(reversed(recent_batches)), bad if too_many else None


def rejection_halt(bad: int) -> TableHalt:
    """Why a table halts that has this number of bad ones among its last records."""
    return TableHalt(
        "too-many-bad-records",
        f"{bad} of the last records went to the quarantine table, more than quarantine.max_ratio allows",
        "read the reasons (`distributary quarantine list`), fix the cause or raise quarantine.max_ratio",
    )
