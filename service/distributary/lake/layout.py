"""A Delta table's properties, partitions and clustering: the difference between the config and the table. Pure."""

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
    "Delta cannot partition a table that has ever been clustered: remove partition_by, or delete the table's directory"
    " so that it is filled again from the start of its topic"
)


FILES_KEPT = "delta.deletedFileRetentionDuration"
"""How long VACUUM keeps a removed file, and the log its tombstone with the time of the removal. Delta's default is a
week."""


@dataclass(frozen=True)
class Layout:
    """The layout that the config wants, or that a table has. `features`: those of the table's protocol. `cluster_by`:
    None if the table's clustering is unknown. `keep`: seconds for which removed files are kept."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] | None = ()
    features: Collection[str] = ()
    keep: float = Maintenance.keep

    @property
    def is_empty(self) -> bool:
        """Whether the config sets nothing, so that any layout fits."""
        return not (self.properties or self.partition_by or self.cluster_by or self.keeps_longer)

    @property
    def keeps_longer(self) -> bool:
        """Whether removed files are to be kept longer than by default, and no property sets the time."""
        return _files_kept(self.properties) is None and self.keep > Maintenance.keep

    @property
    def initial_properties(self) -> Mapping[str, str]:
        """The properties of a new table."""
        return {**self.properties, **({FILES_KEPT: interval(self.keep)} if self.keeps_longer else {})}


@dataclass(frozen=True)
class LayoutChanges:
    """The changes that an existing table needs: properties to set, and columns to cluster by (None for no change).
    `partitions`: how to change its partitions, if they are not the wanted ones; else None."""

    properties: Mapping[str, str]
    cluster_by: tuple[str, ...] | None
    partitions: str | None

    def __bool__(self) -> bool:
        return bool(self.properties or self.cluster_by)


def wanted_layout(settings: TableSettings) -> Layout:
    """The layout that the config wants for a table."""
    keep = settings.maintenance.keep
    return Layout(settings.properties, settings.partition_by, settings.cluster_by, keep=keep)


def changes(wanted: Layout, has: Layout) -> LayoutChanges:
    """The changes that an existing table needs. Settings that the config does not have are left unchanged.

    A table with partitions can't be clustered before it is filled again.
    """
    parted = bool(wanted.partition_by) and wanted.partition_by != has.partition_by
    parted = parted or bool(wanted.cluster_by and has.partition_by)
    other = wanted.cluster_by and has.cluster_by is not None and wanted.cluster_by != has.cluster_by
    clustered = wanted.cluster_by if other and not has.partition_by else None
    way_out = _FROM_CLUSTERS if wanted.partition_by and _CLUSTERING in has.features else _REBUILD
    properties = lacking(wanted.initial_properties, has.properties, has.features)
    if wanted.keeps_longer and not _is_shorter(has.properties, wanted.keep):
        properties.pop(FILES_KEPT, None)
    return LayoutChanges(properties, clustered, way_out if parted else None)


def _is_shorter(properties: Mapping[str, str], keep: float) -> bool:
    """Whether the table keeps removed files for less than `keep`. False if its setting can't be read."""
    interval = _files_kept(properties)
    seconds = Maintenance.keep if interval is None else interval_seconds(interval)
    return seconds is not None and seconds < keep


def _files_kept(properties: Mapping[str, str]) -> str | None:
    return next((value for name, value in properties.items() if name.lower() == FILES_KEPT.lower()), None)


def check_layout(wanted: Layout, columns: Collection[str], path: str) -> None:
    """Raises TableHalt if a layout column does not exist in the table."""
    for key, names in (("partition_by", wanted.partition_by), ("cluster_by", wanted.cluster_by or ())):
        if lost := [name for name in names if name not in columns]:
            raise TableHalt(
                "layout-column-unknown",
                f"`{key}` names {', '.join(lost)}, and the table at {path} has no such column",
                "use the column's name in the table; excluded columns and columns without any value are not allowed",
            )


def refused(wanted: Mapping[str, str], columns: Sequence[str], condition: str) -> TableHalt:
    """The halt of a table whose layout Delta refuses. `condition`: Delta's name of the reason."""
    asked = ", ".join([*wanted, *columns])
    return TableHalt(
        "layout-refused",
        f"Delta refuses the table's properties or its layout ({asked}): {condition}",
        "correct `properties`, `partition_by` or `cluster_by` in the config; Delta's documentation explains the reason",
    )
