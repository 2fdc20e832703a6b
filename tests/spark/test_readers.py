"""The recipes for Spark in docs/read-tables.md, and the table of docs/reader-features.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.support.readers import READERS, duckdb_connection
from tests.support.recipes import reader_table, recipes

ROWS = [(1, "one"), (3, "three")]
"""What is left once row 2 is deleted: a reader that passes over deletion vectors shows it, too."""

FEATURES: Mapping[str, tuple[str, str, str]] = {
    "timestampNtz": ("at TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2026-01-02 03:04:05.123456'", ""),
    "column mapping": ("`a b` INT", "1", "'delta.columnMapping.mode' = 'name'"),
    "deletion vectors": ("n INT", "1", "'delta.enableDeletionVectors' = 'true'"),
    "type widening": ("n INT", "1", "'delta.enableTypeWidening' = 'true'"),
    "variant": ("v VARIANT", "parse_json('[1]')", ""),
}
"""For each feature a column, a value of it, and the table's properties."""


def make(session: SparkSession, path: Path, feature: str) -> None:
    """A table with the feature, in use: a row is deleted, and a column widened."""
    column, value, properties = FEATURES[feature]
    # Each table that the service makes has this feature.
    having = ", ".join(filter(None, ["'delta.feature.timestampNtz' = 'supported'", properties]))
    session.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, text STRING, {column}) USING delta TBLPROPERTIES ({having})")
    rows = ", ".join(f"({number}, '{text}', {value})" for number, text in ((1, "one"), (2, "two"), (3, "three")))
    session.sql(f"INSERT INTO delta.`{path}` VALUES {rows}")
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    if feature == "type widening":
        session.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN n TYPE BIGINT")
        session.sql(f"INSERT INTO delta.`{path}` VALUES (4, 'four', 5000000000)")
        session.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")


def answer(read: Callable[[Path], object], path: Path) -> str:
    """`yes` if the reader gives the rows, `refuses` if it raises an error, and anything else is `wrong`."""
    try:
        found = read(path)
    except Exception:  # each reader has errors of its own; that it works at all, its answers to other features say
        return "refuses"
    return "yes" if found == ROWS else "wrong"


@pytest.mark.parametrize("feature", FEATURES)
def test_readers_know_the_features_that_the_page_says(session: SparkSession, tmp_path: Path, feature: str) -> None:
    path = tmp_path / "table"
    make(session, path, feature)
    page = reader_table()
    by_spark = [tuple(row) for row in session.sql(f"SELECT id, text FROM delta.`{path}` ORDER BY id").collect()]
    assert by_spark == ROWS
    assert page["Spark with Delta 4.4"][feature] == "yes"
    assert {name: answer(read, path) for name, read in READERS.items()} == {
        name: page[name][feature] for name in READERS
    }


def test_a_variant_is_raw_bytes_to_deltalake_and_not_read_by_duckdb(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    make(session, path, "variant")
    assert [set(value) for value in DeltaTable(path).to_pyarrow_table()["v"].to_pylist()] == [{"metadata", "value"}] * 2
    with duckdb_connection() as connection, pytest.raises(duckdb.Error):
        connection.execute(f"SELECT v FROM delta_scan('{path}')").fetchall()


def test_the_recipes_for_spark(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "lake/dbo/customers"
    session.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, name STRING, created_at TIMESTAMP_NTZ, __deleted BOOLEAN) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'Ada', NULL, false), (2, 'Grace', NULL, true)")
    texts = recipes(tmp_path / "lake")
    assert session.sql(texts["spark"]).count() == 2
    assert session.sql(texts["spark-version"]).count() == 0
    session.sql(f"SELECT * FROM delta.`{path}`").createOrReplaceTempView("customers")
    session.sql(texts["spark-view"])
    assert [row.id for row in session.sql("SELECT * FROM current_customers").collect()] == [1]
    changes = session.sql(texts["spark-changes"]).collect()
    assert {(row.id, row["_change_type"]) for row in changes} == {(1, "insert"), (2, "insert")}
