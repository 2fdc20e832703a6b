"""Changes of the source that halt its table: truncates that it can't apply, and a return to earlier positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from distributary.config.table import TableSettings
from distributary.consume.offsets import OffsetRange
from distributary.decode.source_block import SOURCE_TABLE_COLUMN
from distributary.errors import TableHalt
from distributary.rules.event import Event
from distributary.rules.position_text import write_position


def check_scopes(
    truncates: Sequence[Event],
    key: Sequence[str],
    topic: str,
    settings: TableSettings,
    knows: Callable[[str, str], bool],
) -> None:
    """Raises TableHalt for a truncate of one of several source tables if it is not known which rows are the source
    table's: a transform that put the names into the key may have changed them, or the config renames the column that
    has them. `knows`: whether a row of the table or of the batch has that name in that column of the key."""
    if settings.merge_sources and key and any(truncate.scope is None for truncate in truncates):
        raise TableHalt(
            "truncated-part",
            f"one of the source tables of {topic} was truncated, and no column of the key names a row's source table",
            "take the column that a transform adds to the key (its name begins with two underscores) out of `rename`"
            " and run `distributary resume -c FILE TABLE --rebuild`; or set truncate: ignore for this table until it is"
            " past the truncate, and delete the rows by hand",
        )
    scopes = [truncate.scope for truncate in truncates if truncate.scope is not None]
    for column, name in ((key[place], name) for place, name in scopes):
        if column != SOURCE_TABLE_COLUMN and not knows(column, name):
            raise TableHalt(
                "truncated-part",
                f"the source table {name!r} of {topic} was truncated, and no row has this name in {column}: it had no"
                " rows, or a transform changed its name",
                "set truncate: ignore for this table until it is past the truncate; if the truncated table had rows,"
                f" delete them by hand ({column} names it)",
            )


def truncate_halts(topic: str, truncate: Event) -> TableHalt:
    """Rule 3.6: why a table of `truncate: halt` stops at a truncate."""
    return TableHalt(
        "truncated",
        f"the source table was truncated, and truncate is halt: {topic}, partition {truncate.partition}, offset"
        f" {truncate.offset}",
        "set truncate: apply or ignore for this table (or soft, where it has __deleted); once it is past the"
        " truncate, halt may be set again",
    )


def before_going_back(
    batch: OffsetRange, back: Sequence[Event], connector: str, settings: TableSettings
) -> OffsetRange:
    """The beginning of the batch, before the source was restored or failed over to an earlier position (rule 2.6): one
    `epoch` applies to all records of a batch. `back`: the first event of each partition that shows it. Raises TableHalt
    if no record comes before."""
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
        f"if the source's new log is the valid one, set `epoch: {settings.epoch + 1}` for this table; if only this"
        f" record is wrong, `distributary quarantine add -c FILE TABLE {topic}:{event.partition}:{event.offset}`"
        " (if it is a delete, the tombstone behind it, too), then `resume`",
    )
