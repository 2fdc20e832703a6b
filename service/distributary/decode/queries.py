"""Queries that are analysed once and put over the rows of one slice after another.

To analyse what decodes and folds a slice takes Spark longer than to run it over a few hundred records: each step of a
DataFrame is resolved and checked by itself. What a slice is asked depends on the table, not on the slice, so that the
plan that came out of it once is kept, over no rows; for the next slice its one leaf is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_KEPT = 8  # plans; a table asks four, and others while its columns or its source's records change

_CATALYST = "org.apache.spark.sql.catalyst"


@dataclass(frozen=True)
class _Made:
    """A plan over a leaf without rows, for rows of one schema; `about` is all else that it was made from.

    `columns` are the leaf's: name, id, qualifier and metadata, by which the plan knows them.
    """

    about: object
    schema: str
    leaf: Any
    columns: tuple[tuple[str, Any, Any, Any], ...]
    plan: Any


class Queries:
    """What one table asks of its slices."""

    def __init__(self) -> None:
        self._made: list[_Made] = []

    def over(self, rows: DataFrame, about: object, make: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """`make(rows)`, analysed anew only for another `about` than lately, or rows of another schema.

        `make` may depend on nothing but `about`, which is compared by `==`, and on the columns of what it is given; it
        must run no query, as what it is given has no rows.
        """
        given = _analysed(rows)
        schema = given.schema().json()
        made = next((one for one in self._made if one.schema == schema and one.about == about), None)
        if made is None:
            made = _made(rows, given, about, schema, make)
        self._made = [made, *(one for one in self._made if one is not made)][:_KEPT]
        return _put_over(rows, given, made)


def _made(rows: DataFrame, given: Any, about: object, schema: str, make: Callable[[DataFrame], DataFrame]) -> _Made:
    session = rows.sparkSession
    jvm: Any = session._jvm
    # No rows with the same columns, and no part of `rows`: a plan that is kept would keep a slice's records with it.
    nothing = session._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), given.schema())
    empty = DataFrame(nothing, session)
    leaf = _analysed(empty)
    columns = tuple(
        (column.name(), column.exprId(), column.qualifier(), _named(jvm, "scala.Option").apply(column.metadata()))
        for column in _items(leaf.output())
    )
    return _Made(about, schema, leaf, columns, _analysed(make(empty)))


def _put_over(rows: DataFrame, given: Any, made: _Made) -> DataFrame:
    """The plan with the rows in the place of its leaf, under the ids by which it knows their columns."""
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
    # A Map is a partial function too: the plan's nodes that are in it are replaced.
    replaced = _object(jvm, "scala.collection.immutable.Map").empty().updated(made.leaf, leaf)
    plan = made.plan.transform(replaced)
    dataset = _object(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(session._jsparkSession, plan)
    return DataFrame(dataset, session)


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
