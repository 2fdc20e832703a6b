"""How Spark looks at a slice."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pyspark.sql import SparkSession

from distributary.merge.facts import _counted, facts
from distributary.merge.progress import Progress
from distributary.merge.queries import Queries

# Of decoded records, see ingest.merge_records, what is asked for.
COLUMNS = (
    "0 AS partition", "id AS offset", "'c' AS kind", "CAST(NULL AS STRUCT<code: STRING>) AS bad",
    "CAST(id AS STRING) AS pos", "id AS ts_ms", "false AS moved_in", "false AS moved_out", "true AS known",
    "false AS placeholder", "false AS carried", "false AS ends", "id AS kh", "1 AS size",
    "struct(CAST(id AS STRING) AS k0) AS k",
)  # fmt: skip


def test_records_are_not_sorted_to_be_looked_at(session: SparkSession) -> None:
    own = session.newSession()
    own.conf.set("spark.sql.maxPlanStringLength", "1000000")
    own.conf.set("spark.sql.adaptive.enabled", "false")
    looked = _counted(own.range(10).selectExpr(*COLUMNS))
    plan = looked._jdf.queryExecution().executedPlan().toString()
    assert "Aggregate" in plan
    assert "Sort" not in plan
    assert [(row["records"], row["position"]) for row in looked.collect()] == [(10, "9")]


@pytest.mark.parametrize(
    ("first", "ends"),
    [
        ("id", (0, 9)),
        ("CAST(id AS STRING)", ("0", "9")),
        ("date_add(DATE '2024-02-28', CAST(id AS INT))", (date(2024, 2, 28), date(2024, 3, 8))),
        ("CASE WHEN id > 3 THEN id END", (4, 9)),
        ("CAST(NULL AS INT)", None),
        ("CAST(id AS DOUBLE)", None),
        ("array(id)", None),
    ],
)
def test_the_ends_of_the_keys_are_told_where_files_can_be_passed_over_by_them(
    session: SparkSession, first: str, ends: tuple[Any, Any] | None
) -> None:
    records = session.range(10).selectExpr(
        *COLUMNS[1:-1], "id % 3 AS partition", f"struct({first} AS k0, 1 AS k1) AS k"
    )
    progress = Progress(commit="", sequence=1, topic="t", topic_id="", connector="sqlserver", key=("a", "b"), next={})
    assert facts(records, progress, Queries()).keys == ends
