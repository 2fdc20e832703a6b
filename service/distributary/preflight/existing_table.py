"""What lies in the lake at a table's place, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql.types import StructType

from distributary.errors import SetupError
from distributary.lake.layout import Layout
from distributary.storage.lake_files import plain

_SETS_CLUSTERING = ("CREATE", "REPLACE", "CLUSTER BY")  # operations, by how their names begin


@dataclass(frozen=True)
class Stored:
    """A Delta table: its columns (name to Spark type), whether it has files with rows, and how it is laid out."""

    columns: Mapping[str, str]
    has_files: bool
    layout: Layout = field(default_factory=Layout)

    def of_the_source(self, service_columns: Collection[str]) -> dict[str, str]:
        """The columns without those that the service adds."""
        return {name: kind for name, kind in self.columns.items() if name not in service_columns}


def _layout(table: DeltaTable) -> Layout:
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    clustered = _clustered_by(table) if "clustering" in features else ()
    return Layout(metadata.configuration, tuple(metadata.partition_columns), clustered, features)


def _clustered_by(table: DeltaTable) -> tuple[str, ...] | None:
    """The clustering's columns, as the newest commit says that set them; None where the log has it no more. The
    library itself does not tell them."""
    for commit in table.history():
        if str(commit.get("operation")).startswith(_SETS_CLUSTERING):
            told = commit.get("operationParameters") or {}
            return tuple(_names(str(told.get("newClusteringColumns", told.get("clusterBy", "[]")))))
    return None


def _names(columns: str) -> list[str]:
    """As Delta writes them: a JSON list where a table is made, with commas between where it is altered."""
    if columns.startswith("["):
        return [str(name) for name in json.loads(columns)]
    return [name for name in columns.split(",") if name]


def stored(path: str) -> Stored | None:
    """The table at `path`; None where there is none. Raises SetupError where the storage can't be read."""
    try:
        table = DeltaTable(plain(path))
        fields = StructType.fromJson(json.loads(table.schema().to_json())).fields
        columns = {f.name: f.dataType.simpleString() for f in fields}
        return Stored(columns, bool(table.file_uris()), _layout(table))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError, KeyError) as error:
        raise SetupError(
            "lake-unreadable",
            f"the table at {path} can't be read ({type(error).__name__})",
            "check that this machine may read target.path; keys of an object store are taken from the environment",
        ) from error
