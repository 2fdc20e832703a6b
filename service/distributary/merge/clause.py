"""The clauses of a merge as values: what is done with which rows. Spark's MERGE and the one in this process (direct.py)
are both made from them, so that the rules stand in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary import sql


class Rows(Enum):
    """What a clause is about: rows with one of the keys, keys without a row, rows with none of the keys."""

    BOTH = "both"
    KEYS_ONLY = "keys only"
    TABLE_ONLY = "table only"


@dataclass(frozen=True)
class Clause:
    """One clause; of a row's the first one counts whose condition holds.

    `when` BOOLEAN in SQL, over the table's row `t` and the folded key `s` (see with_kind). `values`: columns by name
    and what they become, in SQL; None where the row goes.
    """

    of: Rows
    when: str
    values: Mapping[str, str] | None = None


def with_kind(keys: DataFrame) -> DataFrame:
    """Folded keys as clauses name them: with kind STRING, that of `w`; NULL where there is none."""
    return keys.withColumn("kind", F.col("w.kind"))


def spark_merge(table: DeltaTable, keys: DataFrame, on: str, clauses: Iterable[Clause]) -> DeltaMergeBuilder:
    """Spark's MERGE of folded keys, to be executed by the caller."""
    merge = table.alias("t").merge(with_kind(keys).alias("s"), on)
    for clause in clauses:
        values = _quoted(clause.values) if clause.values is not None else None
        if clause.of is Rows.KEYS_ONLY:
            merge = merge.whenNotMatchedInsert(clause.when, values or {})
        elif clause.of is Rows.BOTH:
            merge = (
                merge.whenMatchedDelete(clause.when) if values is None else merge.whenMatchedUpdate(clause.when, values)
            )
        elif values is None:
            merge = merge.whenNotMatchedBySourceDelete(clause.when)
        else:
            merge = merge.whenNotMatchedBySourceUpdate(clause.when, values)
    return merge


def _quoted(values: Mapping[str, str]) -> dict[str, str | Column]:
    return {sql.name(name): value for name, value in values.items()}
