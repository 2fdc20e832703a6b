"""How many rows of a table's files a task reads at once: by how large they are.

Spark's 4,096 are nothing for ordinary rows; of rows of 1 MB they would be more than all of Java's memory.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

UNKNOWN_ROW = 256 * 1024
"""Bytes to reckon with for a row where nobody knows how large they are, and nothing is lost by caution."""
_BYTES_AT_ONCE = 16 * 1024 * 1024
_SETTING = "spark.sql.parquet.columnarReaderBatchSize"


def most_rows(session: SparkSession) -> int:
    """The most rows that may be read at once, as the session says by now."""
    return int(session.conf.get(_SETTING) or 0)


def rows_at_once(most: int, row_bytes: float) -> int:
    """How many rows of about so many bytes are to be read at once; `most` where their size is no matter."""
    return max(1, min(most, int(_BYTES_AT_ONCE / row_bytes))) if row_bytes else most


def expect_rows_of(session: SparkSession, row_bytes: float, most: int | None = None) -> None:
    """From now on the session reads rows of about so many bytes; `most` rows at once, where not as many as by now."""
    session.conf.set(_SETTING, str(rows_at_once(most_rows(session) if most is None else most, row_bytes)))
