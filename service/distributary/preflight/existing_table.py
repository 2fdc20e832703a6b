"""The Delta table that exists at a table's path, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql.types import StructField, StructType

from distributary.errors import SetupError
from distributary.lake.layout import Layout
from distributary.storage.lake_files import plain

_TYPE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Spark's names of Delta's types that have others."""
_SETS_CLUSTERING = ("CREATE", "REPLACE", "CLUSTER BY")  # prefixes of operation names


@dataclass(frozen=True)
class ExistingTable:
    """A Delta table: its columns (name to Spark type), whether it has data files, its layout, and the types that
    widened columns had before (see widened_columns)."""

    columns: Mapping[str, str]
    has_files: bool
    layout: Layout = field(default_factory=Layout)
    widened: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_the_source(self, service_columns: Collection[str]) -> dict[str, str]:
        """The columns without those that the service adds."""
        return {name: kind for name, kind in self.columns.items() if name not in service_columns}


def _layout(table: DeltaTable) -> Layout:
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    clustered = _clustered_by(table) if "clustering" in features else ()
    return Layout(metadata.configuration, tuple(metadata.partition_columns), clustered, features)


def _clustered_by(table: DeltaTable) -> tuple[str, ...] | None:
    """The clustering columns, from the newest commit that set them; None if the log no longer has it. The library has
    no call for them."""
    for commit in table.history():
        if str(commit.get("operation")).startswith(_SETS_CLUSTERING):
            parameters = commit.get("operationParameters") or {}
            return tuple(_names(str(parameters.get("newClusteringColumns", parameters.get("clusterBy", "[]")))))
    return None


def _names(columns: str) -> list[str]:
    """Column names as Delta logs them: a JSON list when a table is created, comma-separated when it is altered."""
    if columns.startswith("["):
        return [str(name) for name in json.loads(columns)]
    return [name for name in columns.split(",") if name]


def widened_columns(fields: Iterable[StructField]) -> dict[str, tuple[str, ...]]:
    """The types that widened columns had, the first one first. Delta has them in the metadata of the columns."""
    changes = {one.name: one.metadata.get("delta.typeChanges") or () for one in fields}
    return {
        name: tuple(
            _TYPE_NAMES.get(change["fromType"], change["fromType"]) for change in found if "fieldPath" not in change
        )
        for name, found in changes.items()
        if any("fieldPath" not in change for change in found)
    }


def read_existing_table(path: str) -> ExistingTable | None:
    """The table at `path`; None if there is none. Raises SetupError if the storage can't be read."""
    try:
        table = DeltaTable(plain(path))
        fields = StructType.fromJson(json.loads(table.schema().to_json())).fields
        columns = {f.name: f.dataType.simpleString() for f in fields}
        return ExistingTable(columns, bool(table.file_uris()), _layout(table), widened_columns(fields))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError, KeyError) as error:
        raise SetupError(
            "lake-unreadable",
            f"the table at {path} can't be read ({type(error).__name__})",
            "check that this machine may read target.path; keys of an object store are taken from the environment",
        ) from error
