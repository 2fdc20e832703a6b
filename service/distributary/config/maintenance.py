"""How a table's files are kept few, and when those that no reader needs any more are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from distributary.config.problem import Problem
from distributary.config.scalars import Count, Duration, Section, seconds

SHORTEST_KEEP = "7d"
"""Delta's own default (delta.deletedFileRetentionDuration): below it VACUUM may take files from under a reader that is
still at work, and from a write that has not committed yet."""


def _keep(duration: str) -> str:
    if seconds(duration) < seconds(SHORTEST_KEEP):
        raise Problem(
            "keep-too-short",
            "files must stay long enough for running readers and for time travel",
            f"write {SHORTEST_KEEP} or more; a VACUUM that keeps less can be run by hand",
        ).error()
    return duration


class MaintenanceKeys(Section):
    """When the service compacts a table's files, and when it removes files that are no longer part of it."""

    compact_after: Count | None = Field(
        None,
        description="Small files are compacted after this many commits to the table; 0: never. Default: 100.",
    )
    vacuum_every: Duration | None = Field(
        None,
        description="Time between two VACUUMs of a table that changes: 12h, 1d; 0d: never. Default: 1d.",
    )
    keep: Annotated[Duration, AfterValidator(_keep)] | None = Field(
        None,
        description="Age at which VACUUM removes files that are no longer part of the table: time travel and RESTORE "
        "reach back as far. At least 7d. More than 7d is set as the table's "
        "delta.deletedFileRetentionDuration, unless that is longer already or `properties` has it. "
        "Default: 7d.",
    )


@dataclass(frozen=True)
class Maintenance:
    """The settings of one table. Times are in seconds; 0: never."""

    compact_after: int = 100
    vacuum_every: float = 86_400.0
    keep: float = 7 * 86_400.0


def resolve(*given: MaintenanceKeys | None) -> Maintenance:
    """Each key from the first section that has it, else its default."""

    def first(name: str) -> str | int | None:
        return next((v for keys in given if keys is not None and (v := getattr(keys, name)) is not None), None)

    default = Maintenance()
    compact, every, keep = first("compact_after"), first("vacuum_every"), first("keep")
    return Maintenance(
        compact_after=default.compact_after if compact is None else int(compact),
        vacuum_every=default.vacuum_every if every is None else seconds(str(every)),
        keep=default.keep if keep is None else seconds(str(keep)),
    )
