"""Independent readers of Delta tables: each returns a table's rows as (id, text), sorted by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import duckdb_ext
import polars
from deltalake import DeltaTable, QueryBuilder

Rows = list[tuple[Any, ...]]


def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """A DuckDB with its extension for Delta, which comes as a package: nothing is fetched."""
    connection = duckdb_ext.init(duckdb.connect())
    connection.execute("LOAD delta")
    return connection


def by_pandas(path: Path) -> Rows:
    """The deltalake library into a pandas frame, pyarrow reading the files."""
    frame = DeltaTable(path).to_pandas()
    return sorted(zip(frame["id"].tolist(), frame["text"].tolist(), strict=True))


def by_query(path: Path) -> Rows:
    """The deltalake library's own SQL."""
    found = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT id, text FROM t ORDER BY id").read_all()
    return list(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))


def by_polars(path: Path) -> Rows:
    """Polars."""
    return polars.scan_delta(str(path)).select("id", "text").sort("id").collect().rows()


def by_duckdb(path: Path) -> Rows:
    """DuckDB."""
    with duckdb_connection() as connection:
        return connection.execute(f"SELECT id, text FROM delta_scan('{path}') ORDER BY id").fetchall()


READERS: Mapping[str, Callable[[Path], Rows]] = MappingProxyType(
    {
        "deltalake, pandas: `to_pandas`, `to_pyarrow_table`": by_pandas,
        "deltalake: `QueryBuilder`": by_query,
        "Polars": by_polars,
        "DuckDB": by_duckdb,
    }
)
"""By the name that docs/reader-features.md has for them."""
