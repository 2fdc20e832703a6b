"""How Spark looks at a slice."""

from __future__ import annotations

from pyspark.sql import SparkSession

from distributary.merge.facts import _counted

# Of decoded records, see records.decoded, what is asked for.
COLUMNS = (
    "0 AS partition", "id AS offset", "'c' AS kind", "CAST(NULL AS STRING) AS bad", "CAST(id AS STRING) AS pos",
    "id AS ts_ms", "false AS moved_in", "false AS moved_out", "true AS known", "false AS placeholder",
    "false AS carried", "false AS ends", "id AS kh", "1 AS size",
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
