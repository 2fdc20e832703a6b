"""What of a table's log Delta no longer keeps, and whether the `deltalake` library would keep the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

from distributary.config.delta_properties import interval_seconds

FILES_KEPT = "delta.deletedFileRetentionDuration"
"""How long a file that left the table stays, and the log's note of it (a tombstone), by which VACUUM knows when it
left; a week where a table does not say it."""

# How the library reads that property; what is written otherwise counts as not said.
_BY_LIBRARY = re.compile(r"interval \d+ (second|minute|hour|day|week)s?")


def same_tombstones(properties: Mapping[str, str]) -> bool:
    """Whether a checkpoint of the library has the same tombstones as Spark's, of a table with these properties."""
    return _BY_LIBRARY.fullmatch(properties.get(FILES_KEPT, "interval 7 days")) is not None


def has_old_commits(log: Path, properties: Mapping[str, str], today: date) -> bool:
    """Whether Delta's clean-up may have to remove the first commit of the log in this folder, of a table with these
    properties. It removes whole days, in UTC. True also where the properties say in another way how long it is kept."""
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return False
    kept = interval_seconds(properties.get("delta.logRetentionDuration", "interval 30 days"))
    first = min(log.glob("0*.json"), default=None)
    if kept is None or first is None:
        return True
    midnight = datetime.combine(today, time(), timezone.utc)
    cut = midnight - timedelta(seconds=kept)
    return first.stat().st_mtime < cut.timestamp()
