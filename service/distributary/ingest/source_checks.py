"""Changes of the source that halt its table: a truncate with `truncate: halt`, and a return to earlier positions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange
from distributary.decode.source_block import SOURCE_TABLE_COLUMN, has_source_table
from distributary.errors import TableHalt
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Progress
from distributary.rules.event import Event
from distributary.rules.position_text import write_position


def check_truncates(found: BatchStats, progress: Progress, settings: TableSettings, topic: str) -> None:
    """Raises TableHalt for a truncate with `truncate: halt`, and for a truncate of one of several source tables whose
    rows can't be told apart by a name that a transform gave to them."""
    if found.truncated is not None and settings.truncate == "halt":
        raise truncated_at(found.truncated)
    empties = settings.truncate in ("apply", "soft") and settings.mode != "append"
    is_part = has_source_table(progress.key) and SOURCE_TABLE_COLUMN not in progress.key
    if found.truncated is not None and empties and is_part:
        raise TableHalt(
            "truncated-part",
            f"one of the source tables of {topic} was truncated at {found.truncated}; the table has the rows of"
            " others too, which are still there, and a transform gave the source tables their names in the key",
            "set truncate: ignore for this table: the rows stay, and those of the truncated table can be deleted by"
            f" hand ({', '.join(filter(lambda name: has_source_table([name]), progress.key))} names it)",
        )


def truncated_at(place: str) -> TableHalt:
    """Rule 3.6: why a table of `truncate: halt` stops at a truncate. `place`: its position."""
    return TableHalt(
        "truncated",
        f"the source table was truncated at {place} and truncate is halt",
        "set truncate: apply or ignore for this table (or soft, where it has __deleted); once it is past the"
        " truncate, halt may be set again",
    )


def before_going_back(
    batch: OffsetRange, back: Sequence[Event], connector: str, settings: TableSettings
) -> OffsetRange:
    """The beginning of the batch, before the source was restored or failed over to an earlier position (rule 2.6): one
    `epoch` applies to all records of a batch. `back`: the first event of each partition that shows it. Raises TableHalt
    where nothing comes before."""
    ends = {**batch.end, **{event.partition: event.offset for event in back}}
    if all(event.offset == batch.start[event.partition] for event in back):
        raise went_back(back[0], connector, settings, batch.topic)
    ends = {p: end for p, end in ends.items() if end > batch.start[p]}
    return OffsetRange(batch.topic, {p: batch.start[p] for p in ends}, ends)


def went_back(event: Event, connector: str, settings: TableSettings, topic: str) -> TableHalt:
    """Rule 2.6: why the table halts at an event."""
    at = event.position
    assert at is not None
    when = datetime.fromtimestamp(at.time / 1_000_000, timezone.utc).isoformat(timespec="milliseconds")
    return TableHalt(
        "source-went-back",
        f"offset {event.offset} of {topic} partition {event.partition} was committed at the source at {when} with"
        f" position {write_position(connector, at)}, lower than one that was reached before: the source was restored or"
        " failed over to an earlier position",
        f"if the source's new log is the valid one, set `epoch: {settings.epoch + 1}` for this table",
    )
