"""What the fold asks of Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from distributary.merge.fold import Folding, folded

RECORDS = (
    "k struct<k0:int>, kind string, pos string, tx string, read_id string, moved_in boolean, moved_out boolean,"
    " carried boolean, partition int, offset bigint, timestamp timestamp, ts_ms bigint, missing array<int>,"
    " row struct<c0:int>, bad struct<code:string,message:string>"
)


def test_the_walk_over_a_keys_records_stands_once_in_the_plan(session: SparkSession) -> None:
    """The optimizer would copy it into each part of the result, and into the filter over them."""
    mine = session.newSession()
    mine.conf.set("spark.sql.maxPlanStringLength", "10000000")
    frame: Any = folded(mine.createDataFrame([], RECORDS).localCheckpoint(), Folding("sqlserver"))
    assert str(frame._jdf.queryExecution().optimizedPlan()).count("aggregate(") == 1
