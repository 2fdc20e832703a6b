"""The offsets of a topic that are replayed for a comparison, and whether its first records are still there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.consume.offsets import OffsetRange
from distributary.errors import TableHalt
from distributary.ingest.tables import ConfiguredTable
from distributary.progress.record import Progress


def replay_range(table: ConfiguredTable, progress: Progress, first: Mapping[int, int]) -> OffsetRange:
    """The offsets that the table has applied and Kafka still has. `first`: the first offset of each partition.

    Raises TableHalt if these records can't produce the table.
    """
    if table.settings.epoch:
        raise TableHalt(
            "epoch-raised",
            f"`epoch` is {table.settings.epoch} for this table ({table.settings.where}), and the topic does not show"
            " which of its records came before it was raised",
            "compare with the source (--source-dsn); or start a connector with another topic.prefix and fill the table"
            " from its topics with `distributary resume -c FILE TABLE --rebuild`",
        )
    adopted = progress.adopted or {}  # earlier changes are in the rows of another writer
    begin = {p: max(offset, adopted.get(p, offset)) for p, offset in first.items()}
    ends = {p: end for p, end in progress.next.items() if p in begin and end > begin[p]}
    if not ends:
        raise TableHalt(
            "no-records-left",
            f"{table.topic} no longer has any record that the table has applied",
            "compare with the source (--source-dsn), or keep records longer (retention.ms)",
        )
    return OffsetRange(table.topic, {p: begin[p] for p in ends}, ends)


def lost_records_note(applied: int, replayed: int, *, adopted: bool = False) -> str | None:
    """A note if fewer records could be replayed than the table has applied, or if it has rows that another job wrote
    (`adopted`); else None. Takes both numbers."""
    if adopted:
        why = "the table was adopted, with rows that another job wrote"
    elif replayed < applied:
        why = f"the topic has {replayed:,} of the {applied:,} records that the table has applied"
    else:
        return None
    return f"{why}: keys whose state it no longer decides are not checked"
