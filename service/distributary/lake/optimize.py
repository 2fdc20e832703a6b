"""A table's files: small ones made into larger ones (OPTIMIZE), and those that are no longer part of it removed
(VACUUM).

Both are Spark's: it can do it to every table on every storage, and once in many commits its seconds do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from distributary.lake.reader_batch import read_few_rows_at_once

_SETTINGS = "spark.databricks.delta"
_SMALL = 2
"""A file is small below this part of the wanted size. Files that were compacted are above it, so that they are written
once and not again with each compaction."""

_LISTING_TASKS = 8
"""Spark would list the directory in 10,000 tasks, most of them empty, which takes minutes."""


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: the files that it made and those that they stand for, with the bytes of the latter."""

    added: int = 0
    removed: int = 0
    bytes: int = 0


def compact(session: SparkSession, path: str, size: int) -> Compacted:
    """Makes files of about `size` bytes of those that are smaller than half of it. One commit that changes no row;
    none where there is nothing to gain. Raises what Spark raises, also where another writer got in between.

    Sets the session's settings of OPTIMIZE, and how many rows it reads at once.
    """
    read_few_rows_at_once(session)  # whatever came lately, the files may have larger ones
    session.conf.set(f"{_SETTINGS}.optimize.maxFileSize", str(size))
    session.conf.set(f"{_SETTINGS}.optimize.minFileSize", str(size // _SMALL))
    told = DeltaTable.forPath(session, path).optimize().executeCompaction().select("metrics").head()
    if told is None:
        return Compacted()
    metrics = told["metrics"]
    removed = int(metrics["numFilesRemoved"])
    size_removed = int(metrics["filesRemoved"]["totalSize"]) if removed else 0
    return Compacted(int(metrics["numFilesAdded"]), removed, size_removed)


def vacuum(session: SparkSession, path: str) -> None:
    """Removes files that have not been part of the table for as long as the table itself says (see layout.Layout.keep;
    Delta's VACUUM knows no other time). Raises what Spark raises.

    Makes no commit: one a day would be a reason to keep a table's log moving that does not change.
    """
    session.conf.set(f"{_SETTINGS}.vacuum.logging.enabled", "false")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(_LISTING_TASKS))
    DeltaTable.forPath(session, path).vacuum()
