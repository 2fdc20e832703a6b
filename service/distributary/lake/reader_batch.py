"""How many rows Spark reads at once while it rewrites files: it has a whole batch of them in memory, however large."""

from __future__ import annotations

from pyspark.sql import SparkSession

ROWS_AT_ONCE = 64
"""Rows of 256 KB are 16 MB then, where Spark's own 4,096 would be 1 GB."""

_SETTING = "spark.sql.parquet.columnarReaderBatchSize"


def rows_at_once(session: SparkSession) -> int:
    """How many rows of a file Spark reads at once."""
    return int(session.conf.get(_SETTING) or ROWS_AT_ONCE)


def read_few_rows_at_once(session: SparkSession) -> None:
    """From here on the session reads files a few rows at a time."""
    session.conf.set(_SETTING, str(min(rows_at_once(session), ROWS_AT_ONCE)))
