"""Limits the rows that Spark reads at once while it rewrites files, because it has all of them in memory."""

from __future__ import annotations

from pyspark.sql import SparkSession

ROWS_AT_ONCE = 64
"""With rows of 256 KB this is 16 MB; Spark's default of 4,096 rows would be 1 GB."""

_SETTING = "spark.sql.parquet.columnarReaderBatchSize"


def rows_at_once(session: SparkSession) -> int:
    """Number of rows that Spark reads at once."""
    return int(session.conf.get(_SETTING) or ROWS_AT_ONCE)


def read_few_rows_at_once(session: SparkSession) -> None:
    """Makes the session read a few rows at a time from now on."""
    session.conf.set(_SETTING, str(min(rows_at_once(session), ROWS_AT_ONCE)))
