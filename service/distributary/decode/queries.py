"""Queries that are made once and put over the rows of one slice after another.

To analyse and plan what decodes and folds a slice takes Spark longer than to run it over a few hundred records: each
step of a DataFrame is resolved and checked by itself, and the whole is rewritten by a hundred rules. What a slice is
asked depends on the table, not on the slice, so that the plan that came out of it once is kept, over no rows; for the
next slice its one leaf is replaced.

It is the plan that runs, so Spark does not adapt it to what comes. There is little to adapt: nothing is joined, and the
tasks that bring records together are as many as the config says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_KEPT = 16
"""Plans. A table asks up to seven of large slices and four of small ones, and others while its columns or its source's
records change."""

_EXECUTION = "org.apache.spark.sql.execution"
_ADAPTS = "spark.sql.adaptive.enabled"
# What a plan was made by beside.
_PLANNED_BY = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", "spark.sql.shuffle.partitions")


@dataclass(frozen=True)
class _Made:
    """A plan over a leaf without rows, for rows of one schema, by those settings; `about` is all else that it was made
    from, `says` is the schema of what comes out."""

    about: object
    schema: str
    by: tuple[str, ...]
    leaf: Any
    plan: Any
    says: Any


class Queries:
    """What one table asks of its slices."""

    def __init__(self) -> None:
        self._made: list[_Made] = []

    def over(self, rows: DataFrame, about: object, make: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """`make(rows)`, planned anew only for another `about` than lately, or rows of another schema.

        `make` may depend on nothing but `about`, which is compared by `==`, and on the columns of what it is given; it
        must run no query, as what it is given has no rows, and join nothing. The session's settings are all the same
        for all slices, but for those of LakeTable.suit.
        """
        schema = rows._jdf.schema()
        text, settings = schema.json(), rows.sparkSession.conf
        by = tuple(str(settings.get(key)) for key in _PLANNED_BY)
        made = next((one for one in self._made if one.schema == text and one.by == by and one.about == about), None)
        if made is None:
            with _as_it_is(rows.sparkSession):
                made = _Made(about, text, by, *_planned(rows.sparkSession, schema, make))
        self._made = [made, *(one for one in self._made if one is not made)][:_KEPT]
        return _run_over(rows, made)


@contextmanager
def _as_it_is(session: SparkSession) -> Iterator[None]:
    """Plans that are made in here are final."""
    before = session.conf.get(_ADAPTS)
    session.conf.set(_ADAPTS, "false")
    try:
        yield
    finally:
        session.conf.set(_ADAPTS, str(before))


def _planned(session: SparkSession, schema: Any, make: Callable[[DataFrame], DataFrame]) -> tuple[Any, Any, Any]:
    """The leaf, the plan, and the schema of what it says."""
    # Of rows that are known to be none Spark would plan nothing.
    made = make(_of_rdd(session, session.sparkContext._jsc.emptyRDD().rdd(), schema))
    execution = made._jdf.queryExecution()
    plan = execution.executedPlan()
    [leaf] = _items(plan.collectLeaves())
    return leaf, plan, execution.analyzed().schema()


def _run_over(rows: DataFrame, made: _Made) -> DataFrame:
    """What the final plan makes of the rows."""
    session = rows.sparkSession
    jvm: Any = session._jvm
    old = made.leaf
    # The nodes of a plan keep the session that is active while they are made.
    _named(jvm, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)
    leaf = old.copy(
        old.output(), _rdd_of(rows), old.name(), old.outputPartitioning(), old.outputOrdering(), old.stream()
    )
    # A Map is a partial function too: the plan's nodes that are in it are replaced.
    by_leaf = getattr(_named(jvm, "scala.collection.immutable.Map$"), "MODULE$").empty().updated(old, leaf)
    settings = session._jsparkSession.sessionState().conf()
    found = _named(jvm, f"{_EXECUTION}.SQLExecutionRDD")(made.plan.transform(by_leaf).execute(), settings)
    return _of_rdd(session, found, made.says)


def _rdd_of(rows: DataFrame) -> Any:
    """The rows as Spark has them. Those that it has already, because they were kept (see kept.kept) or are what another
    query says, are not planned once more, nor copied."""
    execution = rows._jdf.queryExecution()
    logical = execution.logical()
    return logical.rdd() if logical.nodeName() == "LogicalRDD" else execution.toRdd()


def _of_rdd(session: SparkSession, rdd: Any, schema: Any) -> DataFrame:
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rdd, schema, False), session)


def _named(jvm: Any, name: str) -> Any:
    """A class. Asked for by its whole name: step by step py4j looks for a class of each package's name in all jars."""
    return getattr(jvm, name)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
