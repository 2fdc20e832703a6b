"""Folded keys laid flat for a merge in this process: one Arrow table, collected by one Spark job.

Spark computes all that does not ask for the table's row, so that no value is made by two engines; what is left to the
other one is to compare positions, see position.is_later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary.merge.clause import Clause, Rows, with_kind
from distributary.merge.deletes import GONE
from distributary.merge.queries import Query

# What conditions ask of a key.
_ASKED = ("kind", "pos", "wiped", "out_tx", "if_there")
_ASKED_SOMETIMES = ("moved_if_there", "since", "left_tx", "left_at")


@dataclass(frozen=True)
class FlatKeys:
    """`rows`, one per key: k0, k1 … the key; what conditions name; x0, x1 … the values that clauses write; `gone` and
    `reads_known` for the memory of deletes; `doubts`, how many it has (see doubts.py). `clauses` write those values,
    `size` counts the key's columns."""

    rows: pa.Table
    clauses: Sequence[Clause]
    size: int

    @property
    def key(self) -> list[str]:
        """The names of the key's columns."""
        return [f"k{i}" for i in range(self.size)]

    def inserted(self) -> pa.Table:
        """The rows that an empty table gets, with the table's names."""
        [insert] = [clause for clause in self.clauses if clause.of is Rows.KEYS_ONLY]
        values = insert.values or {}
        rows = self.rows.filter(pc.field("inserts"))
        return pa.table({name: rows.column(value.removeprefix("s.")) for name, value in values.items()})

    def doubts(self) -> int:
        """How many doubts the keys have."""
        return int(pc.sum(self.rows.column("doubts")).as_py() or 0)

    def gone(self) -> pa.Table:
        """The keys that end deleted, as RememberedDeletes.remember_rows has them."""
        gone = self.rows.filter(pc.field("gone")).select([*self.key, "pos", "reads_known"])
        return gone.rename_columns([*self.key, "position", "reads"])


def flat(keys: Query, size: int, clauses: Iterable[Clause]) -> FlatKeys:
    """Collects the keys (one Spark job). The clauses' values may only name the key `s`, not the table's row."""
    names: dict[str, str] = {}
    named = []
    for clause in clauses:
        values = clause.values
        if values is not None:
            values = {name: f"s.{names.setdefault(value, f'x{len(names)}')}" for name, value in values.items()}
        named.append(replace(clause, values=values))
        if clause.of is Rows.KEYS_ONLY:
            inserts = clause.when
            named[-1] = replace(named[-1], when="s.inserts")
    sometimes = (name for name in _ASKED_SOMETIMES if any(f"s.{name}" in clause.when for clause in named))
    asked = (*_ASKED, *sometimes)
    about = ("flat", size, names, inserts, asked)
    rows = keys.then(about, lambda given: _laid_flat(given, size, names, inserts, asked)).frame()
    return FlatKeys(rows.toArrow(), named, size)


def _laid_flat(keys: DataFrame, size: int, names: Mapping[str, str], inserts: str, asked: Sequence[str]) -> DataFrame:
    reads_known = "s.reads_known" if "reads_known" in keys.columns else "CAST(NULL AS STRING)"
    # Told as they are before `kind` stands for w.kind.
    told = keys.withColumn("gone", F.expr(f"coalesce({GONE}, false)"))
    return (
        with_kind(told)
        .alias("s")
        .select(
            *(F.expr(f"s.k.k{i}").alias(f"k{i}") for i in range(size)),
            *(F.expr(f"s.{name}").alias(name) for name in (*asked, "gone")),
            F.expr(reads_known).alias("reads_known"),
            F.size("s.doubts").alias("doubts"),
            F.expr(f"coalesce({inserts}, false)").alias("inserts"),
            *(F.expr(value).alias(name) for value, name in names.items()),
        )
    )
