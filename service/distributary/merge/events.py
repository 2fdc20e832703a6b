"""What happened to the keys of a slice, as events: from the slice, from the versions a table has, from what is
remembered beside it. Laid together and ordered they tell every version anew (see versions.py).

An event, one row: k STRUCT; kind STRING (c, u, r, d, t, x); pos STRING, its place in the order (for PostgreSQL's
snapshot rows and for tombstones the last position known before it came); own STRING, the position that its record
gave; start STRING, where a version begins that it opens; rank INT, its place among events of one position; came
INT (0 known before, 1 from the slice), at TIMESTAMP, partition, offset: when it came; tx, moved_in, moved_out,
read_id, ts_ms, carried: see ingest.merge_records; old_key STRING, the old key of a key change as JSON; row STRUCT;
missing ARRAY<INT>, places of values still to be found; unsent ARRAY<STRING>, columns that were not sent; reach STRING,
the last position that is known with it; held STRUCT, the table's version that it is the first event of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.mode import Destination

SAME_TYPE = (
    "STRUCT<pos: STRING, own: STRING, start: STRING, kind: STRING, ts_ms: BIGINT, partition: INT, offset: BIGINT,"
    " read_id: STRING, tx: STRING, old_key: STRING, unsent: ARRAY<STRING>>"
)
TRACE_TYPE = (
    f"STRUCT<pos: STRING, read_id: STRING, tx: STRING, over: BOOLEAN, unsent: ARRAY<STRING>, same: ARRAY<{SAME_TYPE}>>"
)
HELD_TYPE = f"STRUCT<end: STRING, over: BOOLEAN, same: ARRAY<{SAME_TYPE}>>"
# Known before the slice: rows, then what ended them, then what is remembered.
_ROWS, _ENDS, _MEMORY = (f"timestamp'19{year}-01-01 00:00:00Z'" for year in (70, 71, 72))


def rank(kind: str, connector: str) -> str:
    """INT: at an equal position a delete comes first; what has no position of its own comes last."""
    beside = " OR kind = 'r'" if connector == "postgresql" else ""
    return f"CASE WHEN {kind} IN ('d', 't') THEN 0 WHEN {kind} = 'x'{beside.replace('kind', kind)} THEN 2 ELSE 1 END"


class Events:
    """Makes the events of one table."""

    def __init__(self, to: Destination) -> None:
        self._to = to
        fields = ", ".join(f"c{i}: {kind}" for i, kind in enumerate(to.columns.values()))
        key = ", ".join(f"k{i}: {kind}" for i, kind in enumerate(to.key.values()))
        self._types: Mapping[str, str] = {
            "k": f"STRUCT<{key}>",
            "kind": "STRING", "pos": "STRING", "own": "STRING", "start": "STRING", "rank": "INT",
            "came": "INT", "at": "TIMESTAMP", "partition": "INT", "offset": "BIGINT",
            "tx": "STRING", "moved_in": "BOOLEAN", "moved_out": "BOOLEAN", "read_id": "STRING", "ts_ms": "BIGINT",
            "carried": "BOOLEAN", "old_key": "STRING", "row": f"STRUCT<{fields}>", "missing": "ARRAY<INT>",
            "unsent": "ARRAY<STRING>", "reach": "STRING", "held": HELD_TYPE,
        }  # fmt: skip

    def key_text(self, key: str) -> str:
        """STRING: a key struct as JSON under the columns' names."""
        named = ", ".join(f"{sql.text(name)}, {key}.k{i}" for i, name in enumerate(self._to.key))
        return f"to_json(named_struct({named}))"

    def of_slice(self, records: DataFrame, partitions: int) -> DataFrame:
        """The slice's changes, snapshot rows and tombstones; truncates are not among them."""
        usable = records.where("bad IS NULL AND kind NOT IN ('t', 'm', '!')")
        at = F.expr("timestamp'1970-01-01 00:00:00Z'")
        if partitions > 1:  # a topic that got more partitions: timestamps order them, but never against offsets
            at = F.max("timestamp").over(Window.partitionBy("k", "partition").orderBy("offset"))
        return self._events(
            usable.withColumn("at", at),
            own="pos", start="pos", reach="pos", came="1",
            old_key=f"CASE WHEN old_k IS NOT NULL THEN {self.key_text('old_k')} END",
            unsent=f"transform(missing, i_ -> array({self._names()})[i_])",
        )  # fmt: skip

    def versions(self, table: DataFrame) -> DataFrame:
        """A table's rows: their key as k, the place of their first event as pos, row, and the service's columns."""
        key = F.struct(*(F.col(sql.name(name)).alias(f"k{i}") for i, name in enumerate(self._to.key)))
        row = F.struct(*(F.col(sql.name(name)).alias(f"c{i}") for i, name in enumerate(self._to.columns)))
        place = F.expr("coalesce(__trace.pos, __position)")
        return table.select(key.alias("k"), place.alias("pos"), row.alias("row"), *_KEPT)

    def of_current(self, versions: DataFrame) -> DataFrame:
        """The current versions alone, as they stand: nothing of the slice is older than they are."""
        return self._of_rows(versions, held_over=_LIES_OVER, missing="CAST(NULL AS ARRAY<INT>)")

    def of_all(self, versions: DataFrame, truncates: Sequence[str]) -> DataFrame:
        """All that the versions of some keys tell: what opened them, what left them as they were, what ended them.
        What ended at a truncate tells no position of the key itself."""
        rows = self._of_rows(versions, held_over="__trace.over", missing=self._places("__trace.unsent"))
        return rows.unionByName(self._of_same(versions)).unionByName(self._of_ends(versions, truncates))

    def of_memory(self, remembered: DataFrame) -> DataFrame:
        """Remembered deletes (k, position, tx): they may have left no trace in the table."""
        return self._events(
            remembered,
            kind="'d'", pos="position", own="position", start="position", reach="position", came="0", at=_MEMORY,
            moved_out="tx IS NOT NULL",
        )  # fmt: skip

    def of_truncates(self, keys: DataFrame, positions: Sequence[str]) -> DataFrame:
        """The truncates, once for each of the keys."""
        found = ", ".join(map(sql.text, positions))
        each = keys.select("k", F.expr(f"explode(array({found}))").alias("pos"))
        return self._events(each, kind="'t'", own="pos", start="pos", came="0", at=_MEMORY)

    def _of_rows(self, versions: DataFrame, held_over: str, missing: str) -> DataFrame:
        return self._events(
            versions,
            kind="__op", own="__position", start="__start_at", came="0", at=_ROWS,
            partition="__partition", offset="__offset", tx="__trace.tx", moved_in="__trace.tx IS NOT NULL",
            read_id="__trace.read_id", ts_ms="unix_millis(__source_ts)", old_key="__moved_from",
            missing=missing, unsent="__trace.unsent", reach=_LAST,
            held=f"named_struct('end', __end_at, 'over', {held_over}, 'same', __trace.same)",
        )  # fmt: skip

    def _of_same(self, versions: DataFrame) -> DataFrame:
        names = {name: f"same_.{name}" for name in ("pos", "own", "start", "kind", "ts_ms", "partition", "offset")}
        names |= {name: f"same_.{name}" for name in ("read_id", "tx", "old_key", "unsent")}
        return self._events(
            versions.select("*", F.explode("__trace.same").alias("same_")),
            **names,
            came="0", at=_ROWS, reach="same_.pos",
            moved_in="same_.tx IS NOT NULL AND same_.kind <> 'd'",
            moved_out="same_.tx IS NOT NULL AND same_.kind = 'd'",
            row="CASE WHEN same_.kind <> 'd' THEN row END",
            missing=self._places("same_.unsent"),
        )  # fmt: skip

    def _of_ends(self, versions: DataFrame, truncates: Sequence[str]) -> DataFrame:
        """What ended versions that no other one follows: a delete, or at the version's own end a tombstone."""
        order = Window.partitionBy("k").orderBy("pos", F.expr(rank("__op", self._to.connector)), "__offset")
        gone = versions.withColumn("next", F.lead("__start_at").over(order)).where(
            "__end_at IS NOT NULL AND NOT (next <=> __end_at)"
        )
        by_tombstone = f"__end_at = greatest({_LAST}, __start_at)"
        pos = f"CASE WHEN {by_tombstone} THEN {_LAST} ELSE __end_at END"
        at_truncate = f"__end_at IN ({', '.join(map(sql.text, truncates))})" if truncates else "false"
        return self._events(
            gone,
            kind=f"CASE WHEN {by_tombstone} THEN 'x' ELSE 'd' END",
            pos=pos, own=pos, start=pos, reach=f"CASE WHEN NOT {at_truncate} THEN {pos} END", came="0", at=_ENDS,
        )  # fmt: skip

    def _events(self, frame: DataFrame, **given: str) -> DataFrame:
        """Events from a frame: what is not given is taken from its column, where events have it, else NULL."""
        kind = given.get("kind", "kind")
        given = {"rank": rank(f"({kind})", self._to.connector), **given}

        def value(name: str, kind: str) -> Column:
            text = given.get(name, name if name in frame.columns and name in _TAKEN else "NULL")
            return F.expr(f"CAST({text} AS {kind})").alias(name)

        return frame.select(*(value(name, kind) for name, kind in self._types.items()))

    def _names(self) -> str:
        return ", ".join(sql.text(name) for name in self._to.columns)

    def _places(self, names: str) -> str:
        return f"transform({names}, n_ -> CAST(array_position(array({self._names()}), n_) - 1 AS INT))"


# The one delete of its transaction that it stays through may have come already.
_LIES_OVER = (
    "CASE WHEN __trace.over THEN NOT coalesce(exists(__trace.same, s_ -> s_.kind = 'd' AND s_.tx = __trace.tx), false)"
    " END"
)
_LAST = "greatest(pos, array_max(transform(__trace.same, s_ -> s_.pos)))"
_TAKEN = {
    "k", "kind", "pos", "at", "partition", "offset", "tx", "moved_in", "moved_out", "read_id", "ts_ms", "carried",
    "row", "missing",
}  # fmt: skip
_KEPT = (
    "__start_at", "__end_at", "__current", "__op", "__source_ts", "__position", "__partition", "__offset",
    "__moved_from", "__trace",
)  # fmt: skip
