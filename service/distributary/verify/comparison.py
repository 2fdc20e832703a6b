"""Compares two sides of a table by key: which keys differ, and in which columns. Frames in, values out.

Both sides are aggregated by key in one pass, and only keys that differ are collected. Spark sorts and spills, so memory
does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql import functions as F

from distributary import sql
from distributary.verify.position_sql import is_later
from distributary.verify.report import (
    BEFORE_TOPIC,
    DIFFERENT,
    FAULTS,
    MISSING,
    NOT_CHECKED,
    REMOVED_ORPHAN,
    REPEATED,
    UNEXPECTED,
    Counts,
    Difference,
    Event,
    Value,
)

MAX_SHOWN_CHARACTERS = 200
"""Longer values are cut in the report."""
_EVENT = "STRUCT<partition: INT, offset: BIGINT, position: STRING, op: STRING>"
_DIFFERING = "ARRAY<STRUCT<column: STRING, lake: STRING, expected: STRING>>"
_POSITION = "__position"


@dataclass(frozen=True)
class ComparisonSpec:
    """How two sides are compared.

    - `key`: names of the key's parts in the report.
    - `columns`: the columns to compare, name to Spark type.
    - `order`: the connector whose order of positions applies; None if positions can't be compared.
    - `positions`: positions must be equal, too.
    - `partial`: the topic lacks some of the records that the lake's rows come from.
    - `skips_unknown`: ignore columns whose value no record shows; else they count as NULL.
    - `has_duplicates`: a key may have several equal rows.
    """

    key: Sequence[str]
    columns: Mapping[str, str]
    order: str | None
    positions: bool = False
    partial: bool = False
    skips_unknown: bool = False
    has_duplicates: bool = False


def value_struct(values: Sequence[Column]) -> Column:
    """STRUCT<v0, v1 …> with the values of ComparisonSpec.columns. One constant if a table has only key columns."""
    return F.struct(*(value.alias(f"v{i}") for i, value in enumerate(values or [F.lit(True)])))


class Comparison:
    """The comparison of two sides. The constructor runs it.

    - `expected`: k STRUCT, the key; times INT, number of such rows; v STRUCT (see value_struct); event STRUCT as
      _EVENT, the change that the row comes from; unknown_columns ARRAY<STRING>, columns whose value no record shows;
      orphaned BOOLEAN, `resume --reconcile` may have removed the row.
    - `lake`: k; v; origin STRUCT as _EVENT; deleted BOOLEAN, the row is marked as deleted.
    - `suspects`: k; why STRING, one of NOT_CHECKED. Differences of these keys are not counted as faults.
    """

    def __init__(self, spec: ComparisonSpec, expected: DataFrame, lake: DataFrame, suspects: DataFrame) -> None:
        self._spec = spec
        observation = Observation()
        keys = self._with_verdicts(expected, lake, suspects).observe(
            observation,
            F.expr("coalesce(sum(e_times), 0)").alias("expected"),
            F.expr("coalesce(sum(l_times), 0)").alias("lake"),
            *(F.expr(f"count_if(verdict = '{name}')").alias(name) for name in ("equal", *FAULTS, *NOT_CHECKED)),
        )
        faulty = keys.where(f"verdict IN ({', '.join(map(sql.text, FAULTS))})")
        self._found = faulty.drop("e", "l").localCheckpoint(eager=True)
        counts = observation.get
        self.counts = Counts(
            counts["lake"],
            counts["expected"],
            counts["equal"],
            {name: counts[name] for name in FAULTS},
            {name: counts[name] for name in NOT_CHECKED},
        )

    def keys(self) -> DataFrame:
        """k STRUCT: the keys that differ."""
        return self._found.select("k")

    def differences(self, limit: int, records: DataFrame | None) -> tuple[Difference, ...]:
        """The first `limit` differences by key. `records`: the topic's records, for the last one of each key; None if
        keys of the comparison are not those of records."""
        if not self.counts.different or not limit:
            return ()
        shown = self._found.orderBy("k").limit(limit).localCheckpoint(eager=True)
        last = f"CAST(NULL AS {_EVENT})"
        if records is not None:
            shown = shown.join(_last_records(records, shown), F.col("k").eqNullSafe(F.col("last_k")), "left")
            last = "last"
        named = ", ".join(f"{sql.text(name)}, k.k{i}" for i, name in enumerate(self._spec.key))
        rows = shown.orderBy("k").select(
            F.expr(f"to_json(named_struct({named}), map('ignoreNullFields', 'false'))").alias("key"),
            "verdict",
            "differing",
            "event",
            "origin",
            F.expr(last).alias("last"),
        )
        return tuple(_difference(row) for row in rows.collect())

    def _with_verdicts(self, expected: DataFrame, lake: DataFrame, suspects: DataFrame) -> DataFrame:
        sides = expected.select("k", F.col("v").alias("e"), F.col("times").alias("e_times"), *_EXPECTED_COLUMNS)
        sides = sides.unionByName(
            lake.select("k", F.col("v").alias("l"), F.lit(1).alias("l_times"), "origin", "deleted"),
            allowMissingColumns=True,
        ).unionByName(suspects.select("k", "why"), allowMissingColumns=True)
        first = ("e", "l", "origin", "deleted", *_EXPECTED_COLUMNS, "why")
        laid = sides.groupBy("k").agg(
            *(F.expr(f"coalesce(sum({name}), 0)").alias(name) for name in ("e_times", "l_times")),
            *(F.expr(f"first({name}, true)").alias(name) for name in first),
        )
        return laid.withColumn("differing", F.expr(self._differing())).withColumn("verdict", F.expr(self._verdict()))

    def _differing(self) -> str:
        """ARRAY<STRUCT<column, lake, expected>>: the columns that differ; NULL if only one side has the row."""
        entries = [
            f"CASE WHEN NOT ({comparable(f'e.v{i}', kind)} <=> {comparable(f'l.v{i}', kind)})"
            f" AND NOT ({self._is_unknown(name)}) THEN {_entry(name, f'l.v{i}', f'e.v{i}', kind)} END"
            for i, (name, kind) in enumerate(self._spec.columns.items())
        ]
        if self._spec.positions:
            later, earlier = self._is_later("l", "e"), self._is_later("e", "l")
            has_other_row = f"coalesce({later} OR {earlier}, true)"
            entries.append(
                f"CASE WHEN {has_other_row} THEN {_entry(_POSITION, 'origin.position', 'event.position', 'string')} END"
            )
        entries_sql = f"array_compact(array({', '.join(entries)}))" if entries else "array()"
        return f"CASE WHEN e_times > 0 AND l_times > 0 THEN CAST({entries_sql} AS {_DIFFERING}) END"

    def _is_unknown(self, column: str) -> str:
        return f"array_contains(unknown_columns, {sql.text(column)})" if self._spec.skips_unknown else "false"

    def _is_later(self, one: str, other: str) -> str:
        positions = {"l": "origin.position", "e": "event.position"}
        return is_later(str(self._spec.order), positions[one], positions[other])

    def _verdict(self) -> str:
        """STRING: `equal`, one of FAULTS or NOT_CHECKED; NULL for a key without a row on either side."""
        before = "false"
        if self._spec.partial:
            # Records that the topic lost may have been newer than those it still has, if these were sent again.
            newer = f"coalesce({self._is_later('l', 'e')}, false)" if self._spec.order is not None else "false"
            before = f"(event IS NULL OR {newer}) AND l_times <= greatest(e_times, 1)"
            if self._spec.has_duplicates:
                before = "l_times > e_times"
        return f"""CASE
            WHEN e_times = l_times AND coalesce(size(differing), 0) <= 0 THEN CASE WHEN e_times > 0 THEN 'equal' END

            WHEN why IS NOT NULL THEN why
            WHEN coalesce(orphaned, false) AND (l_times = 0 OR coalesce(deleted, false)) THEN '{REMOVED_ORPHAN}'
            WHEN {before} THEN '{BEFORE_TOPIC}'
            WHEN l_times = 0 OR l_times < e_times THEN '{MISSING}'
            WHEN e_times = 0 AND l_times = 1 THEN '{UNEXPECTED}'
            WHEN l_times > e_times THEN '{REPEATED}'
            ELSE '{DIFFERENT}' END"""


_EXPECTED_COLUMNS = ("event", "unknown_columns", "orphaned")


def _entry(column: str, lake: str, expected: str, kind: str) -> str:
    return (
        f"named_struct('column', {sql.text(column)}, 'lake', {shown(lake, kind)}, 'expected', {shown(expected, kind)})"
    )


def comparable(value: str, kind: str) -> str:
    """SQL of the value in a form that Spark can compare; it can't compare maps and variants."""
    if "variant" in kind:
        return f"to_json({value})"
    if kind.startswith("map<"):
        return f"array_sort(map_entries({value}))"
    return f"to_json({value})" if "map<" in kind else value


def shown(value: str, kind: str) -> str:
    """SQL STRING of a value for the report, cut to MAX_SHOWN_CHARACTERS."""
    if kind == "binary":
        text = f"concat('0x', hex({value}))"
    elif kind == "variant" or kind.startswith(("struct<", "array<", "map<")):
        text = f"to_json({value})"
    else:
        text = f"CAST({value} AS STRING)"
    cut = f"concat(left(t_, {MAX_SHOWN_CHARACTERS}), '… (', length(t_), ' characters)')"
    return sql.let("t_", text, f"CASE WHEN length(t_) > {MAX_SHOWN_CHARACTERS} THEN {cut} ELSE t_ END")


def _last_records(records: DataFrame, keys: DataFrame) -> DataFrame:
    """last_k STRUCT, last STRUCT as _EVENT: the record of each key that arrived last in the topic."""
    wanted = F.broadcast(keys.select(F.col("k").alias("wanted")))
    fields = "struct(partition, offset, pos AS position, kind AS op)"
    return (
        records.where("kind NOT IN ('t', 'm')")
        .join(wanted, F.col("k").eqNullSafe(F.col("wanted")), "left_semi")
        .groupBy(F.col("k").alias("last_k"))
        .agg(F.expr(f"CAST(max_by({fields}, struct(timestamp, offset)) AS {_EVENT})").alias("last"))
    )


def _difference(row: Row) -> Difference:
    return Difference(
        row["key"],
        row["verdict"],
        tuple(Value(*value) for value in row["differing"] or ()),
        event(row["event"]),
        event(row["last"]),
        event(row["origin"]),
    )


def event(row: Row | None) -> Event | None:
    """The Event of a row with the fields of _EVENT; None for None."""
    return None if row is None else Event(row["partition"], row["offset"], row["position"], row["op"])
