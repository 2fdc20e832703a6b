"""From where on a topic tells a table: what is read of it, and whether its start is still there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange
from distributary.errors import TableHalt
from distributary.ingest.tables import ConfiguredTable
from distributary.progress.record import Progress


def range_read(one: ConfiguredTable, progress: Progress, first: Mapping[int, int]) -> OffsetRange:
    """All that Kafka still has of what the table has applied. `first`: the first offset of each partition.

    Raises TableHalt where that tells nothing.
    """
    if one.settings.epoch:
        raise TableHalt(
            "epoch-raised",
            f"`epoch` is {one.settings.epoch} for this table ({one.settings.where}): nothing in the topic tells which"
            " of its records came before it was raised",
            "compare with the source (--source-dsn); or have a connector with another topic.prefix begin anew, and"
            " `distributary resume -c FILE TABLE --rebuild` fill the table from there",
        )
    ends = {p: end for p, end in progress.next.items() if p in first and end > first[p]}
    if not ends:
        raise TableHalt(
            "no-records-left",
            f"{one.topic} has none of the records any more that the table has applied",
            "compare with the source, or keep records longer (retention.ms)",
        )
    return OffsetRange(one.topic, {p: first[p] for p in ends}, ends)


def lost_start(taken_in: int, applied: int | None, start: Mapping[int, int], cleanup_policy: str) -> str | None:
    """Says that the topic does not have all that the table has applied; None where it has.

    `taken_in`: the records that the table has applied; `applied`: those that the topic has, None where not all were
    counted: then `start`, the first offsets, and the topic's cleanup.policy have to tell.
    """
    why = None
    if applied is not None:
        if applied < taken_in:
            why = f"the topic has {applied:,} of the {taken_in:,} records that the table has applied"
    elif any(start.values()):
        why = "the topic's first records were removed"
    elif "compact" in cleanup_policy:
        why = "the topic is compacted"
    return why and f"{why}: keys whose state it does not decide any more are not checked"


def newest_truncate(settings: TableSettings, *positions: str | None) -> str | None:
    """The newest of those truncates; None where the config leaves rows alone."""
    if settings.truncate not in ("apply", "soft"):
        return None
    return max(filter(None, positions), default=None)
