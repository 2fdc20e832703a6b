"""Two sides of a table laid together by key: which keys differ, and in what. Frames in, values out.

Each side is aggregated by key, in one pass over both, and only what differs is kept: Spark sorts and spills, so that
memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql import functions as F

from distributary import sql
from distributary.lake.position_sql import is_later
from distributary.verify.report import (
    BEFORE,
    DIFFERENT,
    FAULTS,
    GHOST,
    MISSING,
    REPEATED,
    UNEXPECTED,
    UNTOLD,
    Counts,
    Difference,
    Event,
    Value,
)

LONGEST = 200
"""So many characters of a value are shown."""
_EVENT = "STRUCT<partition: INT, offset: BIGINT, position: STRING, op: STRING>"
_DIFFERING = "ARRAY<STRUCT<column: STRING, lake: STRING, expected: STRING>>"
_POSITION = "__position"


@dataclass(frozen=True)
class Comparing:
    """How two sides are compared.

    `key`: the parts of the key by the names that they are shown under; `columns`: those that are compared, name to
    Spark type; `order`: the connector in whose order the positions of two rows can be compared, None where they can't;
    `positions`: they have to be equal; `partial`: the expected side does not know all that the lake's rows come from;
    `passes_open`: columns that no record tells are passed over, else they are NULL; `several`: a key may have several
    rows, which are all alike.
    """

    key: Sequence[str]
    columns: Mapping[str, str]
    order: str | None
    positions: bool = False
    partial: bool = False
    passes_open: bool = False
    several: bool = False


def side(values: Sequence[Column]) -> Column:
    """STRUCT<v0, v1 …>: the values of Comparing.columns, on either side. A table may have nothing but its key."""
    return F.struct(*(value.alias(f"v{i}") for i, value in enumerate(values or [F.lit(True)])))


class Compared:
    """The two sides, compared once.

    `expected`: k STRUCT; times INT, how often there is such a row; v STRUCT (see side); event STRUCT, as _EVENT; open
    ARRAY<STRING>; vague, ghost BOOLEAN (see alone.rows_alone; ghost: an operator may have had the row removed).
    `lake`: k; v; origin STRUCT, as event; deleted BOOLEAN (the row is marked so). `suspects`: k and why STRING, one of
    UNTOLD: keys of which nothing can be told where they differ.
    """

    def __init__(self, how: Comparing, expected: DataFrame, lake: DataFrame, suspects: DataFrame) -> None:
        self._how = how
        seen = Observation()
        judged = self._judged(expected, lake, suspects).observe(
            seen,
            F.expr("coalesce(sum(e_times), 0)").alias("expected"),
            F.expr("coalesce(sum(l_times), 0)").alias("lake"),
            *(F.expr(f"count_if(verdict = '{name}')").alias(name) for name in ("equal", *FAULTS, *UNTOLD)),
        )
        found = judged.where(f"verdict IN ({', '.join(map(sql.text, FAULTS))})")
        self._found = found.drop("e", "l").localCheckpoint(eager=True)
        counts = seen.get
        self.counts = Counts(
            counts["lake"],
            counts["expected"],
            counts["equal"],
            {name: counts[name] for name in FAULTS},
            {name: counts[name] for name in UNTOLD},
        )

    def keys(self) -> DataFrame:
        """k STRUCT: the keys that differ."""
        return self._found.select("k")

    def differences(self, limit: int, records: DataFrame | None) -> tuple[Difference, ...]:
        """The first ones by key. `records`: the topic's decoded records, where the last one of a key can be told."""
        if not self.counts.different or not limit:
            return ()
        shown = self._found.orderBy("k").limit(limit).localCheckpoint(eager=True)
        last = f"CAST(NULL AS {_EVENT})"
        if records is not None:
            shown = shown.join(_last_records(records, shown), F.col("k").eqNullSafe(F.col("last_k")), "left")
            last = "last"
        named = ", ".join(f"{sql.text(name)}, k.k{i}" for i, name in enumerate(self._how.key))
        rows = shown.orderBy("k").select(
            F.expr(f"to_json(named_struct({named}), map('ignoreNullFields', 'false'))").alias("key"),
            "verdict",
            "differing",
            "event",
            "origin",
            F.expr(last).alias("last"),
        )
        return tuple(_difference(row) for row in rows.collect())

    def _judged(self, expected: DataFrame, lake: DataFrame, suspects: DataFrame) -> DataFrame:
        sides = expected.select("k", F.col("v").alias("e"), F.col("times").alias("e_times"), *_OF_EXPECTED)
        sides = sides.unionByName(
            lake.select("k", F.col("v").alias("l"), F.lit(1).alias("l_times"), "origin", "deleted"),
            allowMissingColumns=True,
        ).unionByName(suspects.select("k", "why"), allowMissingColumns=True)
        first = ("e", "l", "origin", "deleted", *_OF_EXPECTED, "why")
        laid = sides.groupBy("k").agg(
            *(F.expr(f"coalesce(sum({name}), 0)").alias(name) for name in ("e_times", "l_times")),
            *(F.expr(f"first({name}, true)").alias(name) for name in first),
        )
        return laid.withColumn("differing", F.expr(self._differing())).withColumn("verdict", F.expr(self._verdict()))

    def _differing(self) -> str:
        """ARRAY<STRUCT<column, lake, expected>>: empty where the two rows are equal or one is not there."""
        entries = [
            f"CASE WHEN NOT ({comparable(f'e.v{i}', kind)} <=> {comparable(f'l.v{i}', kind)})"
            f" AND NOT ({self._untold(name)}) THEN {_entry(name, f'l.v{i}', f'e.v{i}', kind)} END"
            for i, (name, kind) in enumerate(self._how.columns.items())
        ]
        if self._how.positions:
            later, earlier = self._is_later("l", "e"), self._is_later("e", "l")
            moved = f"coalesce({later} OR {earlier}, true)"
            entries.append(
                f"CASE WHEN {moved} THEN {_entry(_POSITION, 'origin.position', 'event.position', 'string')} END"
            )
        found = f"array_compact(array({', '.join(entries)}))" if entries else "array()"
        return f"CASE WHEN e_times > 0 AND l_times > 0 THEN CAST({found} AS {_DIFFERING}) END"

    def _untold(self, column: str) -> str:
        return f"array_contains(open, {sql.text(column)})" if self._how.passes_open else "false"

    def _is_later(self, one: str, other: str) -> str:
        place = {"l": "origin.position", "e": "event.position"}
        return is_later(str(self._how.order), place[one], place[other])

    def _verdict(self) -> str:
        """STRING: `equal`, one of FAULTS or UNTOLD; NULL for a key without a row on either side."""
        before = "false"
        if self._how.partial:
            # What the topic lost may have been newer than what it has left, where that was sent again.
            newer = f"coalesce({self._is_later('l', 'e')}, false)" if self._how.order is not None else "false"
            before = f"(event IS NULL OR coalesce(vague, false) OR {newer}) AND l_times <= greatest(e_times, 1)"
            if self._how.several:
                before = "l_times > e_times"
        return f"""CASE
            WHEN e_times = l_times AND coalesce(size(differing), 0) <= 0 THEN CASE WHEN e_times > 0 THEN 'equal' END
            WHEN e_times = 0 AND l_times = 1 AND coalesce(deleted AND vague, false) THEN 'equal'
            WHEN why IS NOT NULL THEN why
            WHEN coalesce(ghost, false) AND (l_times = 0 OR coalesce(deleted, false)) THEN '{GHOST}'
            WHEN {before} THEN '{BEFORE}'
            WHEN l_times = 0 OR l_times < e_times THEN '{MISSING}'
            WHEN e_times = 0 AND l_times = 1 THEN '{UNEXPECTED}'
            WHEN l_times > e_times THEN '{REPEATED}'
            ELSE '{DIFFERENT}' END"""


_OF_EXPECTED = ("event", "open", "vague", "ghost")


def _entry(column: str, lake: str, expected: str, kind: str) -> str:
    return (
        f"named_struct('column', {sql.text(column)}, 'lake', {shown(lake, kind)}, 'expected', {shown(expected, kind)})"
    )


def comparable(value: str, kind: str) -> str:
    """The value as something that can be compared: maps and variants can't."""
    if "variant" in kind:
        return f"to_json({value})"
    if kind.startswith("map<"):
        return f"array_sort(map_entries({value}))"
    return f"to_json({value})" if "map<" in kind else value


def shown(value: str, kind: str) -> str:
    """STRING: a value of that Spark type for people, cut where it is long."""
    if kind == "binary":
        text = f"concat('0x', hex({value}))"
    elif kind == "variant" or kind.startswith(("struct<", "array<", "map<")):
        text = f"to_json({value})"
    else:
        text = f"CAST({value} AS STRING)"
    cut = f"concat(left(t_, {LONGEST}), '… (', length(t_), ' characters)')"
    return sql.let("t_", text, f"CASE WHEN length(t_) > {LONGEST} THEN {cut} ELSE t_ END")


def _last_records(records: DataFrame, keys: DataFrame) -> DataFrame:
    """last_k STRUCT and last STRUCT, as _EVENT: the record of each key that arrived last."""
    wanted = F.broadcast(keys.select(F.col("k").alias("wanted")))
    place = "struct(partition, offset, pos AS position, kind AS op)"
    return (
        records.where("kind NOT IN ('t', 'm')")
        .join(wanted, F.col("k").eqNullSafe(F.col("wanted")), "left_semi")
        .groupBy(F.col("k").alias("last_k"))
        .agg(F.expr(f"CAST(max_by({place}, struct(timestamp, offset)) AS {_EVENT})").alias("last"))
    )


def _difference(row: Row) -> Difference:
    return Difference(
        row["key"],
        row["verdict"],
        tuple(Value(*one) for one in row["differing"] or ()),
        event(row["event"]),
        event(row["last"]),
        event(row["origin"]),
    )


def event(place: Row | None) -> Event | None:
    """The Event of a row as _EVENT has it."""
    return None if place is None else Event(place["partition"], place["offset"], place["position"], place["op"])
