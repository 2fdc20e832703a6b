"""Reads the lake's tables with an independent reader, the `deltalake` package."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError


def read_table(place: Path) -> pa.Table | None:
    """All rows and columns of the Delta table at `place`; None where there is no table.

    Through the package's query engine: its other way to read refuses tables whose columns have names that Parquet
    can't hold.
    """
    try:
        table = DeltaTable(str(place))
    except TableNotFoundError:
        return None
    return pa.table(QueryBuilder().register("lake", table).execute("SELECT * FROM lake").read_all())
