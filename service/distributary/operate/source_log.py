"""What a source's log may say that its table can't go on with: a truncate that is to halt it, a place gone back."""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame

from distributary.config.table import TableSettings
from distributary.consume.offsets import Slice
from distributary.decode.source_block import BY_OFFSET, has_source_table
from distributary.errors import TableHalt
from distributary.merge.facts import Facts, WentBack, went_back
from distributary.merge.progress import Progress


def check_source_log(
    records: DataFrame, found: Facts, progress: Progress, settings: TableSettings, part: Slice
) -> Slice:
    """What of the slice the table can take: all of it, or what comes before the source was restored or failed over to
    an earlier position (rule 2.6): `epoch` is of all records of a slice.

    Raises TableHalt where nothing comes before that, where the slice has a truncate and `truncate` is halt, and where
    it has one of a source table among several. Costs a Spark job only where the source may have gone back.
    """
    # Offsets never go back, and their times say nothing of the source.
    back = went_back(records, progress) if found.suspect and progress.connector != BY_OFFSET else []
    if back:
        ends = {**part.end, **{one.partition: one.offset for one in back}}
        if all(one.offset == part.start[one.partition] for one in back):
            raise _went_back(back[0], settings, part.topic)
        ends = {p: end for p, end in ends.items() if end > part.start[p]}
        return Slice(part.topic, {p: part.start[p] for p in ends}, ends)
    if found.truncated is not None and settings.truncate == "halt":
        raise TableHalt(
            "truncated",
            f"the source table was truncated at {found.truncated} and truncate is halt",
            "set truncate: apply or ignore for this table (or soft, where it has __deleted); once it is past the"
            " truncate, halt may be set again",
        )
    empties = settings.truncate in ("apply", "soft") and settings.mode != "append"
    if found.truncated is not None and empties and has_source_table(progress.key):
        raise TableHalt(
            "truncated-part",
            f"one of the source tables of {part.topic} was truncated at {found.truncated}; the table has the rows of"
            " others too, which are still there",
            "set truncate: ignore for this table: the rows stay, and those of the truncated table can be deleted by"
            f" hand ({', '.join(filter(lambda name: has_source_table([name]), progress.key))} names it)",
        )
    return part


def _went_back(back: WentBack, settings: TableSettings, topic: str) -> TableHalt:
    return TableHalt(
        "source-went-back",
        f"offset {back.offset} of {topic} partition {back.partition} was committed at the source at"
        f" {_time(back.ts_ms)} with position {back.position}, lower than {back.last_position}, reached at"
        f" {_time(back.last_ts_ms)}: the source was restored or failed over to an earlier position",
        f"set `epoch: {settings.epoch + 1}` for this table if what follows is to replace what was before",
    )


def _time(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
