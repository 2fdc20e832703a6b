"""The `delta.*` properties of a table: any, except those that would break how the service keeps it.

Delta reads their names without regard to upper and lower case, so they are refused like that too. Which properties
there are is left to Delta: a version of it may have new ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from distributary.config.problem import Problem, refuse
from distributary.config.properties import PropertyValue

_PREFIX = "delta."
FEATURE = "delta.feature."
"""Before the name of a feature: the table is to have it in its protocol, no property stays."""

_OWNED = {
    "delta.appendonly": "the service changes and removes rows, and a rebuild empties the table",
    "delta.minreaderversion": "Delta raises it by itself for what other properties ask for",
    "delta.minwriterversion": "Delta raises it by itself for what other properties ask for",
    "delta.columnmapping.maxcolumnid": "Delta counts columns in it",
}
_OWNED_PREFIXES = {
    "delta.constraints.": "a row of the source that does not fit would stop the table",
    "delta.coordinatedcommits.": "the service reads its offsets from the commit files of the table's own log",
    "delta.feature.catalogmanaged": "the service reads its offsets from the commit files of the table's own log",
    "delta.feature.catalogowned": "the service reads its offsets from the commit files of the table's own log",
}
_MAPPING = "delta.columnmapping.mode"
_LOG_KEPT = "delta.logretentionduration"
_INTERVAL = re.compile(r"\s*(?:interval\s+)?(\d+)\s+(second|minute|hour|day|week)s?\s*", re.IGNORECASE)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 24 * 3600, "week": 7 * 24 * 3600}
_DAY = 24 * 3600


def _properties(given: dict[str, Any]) -> dict[str, str]:
    refuse(problem for name, value in given.items() if (problem := _problem(name, str(value))))
    return {name: str(value) for name, value in given.items()}


def _problem(name: str, value: str) -> Problem | None:
    lower = name.lower()
    if not name.startswith(_PREFIX) or name == _PREFIX:
        fix = "write it as Delta spells it, such as delta.enableDeletionVectors"
        return Problem("bad-property", "a table's properties start with `delta.`", fix, (name,))
    reason = _OWNED.get(lower) or next((why for p, why in _OWNED_PREFIXES.items() if lower.startswith(p)), None)
    if lower == "delta.appendonly" and value.lower() == "false":
        return None
    if reason is not None:
        return Problem("delta-owned", f"refused, since {reason}", "take it out", (name,))
    if lower == _MAPPING and value != "name":
        reason = "the service sets `name` where a column needs it, and the two others can't be changed to it later"
        return Problem("delta-owned", f"refused, since {reason}", "write name, or take it out", (name,))
    if lower == _LOG_KEPT and (retention := interval_seconds(value)) is not None and retention < _DAY:
        reason = "the service's offsets are in the log's commits, and are lost with them"
        return Problem("delta-owned", f"less than a day is refused, since {reason}", "write interval 7 days", (name,))
    if lower.startswith(FEATURE) and value != "supported":
        return Problem("bad-value", "a feature is supported or not named at all", "write supported", (name,))
    return None


def interval_seconds(value: str) -> int | None:
    """A Delta interval in seconds; None if it is not written in one unit."""
    match = _INTERVAL.fullmatch(value)
    return None if match is None else int(match[1]) * _SECONDS[match[2].lower()]


def interval(seconds: float) -> str:
    """Seconds as an interval, in a form that both Delta and the `deltalake` library read."""
    days, rest = divmod(round(seconds), _DAY)
    return f"interval {round(seconds)} seconds" if rest else f"interval {days} days"


DeltaProperties = Annotated[dict[str, PropertyValue], AfterValidator(_properties)]


def lacking(wanted: Mapping[str, str], has: Mapping[str, str], features: Collection[str]) -> dict[str, str]:
    """Those of the wanted properties that a table with these properties and features of its protocol lacks."""
    present = {name.lower(): value for name, value in has.items()}
    known = {f"{FEATURE}{name}".lower() for name in features}
    return {
        name: value
        for name, value in wanted.items()
        if (name.lower() not in known if name.lower().startswith(FEATURE) else present.get(name.lower()) != value)
    }
