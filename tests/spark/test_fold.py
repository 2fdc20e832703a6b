"""What the fold asks of Spark."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

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


def records(session: SparkSession, keys: list[int], kinds: str, *, bad: int | None = None) -> DataFrame:
    """One record for each of the keys; `bad` is the place of one that does not count."""
    some = random.Random(3)
    rows = []
    for place, key in enumerate(keys):
        kind = some.choice(kinds)
        moved = some.random() < 0.3
        rows.append((
            (key,), kind, None if kind == "x" else f"000:{some.randrange(99):02d}", some.choice(["t1", "t2", None]),
            f"read {place}" if kind == "r" else None, moved and kind == "c", moved and kind == "d", some.random() < 0.2,
            some.randrange(2), place, datetime(2024, 1, 1, tzinfo=timezone.utc), 1_700_000_000_000 + place, None,
            None if kind in "dx" else (some.randrange(1000),), ("not-json", "it is none") if place == bad else None,
        ))  # fmt: skip
    return session.createDataFrame(rows, RECORDS)


@pytest.mark.parametrize("keeps_deleted", [False, True])
@pytest.mark.parametrize("truncated", [None, "000:50"])
@pytest.mark.parametrize("connector", ["sqlserver", "postgresql", "mysql"])
def test_keys_that_differ_are_folded_to_the_same(
    session: SparkSession, connector: str, truncated: str | None, keeps_deleted: bool
) -> None:
    came = records(session, list(range(300)), "curdx" if truncated is None else "curd").localCheckpoint()
    folding = Folding(connector, truncated, keeps_deleted=keeps_deleted)
    together, apart = (folded(came, one) for one in (folding, replace(folding, apart=True)))
    assert together.dtypes == apart.dtypes
    assert sorted(together.collect(), key=str) == sorted(apart.collect(), key=str)
    assert together.count() > 100
