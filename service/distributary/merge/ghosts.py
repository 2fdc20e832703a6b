"""Rows that a complete snapshot leaves over: they are older than it is, and it does not have them.

A row is such a ghost exactly where a truncate at the snapshot's position would take it. PostgreSQL's needs more: a
truncate locks the table, but while a snapshot is read a transaction may be open that wrote at a lower LSN and commits
later. Its rows are alive; the commit time, which the position ends with, tells them. Oracle's may be alike where a
change does not name the SCN of its commit: its own stands for it then.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.clauses import origin_of_all
from distributary.merge.position_sql import as_committed, committed_before
from distributary.merge.standing import older_than
from distributary.merge.table import LakeTable, Write

# The time in a snapshot's rows is not when it was taken, only near it: the connector starts up in between.
_NEAR_MS = 3_600_000
_READS = "substring(__snapshot, instr(__snapshot, '#') + 1)"


def is_ghost(connector: str, snapshot: str, *, marks_deleted: bool) -> str:
    """BOOLEAN: the complete snapshot at that position shows that the source does not have the row. `marks_deleted`: the
    table has `__deleted`; a row that is deleted already is none."""
    conditions = [older_than(connector, snapshot, "__")]
    if connector == "postgresql":
        conditions.append(f"(contains(__position, 'r') OR {committed_before('__position', snapshot, _NEAR_MS)})")
    if connector == "oracle":
        conditions.append("(__op = 'r' OR split_part(__position, '/', 2) <> substr(split_part(__position, '/', 1), 5))")
    if marks_deleted:
        conditions.append("NOT coalesce(__deleted, false)")
    return f"coalesce({' AND '.join(conditions)}, false)"


def ghosts(rows: DataFrame, condition: str, key: Mapping[str, str], at: str) -> DataFrame:
    """The keys of the ghosts, to be remembered as deleted: k0, k1 …; position STRING, reads STRING (see deletes.py)."""
    reads = f"nullif({_READS}, '')" if "__snapshot" in rows.columns else "CAST(NULL AS STRING)"
    keys = [F.col(sql.name(name)).alias(f"k{i}") for i, name in enumerate(key)]
    return rows.where(condition).select(*keys, F.lit(at).alias("position"), F.expr(reads).alias("reads"))


def count(rows: DataFrame, condition: str) -> int:
    """How many ghosts there are (one Spark job)."""
    return rows.where(condition).count()


def gone_at(connector: str, snapshot: str) -> str:
    """The position at which ghosts count as deleted. Any change that arrives after a row that PostgreSQL's snapshot
    read is newer than it is; a delete must not be undone by an old change, so it stands as a change there."""
    return as_committed(snapshot) if connector == "postgresql" else snapshot


def removal(lake: LakeTable, condition: str, at: str, *, softly: bool) -> Write:
    """A write that removes the ghosts, or with `softly` marks them as deleted, to be run by LakeTable.commit."""
    if not softly:
        return lambda _head, _progress: lake.delta().delete(condition)
    marked: dict[str, str | Column] = {
        "__deleted": F.lit(True),
        "__op": F.lit("d"),
        "__position": F.lit(at),
        "__moved": F.lit(None).cast("string"),
        # The values stay those of the change that brought them.
        "__filled": F.expr(origin_of_all("__position", "__filled")),
    }
    return lambda _head, _progress: lake.delta().update(condition, marked)
