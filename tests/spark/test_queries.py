"""A query that was made over no rows and put over others says what it would have said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary.merge.queries import Queries, Query, _rdd_of
from distributary.merge.table import SMALL_SETTINGS


@pytest.fixture(name="session", params=[{}, SMALL_SETTINGS], ids=["large", "small"])
def suited(session: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """A session as it is for large slices, and for small ones."""
    own = session.newSession()
    for key, value in request.param.items():
        own.conf.set(key, value)
    return own


def asked(rows: DataFrame) -> DataFrame:
    """Steps, functions over arrays, and a group by a struct."""
    cut = rows.select("*", F.expr("split(text, ',')").alias("parts"))
    told = cut.select("n", F.expr("transform(parts, p_ -> upper(p_))").alias("parts"), F.struct("n", "text").alias("k"))
    return told.where("n > 0").groupBy("k").agg(F.max("n").alias("most"), F.collect_list("parts").alias("parts"))


def frame(session: SparkSession, *texts: str, first: int = 1) -> DataFrame:
    return session.createDataFrame([(first + i, text) for i, text in enumerate(texts)], "n INT, text STRING")


@pytest.mark.parametrize(
    "kept",
    [
        lambda rows: rows,
        lambda rows: rows.localCheckpoint(),
        lambda rows: Queries().over(rows, "all", lambda none: none.select("*")),
    ],
    ids=["as it is", "kept", "what another query says"],
)
def test_one_plan_is_put_over_slice_after_slice(session: SparkSession, kept: Callable[[DataFrame], DataFrame]) -> None:
    queries, made = Queries(), []

    def make(rows: DataFrame) -> DataFrame:
        made.append(rows.count())
        return asked(rows)

    for texts in (("a,b", "c"), (), ("d",), ("e", "e", "f,g")):
        rows = kept(frame(session, *texts))
        said = queries.over(rows, "asked", make)
        assert sorted(said.collect()) == sorted(asked(rows).collect())
        assert said.schema == asked(rows).schema
    assert made == [0]


def test_what_spark_has_already_is_not_planned_again(session: SparkSession) -> None:
    rows = frame(session, "a")
    for there in (rows.localCheckpoint(), Queries().over(rows, "all", lambda none: none.select("*"))):
        assert _rdd_of(there).id() == there._jdf.queryExecution().logical().rdd().id()
        assert _rdd_of(there.select("n")).id() != _rdd_of(there).id()


def test_two_slices_stand_side_by_side(session: SparkSession) -> None:
    queries = Queries()
    one, other = (queries.over(frame(session, text, first=n), "asked", asked) for n, text in ((1, "a"), (2, "b")))
    assert [row["most"] for row in one.collect()] == [1]
    assert sorted(row["most"] for row in one.unionByName(other).collect()) == [1, 2]
    assert one.alias("a").join(other.alias("b"), F.expr("a.most = b.most - 1")).count() == 1


def test_another_schema_or_question_is_planned_anew(session: SparkSession) -> None:
    queries = Queries()

    def limited(rows: DataFrame, about: Any) -> list[Any]:
        return [row[0] for row in queries.over(rows, about, lambda given: given.where(f"n < {about['n']}")).collect()]

    rows = frame(session, "a", "b", "c")
    assert limited(rows, {"n": 2}) == [1]
    assert limited(rows, {"n": 3}) == [1, 2]
    assert limited(rows.selectExpr("text", "CAST(n AS BIGINT) AS n"), {"n": 3}) == ["a", "b"]
    assert limited(rows, {"n": 2}) == [1]


def test_what_is_kept_holds_no_slice(session: SparkSession) -> None:
    queries = Queries()
    rows = frame(session, "only in this slice")
    queries.over(rows, "asked", asked).collect()
    [made] = queries._made
    assert made.plan.collectLeaves().size() == 1
    leaf = made.plan.collectLeaves().apply(0)
    assert leaf.rdd().isEmpty()
    for about in range(50):
        queries.over(rows, about, lambda given: given)
    assert len(queries._made) < 20


def test_plans_of_small_slices_run_over_no_large_ones(session: SparkSession) -> None:
    queries = Queries()
    for partitions in ("1", "3"):
        session.conf.set("spark.sql.shuffle.partitions", partitions)
        for text in ("a", "b"):
            assert queries.over(frame(session, text), "asked", asked).rdd.getNumPartitions() == int(partitions)
    assert len(queries._made) == 2


@pytest.mark.parametrize("adapts", ["true", "false"])
def test_the_session_adapts_its_other_plans_as_before(session: SparkSession, adapts: str) -> None:
    session.conf.set("spark.sql.adaptive.enabled", adapts)
    Queries().over(frame(session, "a"), "asked", asked).collect()
    assert session.conf.get("spark.sql.adaptive.enabled") == adapts
    with pytest.raises(ZeroDivisionError):
        Queries().over(frame(session, "a"), "asked", lambda rows: rows.limit(1 // 0))
    assert session.conf.get("spark.sql.adaptive.enabled") == adapts


def test_questions_that_follow_one_another_are_one_plan(session: SparkSession) -> None:
    queries = Queries()
    for text in ("a,b", "c"):
        rows = frame(session, text)
        first = Query(queries, rows).then("asked", asked)
        then = first.then("how many", lambda said: said.select("k", F.size("parts").alias("many")))
        assert then.frame().collect() == asked(rows).selectExpr("k", "size(parts) AS many").collect()
        assert Query(queries, rows).frame() is rows
    assert [made.about for made in queries._made] == [("asked", "how many")]
    assert sorted(first.frame().collect()) == sorted(asked(rows).collect())


@pytest.mark.parametrize(("tasks", "brought_together"), [(1, False), (2, True)])
def test_rows_of_one_task_are_not_brought_together(session: SparkSession, tasks: int, brought_together: bool) -> None:
    session.conf.set("spark.sql.shuffle.partitions", "1")
    queries = Queries()
    rows = frame(session, "a", "b").repartition(tasks).localCheckpoint()
    assert sorted(queries.over(rows, "asked", asked).collect()) == sorted(asked(rows).collect())
    assert ("Exchange" in queries._made[0].plan.toString()) is brought_together
