"""The keys of a slice, by their hashes: what tells how the slice is to be folded.

Sixteen bytes of each record are collected for it and counted here: to group the records by key takes Spark a shuffle of
them all, a tenth of what a snapshot's slice costs.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from distributary.merge.fold import COUNTS
from distributary.merge.queries import Queries


class SliceKeys:
    """Of decoded records (see ingest.merge_records), which are looked at when something is asked first (one Spark job).
    Two keys that share a hash are taken for one, which makes a fold slower and as right."""

    def __init__(self, records: DataFrame, queries: Queries) -> None:
        self._records = records
        self._queries = queries
        # Not by functools' cached_property: before Python 3.12 its lock is the class's, and tables would wait for one
        # another's Spark jobs.
        self._table: pa.Table | None = None

    @property
    def differ(self) -> bool:
        """Whether no two of the records that count have one key."""
        hashes = self._found().column("kh")
        return bool(pc.count_distinct(hashes, mode="all").as_py() == len(hashes))

    @property
    def largest(self) -> int:
        """How many bytes the payloads of one key have at most."""
        sizes = self._found().group_by("kh").aggregate([("size", "sum")]).column("size_sum")
        return int(pc.max(sizes).as_py() or 0)

    def _found(self) -> pa.Table:
        if self._table is None:
            self._table = self._queries.over(
                self._records,
                "keys",
                lambda rows: rows.where(COUNTS).selectExpr("kh", "CAST(size AS BIGINT) AS size"),
            ).toArrow()
        return self._table
