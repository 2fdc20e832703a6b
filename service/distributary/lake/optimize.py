"""Spark's OPTIMIZE, which compacts clustered tables, and its VACUUM, which removes unused files of all tables. Other
tables are compacted by delta/compaction.py and TableWriter.compact.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from distributary.lake.reader_batch import read_few_rows_at_once

_SETTINGS = "spark.databricks.delta"
_SMALL = 2
"""A file is small below the wanted size divided by this. Compacted files are larger, so they are not rewritten by the
next compaction."""

_LISTING_TASKS = 8
"""By default Spark lists the directory in 10,000 tasks, most of them empty, which takes minutes."""


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction: the numbers of new and of replaced files, and the bytes of the replaced files."""

    added: int = 0
    removed: int = 0
    bytes: int = 0


def compact(session: SparkSession, path: str, size: int) -> Compacted:
    """Rewrites files smaller than half of `size` bytes as files of about `size`. One commit that changes no row, or
    none. Raises errors of Spark, also if another writer commits at the same time.

    Changes the session's settings for OPTIMIZE and the number of rows per read.
    """
    read_few_rows_at_once(session)  # the files may have large rows
    session.conf.set(f"{_SETTINGS}.optimize.maxFileSize", str(size))
    session.conf.set(f"{_SETTINGS}.optimize.minFileSize", str(size // _SMALL))
    result = DeltaTable.forPath(session, path).optimize().executeCompaction().select("metrics").head()
    if result is None:
        return Compacted()
    metrics = result["metrics"]
    removed = int(metrics["numFilesRemoved"])
    size_removed = int(metrics["filesRemoved"]["totalSize"]) if removed else 0
    return Compacted(int(metrics["numFilesAdded"]), removed, size_removed)


def vacuum(session: SparkSession, path: str) -> None:
    """Removes files that have not been part of the table for its own retention time (see layout.Layout.keep; Delta's
    VACUUM uses no other). Raises errors of Spark.

    Makes no commit, so that the log of an unchanged table does not grow.
    """
    session.conf.set(f"{_SETTINGS}.vacuum.logging.enabled", "false")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(_LISTING_TASKS))
    DeltaTable.forPath(session, path).vacuum()
