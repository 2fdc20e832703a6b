"""Records in quarantine that are applied again: which of them have a place, and what the table knows afterwards.

They come late, and are taken as late records are: by their position, against the table's rows and the deletes that are
remembered (rule 2.1), so that what is newer stays. A record without a position stood where it arrived, which is past.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from distributary.merge.facts import Facts, facts
from distributary.merge.progress import Progress
from distributary.merge.queries import Queries


@dataclass(frozen=True)
class Replayed:
    """`records` that can be applied, what was `found` in them, the newest truncate among them that counts, and the
    table's record `after` it."""

    records: DataFrame
    found: Facts
    truncated: str | None
    after: Progress

    def told(self, all_found: Facts) -> dict[str, int]:
        """For the log: `all_found` is what all records in quarantine had."""
        placeless = all_found.records - all_found.bad - self.found.records
        return {"applied": self.found.records, "still_bad": all_found.bad, "without_a_place": placeless}


def replayed(records: DataFrame, progress: Progress, *, truncates: bool) -> Replayed:
    """Looks at the decoded records of a table's quarantine (see ingest.merge_records) once, in one Spark job.
    `truncates`: those among them count."""
    placeless = "kind = 'x' OR kind = 'r'" if progress.connector == "postgresql" else "kind = 'x'"
    usable = records.where(f"bad IS NULL AND NOT ({placeless})")
    found = replace(facts(usable, progress, Queries()), late=True)
    truncated = found.truncated if truncates else None
    after = progress.next_commit(
        filled=progress.filled or found.placeholders > 0,
        position=max(filter(None, (progress.position, found.position)), default=None),
        truncated=max(filter(None, (progress.truncated, truncated)), default=None),
        records=progress.records + found.applied,
    )
    return Replayed(usable, found, truncated, after)
