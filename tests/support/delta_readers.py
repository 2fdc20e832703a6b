"""Two independent readers of Delta tables; both support deletion vectors."""

from __future__ import annotations

import importlib.resources
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from tests.support.lake import read_table


def read_by_deltalake(path: Path) -> list[dict[str, Any]]:
    """All rows, by the `deltalake` package's SQL engine."""
    table = read_table(path)
    assert table is not None
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def read_by_duckdb(path: Path) -> list[dict[str, Any]]:
    """All rows, by DuckDB's Delta extension."""
    found = _connection().execute("SELECT * FROM delta_scan(?)", [str(path)]).arrow()
    rows: list[dict[str, Any]] = (found if isinstance(found, pa.Table) else found.read_all()).to_pylist()
    return rows


@lru_cache
def _connection() -> duckdb.DuckDBPyConnection:
    """With the extension from its package: DuckDB would fetch it from the network."""
    connection = duckdb.connect()
    folder = importlib.resources.files("duckdb_ext") / "extensions"
    (extension,) = Path(str(folder)).rglob("delta.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
