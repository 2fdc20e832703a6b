"""How a Delta table is kept beside its columns: its properties, and by which columns its files are laid out.

Pure: what a table has is given, and what has to be done about it comes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from distributary.config.delta_properties import interval, interval_seconds, lacking
from distributary.config.maintenance import Maintenance
from distributary.config.table import TableSettings
from distributary.errors import TableHalt

_CLUSTERING = "clustering"
_REBUILD = "`distributary resume -c FILE TABLE --rebuild` fills it again, with these partitions"
_FROM_CLUSTERS = (
    "Delta parts no table that was ever clustered: take partition_by out, or delete the table's directory to have it"
    " filled again from the start of its topic"
)


FILES_KEPT = "delta.deletedFileRetentionDuration"
"""How long a file that left the table stays, and the log's note of it (a tombstone), by which VACUUM knows when it
left; a week where a table does not say it."""


@dataclass(frozen=True)
class Layout:
    """What the config wants, or what a table has: then `features` are those of its protocol, and a `cluster_by` of None
    says that its clustering is not known. `keep`: for how many seconds files stay that left the table."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] | None = ()
    features: Collection[str] = ()
    keep: float = Maintenance.keep

    @property
    def says_nothing(self) -> bool:
        """Whether any table will do."""
        return not (self.properties or self.partition_by or self.cluster_by or self.keeps_longer)

    @property
    def keeps_longer(self) -> bool:
        """Whether files stay longer than in a table that says nothing of it, and no property tells for how long."""
        return _files_kept(self.properties) is None and self.keep > Maintenance.keep

    @property
    def at_first(self) -> Mapping[str, str]:
        """The properties of a table that is made."""
        return {**self.properties, **({FILES_KEPT: interval(self.keep)} if self.keeps_longer else {})}


@dataclass(frozen=True)
class LayoutChanges:
    """What a table that is there lacks: properties to be set, other columns to be clustered by (None for no change).
    `partitions`: it is parted otherwise than wanted, and this is the way to change it; None where it is not."""

    properties: Mapping[str, str]
    cluster_by: tuple[str, ...] | None
    partitions: str | None

    def __bool__(self) -> bool:
        return bool(self.properties or self.cluster_by)


def wanted_layout(settings: TableSettings) -> Layout:
    """What the config wants of a table."""
    keep = settings.maintenance.keep
    return Layout(settings.properties, settings.partition_by, settings.cluster_by, keep=keep)


def changes(wanted: Layout, has: Layout) -> LayoutChanges:
    """What has to become of a table that is there. Where the config says nothing the table may have anything.

    A table with partitions can't be clustered, so that this too waits until it is filled again.
    """
    parted = bool(wanted.partition_by) and wanted.partition_by != has.partition_by
    parted = parted or bool(wanted.cluster_by and has.partition_by)
    other = wanted.cluster_by and has.cluster_by is not None and wanted.cluster_by != has.cluster_by
    clustered = wanted.cluster_by if other and not has.partition_by else None
    way_out = _FROM_CLUSTERS if wanted.partition_by and _CLUSTERING in has.features else _REBUILD
    lacks = lacking(wanted.at_first, has.properties, has.features)
    if wanted.keeps_longer and not _is_shorter(has.properties, wanted.keep):
        lacks.pop(FILES_KEPT, None)
    return LayoutChanges(lacks, clustered, way_out if parted else None)


def _is_shorter(properties: Mapping[str, str], keep: float) -> bool:
    """Whether files stay less long than `keep`, as far as that can be told: somebody may have said more."""
    said = _files_kept(properties)
    kept = Maintenance.keep if said is None else interval_seconds(said)
    return kept is not None and kept < keep


def _files_kept(properties: Mapping[str, str]) -> str | None:
    return next((value for name, value in properties.items() if name.lower() == FILES_KEPT.lower()), None)


def check_layout(wanted: Layout, columns: Collection[str], path: str) -> None:
    """Raises TableHalt where a column is named that the table does not have."""
    for key, names in (("partition_by", wanted.partition_by), ("cluster_by", wanted.cluster_by or ())):
        if lost := [name for name in names if name not in columns]:
            raise TableHalt(
                "layout-column-unknown",
                f"`{key}` names {', '.join(lost)}, and the table at {path} has no such column",
                "spell it as the table does; a column that is excluded or has no value yet can't be named",
            )


def refused(wanted: Mapping[str, str], columns: Sequence[str], condition: str) -> TableHalt:
    """The halt of a table that Delta won't have like that. `condition` is Delta's name of the reason."""
    asked = ", ".join([*wanted, *columns])
    return TableHalt(
        "layout-refused",
        f"Delta refuses the table's properties or its layout ({asked}): {condition}",
        "mend `properties`, `partition_by` or `cluster_by` in the config; Delta's documentation explains the reason",
    )
