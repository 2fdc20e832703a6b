"""What a source's log may say that its table can't go on with: a truncate that is to halt it, a place gone back."""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame

from distributary.config.table import TableSettings
from distributary.decode.position import BY_OFFSET
from distributary.errors import TableHalt
from distributary.merge.facts import Facts, went_back
from distributary.merge.progress import Progress


def check_source_log(records: DataFrame, found: Facts, progress: Progress, settings: TableSettings, topic: str) -> None:
    """Raises TableHalt where the slice has a truncate and `truncate` is halt, or where the source was restored or
    failed over to an earlier position (rule 2.6). Costs a Spark job only where that may be so."""
    if found.truncated is not None and settings.truncate == "halt":
        raise TableHalt(
            "truncated",
            f"the source table was truncated at {found.truncated} and truncate is halt",
            "set truncate: apply or ignore",
        )
    # Offsets never go back, and their times say nothing of the source.
    back = went_back(records, progress) if found.suspect and progress.connector != BY_OFFSET else None
    if back is not None:
        raise TableHalt(
            "source-went-back",
            f"offset {back.offset} of {topic} partition {back.partition} was committed at the source at"
            f" {_time(back.ts_ms)} with position {back.position}, lower than {back.last_position}, reached at"
            f" {_time(back.last_ts_ms)}: the source was restored or failed over to an earlier position",
            f"set `epoch: {settings.epoch + 1}` for this table if what follows is to replace what was before",
        )


def _time(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
