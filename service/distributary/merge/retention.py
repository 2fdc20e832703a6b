"""Whether a table's log has commits that Delta no longer keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

# How long commits are kept, as far as it is said in one unit.
_KEPT = re.compile(r"\s*(interval\s+)?(?P<number>\d+)\s+(?P<unit>hour|day|week)s?\s*", re.IGNORECASE)
_UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


def has_old_commits(log: Path, properties: Mapping[str, str], today: date) -> bool:
    """Whether Delta's clean-up may have to remove the first commit of the log in this folder, of a table with these
    properties. It removes whole days, in UTC. True also where the properties say in another way how long it is kept."""
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return False
    kept = _KEPT.fullmatch(properties.get("delta.logRetentionDuration", "interval 30 days"))
    first = min(log.glob("0*.json"), default=None)
    if kept is None or first is None:
        return True
    midnight = datetime.combine(today, time(), timezone.utc)
    cut = midnight - int(kept["number"]) * _UNITS[kept["unit"].lower()]
    return first.stat().st_mtime < cut.timestamp()
