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
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from distributary.launch.classes import frame_of, java_class

_KEPT = 16
"""Plans. A table asks up to seven of large slices and three of small ones, and others while its columns or its
source's records change."""

_ADAPTS = "spark.sql.adaptive.enabled"
_BROUGHT_TOGETHER = "spark.sql.shuffle.partitions"
# What a plan was made by beside.
_PLANNED_BY = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")


@dataclass(frozen=True)
class _By:
    """What a plan was made by beside the question: the rows' schema, the session's settings; `alone`: the rows are one
    task's, so that nothing has to be brought together."""

    schema: str
    settings: tuple[str, ...]
    alone: bool


@dataclass(frozen=True)
class _Made:
    """A plan over a leaf without rows. `about` is the question; `leaf_over` makes the same leaf over an RDD's rows,
    `says` is the schema of what comes out, `settings` are the session's."""

    about: object
    by: _By
    leaf: Any
    leaf_over: Callable[[Any], Any]
    plan: Any
    says: Any
    settings: Any


class Queries:
    """What one table asks of its slices."""

    def __init__(self) -> None:
        self._made: list[_Made] = []

    def over(self, rows: DataFrame, about: object, make: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """`make(rows)`, planned anew only for another `about` than lately, or rows of another schema.

        `make` may depend on nothing but `about`, which is compared by `==` (so not on a mapping's order), and on the
        columns of what it is given; it must run no query, as what it is given has no rows, and join nothing. The
        session's settings are all the same for all slices, but for those of LakeTable.suit.
        """
        schema, rdd, settings = rows._jdf.schema(), _rdd_of(rows), rows.sparkSession.conf
        together = str(settings.get(_BROUGHT_TOGETHER))
        by = _By(
            schema.json(),
            (together, *(str(settings.get(key)) for key in _PLANNED_BY)),
            together == "1" and rdd.getNumPartitions() == 1,
        )
        made = next((one for one in self._made if one.by == by and one.about == about), None)
        if made is None:
            with _as_it_is(rows.sparkSession):
                made = _planned(rows.sparkSession, schema, about, by, make)
        self._made = [made, *(one for one in self._made if one is not made)][:_KEPT]
        return _run_over(rows.sparkSession, rdd, made)


@dataclass(frozen=True)
class Query:
    """Rows and what is asked of them, one question after the other; they are planned as one when it has to be said."""

    queries: Queries
    rows: DataFrame
    about: tuple[object, ...] = ()
    make: Callable[[DataFrame], DataFrame] = lambda rows: rows

    def then(self, about: object, make: Callable[[DataFrame], DataFrame]) -> Query:
        """One question more, of what the ones before say; see Queries.over."""
        return replace(self, about=(*self.about, about), make=lambda rows: make(self.make(rows)))

    def frame(self) -> DataFrame:
        """What comes out."""
        return self.queries.over(self.rows, self.about, self.make) if self.about else self.rows


@contextmanager
def _as_it_is(session: SparkSession) -> Iterator[None]:
    """Plans that are made in here are final."""
    before = session.conf.get(_ADAPTS)
    session.conf.set(_ADAPTS, "false")
    try:
        yield
    finally:
        session.conf.set(_ADAPTS, str(before))


def _planned(
    session: SparkSession, schema: Any, about: object, by: _By, make: Callable[[DataFrame], DataFrame]
) -> _Made:
    # Of rows that are known to be none Spark would plan nothing.
    none = frame_of(session, session.sparkContext._jsc.emptyRDD().rdd(), schema)
    execution = make(none.coalesce(1) if by.alone else none)._jdf.queryExecution()
    plan = execution.executedPlan()
    [leaf] = _items(plan.collectLeaves())
    output, rest = leaf.output(), (leaf.name(), leaf.outputPartitioning(), leaf.outputOrdering(), leaf.stream())
    settings = session._jsparkSession.sessionState().conf()
    says = execution.analyzed().schema()
    return _Made(about, by, leaf, lambda rdd: leaf.copy(output, rdd, *rest), plan, says, settings)


def _run_over(session: SparkSession, rdd: Any, made: _Made) -> DataFrame:
    """What the final plan makes of the rows."""
    # The nodes of a plan keep the session that is active while they are made.
    java_class(session, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)
    # A Map is a partial function too: the plan's nodes that are in it are replaced.
    by_leaf = java_class(session, "scala.collection.immutable.Map$Map1")(made.leaf, made.leaf_over(rdd))
    said = made.plan.transform(by_leaf).execute()
    with_settings = java_class(session, "org.apache.spark.sql.execution.SQLExecutionRDD")(said, made.settings)
    return frame_of(session, with_settings, made.says)


def _rdd_of(rows: DataFrame) -> Any:
    """The rows as Spark has them. Those that it has already, because they were kept (see kept.kept) or are what another
    query says, are not planned once more, nor copied."""
    execution = rows._jdf.queryExecution()
    logical = execution.logical()
    return logical.rdd() if logical.nodeName() == "LogicalRDD" else execution.toRdd()


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
