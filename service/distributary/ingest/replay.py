"""Replays records in quarantine: which of them can be applied, and the progress record afterwards. They are applied
like all late records: by their position, against the table's rows and the remembered deletes (rule 2.1), so that newer
changes stay. A record without a position is ordered by its arrival, and can't be applied later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from distributary.decode.decoder import Decoded
from distributary.decode.envelope import TOMBSTONE
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Progress
from distributary.rules.log_traits import log_traits
from distributary.rules.position_text import highest_of


@dataclass(frozen=True)
class Replayed:
    """The `events` that can be applied, the progress record `after` them, and counts for the log."""

    events: pa.Table
    after: Progress
    counts: Mapping[str, int]


def plan_replay(decoded: Decoded, stats: BatchStats, progress: Progress, *, truncates: bool) -> Replayed:
    """Checks the decoded records of a table's quarantine, and their statistics `stats`. `truncates`: whether truncates
    among them are applied."""
    by_arrival = [TOMBSTONE, "r"] if log_traits(progress.connector).snapshot_rows_by_arrival else [TOMBSTONE]
    has_position = pc.invert(pc.is_in(decoded.events["operation"], pa.array(by_arrival)))
    usable = decoded.events.filter(has_position)
    truncated = stats.truncated if truncates else None
    after = progress.next_commit(
        position=highest_of(progress.connector, (progress.position, stats.position)),
        truncated=highest_of(progress.connector, (progress.truncated, truncated)),
        records=progress.records + usable.num_rows,
    )
    without_position = decoded.events.num_rows - usable.num_rows
    counts = {"applied": usable.num_rows, "still_bad": stats.bad, "without_position": without_position}
    return Replayed(usable, after, counts)
