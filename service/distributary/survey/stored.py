"""What lies in the lake at a table's place, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql.types import StructType

from distributary.errors import SetupError
from distributary.operate.records import plain


@dataclass(frozen=True)
class Stored:
    """A Delta table: its columns (name to Spark type), and whether it has files with rows."""

    columns: Mapping[str, str]
    has_files: bool

    def of_the_source(self, service_columns: Collection[str]) -> dict[str, str]:
        """The columns without those that the service adds."""
        return {name: kind for name, kind in self.columns.items() if name not in service_columns}


def stored(path: str) -> Stored | None:
    """The table at `path`; None where there is none. Raises SetupError where the storage can't be read."""
    try:
        table = DeltaTable(plain(path))
        fields = StructType.fromJson(json.loads(table.schema().to_json())).fields
        return Stored({f.name: f.dataType.simpleString() for f in fields}, bool(table.file_uris()))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError, KeyError) as error:
        raise SetupError(
            "lake-unreadable",
            f"the table at {path} can't be read ({type(error).__name__})",
            "check that this machine may read target.path; keys of an object store are taken from the environment",
        ) from error
