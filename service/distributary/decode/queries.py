"""Queries that are made once and put over the rows of one slice after another.

To analyse and plan what decodes and folds a slice takes Spark longer than to run it over a few hundred records: each
step of a DataFrame is resolved and checked by itself, and the whole is rewritten by a hundred rules. What a slice is
asked depends on the table, not on the slice, so that the plan that came out of it once is kept, over no rows; for the
next slice its one leaf is replaced.

For small slices that is the plan that runs. Where Spark adapts plans while they run, as it does for large ones, what
is kept is the analysed plan, and Spark plans it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_KEPT = 12
"""Plans. A table asks five of slices of one size, and others while its columns or its source's records change."""

_CATALYST = "org.apache.spark.sql.catalyst"
_EXECUTION = "org.apache.spark.sql.execution"
_ADAPTS = "spark.sql.adaptive.enabled"
# What a final plan was made by beside; of large slices, too, where the config has Spark not adapt plans.
_PLANNED_BY = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", "spark.sql.shuffle.partitions")


@dataclass(frozen=True)
class _Made:
    """A plan over a leaf without rows, for rows of one schema; `about` is all else that it was made from.

    `by`: it is the plan that runs, planned by these settings, and `says` is the schema of what comes out. Else it is
    the analysed one, and `columns` are the leaf's: name, id, qualifier and metadata, by which the plan knows them.
    """

    about: object
    schema: str
    leaf: Any
    plan: Any
    by: tuple[str, ...] | None
    says: Any = None
    columns: tuple[tuple[str, Any, Any, Any], ...] = ()


class Queries:
    """What one table asks of its slices."""

    def __init__(self) -> None:
        self._made: list[_Made] = []

    def over(self, rows: DataFrame, about: object, make: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """`make(rows)`, planned or analysed anew only for another `about` than lately, or rows of another schema.

        `make` may depend on nothing but `about`, which is compared by `==`, and on the columns of what it is given; it
        must run no query, as what it is given has no rows, and join nothing. The session's settings are all the same
        for all slices, but for those of LakeTable.suit.
        """
        given = _analysed(rows)
        schema = given.schema().json()
        settings = rows.sparkSession.conf
        by = tuple(str(settings.get(key)) for key in _PLANNED_BY) if settings.get(_ADAPTS) == "false" else None
        made = next((one for one in self._made if one.schema == schema and one.by == by and one.about == about), None)
        if made is None and by is not None:
            made = _planned(rows, given, about, schema, make, by)
        elif made is None:
            made = _resolved(rows, given, about, schema, make)
        self._made = [made, *(one for one in self._made if one is not made)][:_KEPT]
        return _put_over(rows, given, made) if by is None else _run_over(rows, made)


def _resolved(rows: DataFrame, given: Any, about: object, schema: str, make: Callable[[DataFrame], DataFrame]) -> _Made:
    session = rows.sparkSession
    jvm: Any = session._jvm
    empty = _no_rows(session, given)
    leaf = _analysed(empty)
    columns = tuple(
        (column.name(), column.exprId(), column.qualifier(), _named(jvm, "scala.Option").apply(column.metadata()))
        for column in _items(leaf.output())
    )
    return _Made(about, schema, leaf, _analysed(make(empty)), None, columns=columns)


def _put_over(rows: DataFrame, given: Any, made: _Made) -> DataFrame:
    """The analysed plan with the rows in the place of its leaf, under the ids by which it knows their columns."""
    session = rows.sparkSession
    jvm: Any = session._jvm
    alias = _named(jvm, f"{_CATALYST}.expressions.Alias")
    nil = _object(jvm, "scala.collection.immutable.Nil")
    columns = nil
    for has, (name, known_as, qualifier, metadata) in reversed(
        list(zip(_items(given.output()), made.columns, strict=True))
    ):
        columns = columns.prepended(alias(has, name, known_as, qualifier, metadata, nil))
    leaf = _named(jvm, f"{_CATALYST}.plans.logical.Project")(columns, given)
    plan = _replaced(jvm, made, leaf)
    dataset = _object(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(session._jsparkSession, plan)
    return DataFrame(dataset, session)


def _planned(
    rows: DataFrame,
    given: Any,
    about: object,
    schema: str,
    make: Callable[[DataFrame], DataFrame],
    by: tuple[str, ...],
) -> _Made:
    session = rows.sparkSession
    # Of rows that are known to be none Spark would plan nothing.
    nothing = _no_rows(session, given)._jdf.queryExecution().toRdd()
    made = make(_of_rdd(session, nothing, given.schema()))
    execution = made._jdf.queryExecution()
    plan = execution.executedPlan()
    [leaf] = _items(plan.collectLeaves())
    return _Made(about, schema, leaf, plan, by, says=execution.analyzed().schema())


def _run_over(rows: DataFrame, made: _Made) -> DataFrame:
    """What the final plan makes of the rows."""
    session = rows.sparkSession
    jvm: Any = session._jvm
    old = made.leaf
    rdd = rows._jdf.queryExecution().toRdd()
    # The nodes of a plan keep the session that is active while they are made.
    _named(jvm, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)
    leaf = old.copy(old.output(), rdd, old.name(), old.outputPartitioning(), old.outputOrdering(), old.stream())
    plan = _replaced(jvm, made, leaf)
    settings = session._jsparkSession.sessionState().conf()
    found = _named(jvm, f"{_EXECUTION}.SQLExecutionRDD")(plan.execute(), settings)
    return _of_rdd(session, found, made.says)


def _replaced(jvm: Any, made: _Made, leaf: Any) -> Any:
    # A Map is a partial function too: the plan's nodes that are in it are replaced.
    return made.plan.transform(_object(jvm, "scala.collection.immutable.Map").empty().updated(made.leaf, leaf))


def _no_rows(session: SparkSession, given: Any) -> DataFrame:
    """No rows with the same columns, and no part of the rows: a plan that is kept would keep a slice's records."""
    jvm: Any = session._jvm
    return DataFrame(session._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), given.schema()), session)


def _of_rdd(session: SparkSession, rdd: Any, schema: Any) -> DataFrame:
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rdd, schema, False), session)


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _named(jvm: Any, name: str) -> Any:
    """A class. Asked for by its whole name: step by step py4j looks for a class of each package's name in all jars."""
    return getattr(jvm, name)


def _object(jvm: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(_named(jvm, f"{name}$"), "MODULE$")


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
