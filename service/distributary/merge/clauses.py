"""The one MERGE of `mode: upsert`: what of the folded keys is newer than the table's rows, applied in one commit.

Beside the source's columns a row carries where it comes from (mode.ORIGIN_COLUMNS) and what later records must know of
it: `__snapshot`, the snapshot rows taken in (PostgreSQL: position of the last, then the identities of their source
blocks, after `#`); `__moved`, the transaction in which a key change put this row over a living one; `__filled`, where
values come from that its newest change did not bring (see fill.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.decode import sql
from distributary.decode.position import is_later
from distributary.merge.mode import ORIGIN_COLUMNS, Destination
from distributary.merge.values import WAITS, Fillable, from_text

SERVICE_COLUMNS: Mapping[str, str] = {
    **ORIGIN_COLUMNS,
    "__snapshot": "string",
    "__moved": "string",
    "__filled": "string",
}
SOFT_COLUMNS: Mapping[str, str] = {"__deleted": "boolean"}
# In `__filled` of a row that stays after its delete: the position of the change that all its values come from.
_ALL = "*"
_KNOWN_ORIGIN = f"element_at(from_json(t.__filled, '{WAITS}'), '{_ALL}')"


class Clauses:
    """The merge of folded keys into one table.

    `reads`: snapshot rows stand beside the changes; `values`: the columns whose value may be missing; `keeps_deleted`:
    deleted rows stay; `soft`: the table has `__deleted`; `truncated` and `truncated_ever` as in mode.DecodedSlice.
    """

    def __init__(
        self,
        to: Destination,
        *,
        reads: bool,
        values: Fillable | None,
        keeps_deleted: bool,
        soft: bool,
        truncated: str | None,
        truncated_ever: str | None,
    ) -> None:
        self._to = to
        self._connector = to.connector
        self._reads = reads
        self._values = values
        self._keeps_deleted = keeps_deleted
        self._soft = soft
        self._truncated = truncated
        self._truncates_softly = truncated_ever if to.settings.truncate == "soft" else None

    def rows_to_insert(self, keys: DataFrame) -> DataFrame:
        """The rows that an empty table gets, with all columns of the table."""
        rows = keys.alias("s").where(self._inserts(keys))
        return rows.select(*(value.alias(name) for name, value in self._inserted(keys).items()))

    def merge(self, table: DeltaTable, keys: DataFrame) -> DeltaMergeBuilder:
        """The MERGE, to be executed by the caller. Rows older than the truncate go with it."""
        on = " AND ".join(f"t.{sql.name(name)} <=> s.k.k{i}" for i, name in enumerate(self._to.key))
        merge = table.alias("t").merge(keys.alias("s"), on or "false")
        newer = self._newer()
        gone = older_than(self._connector, self._truncated, "t.") if self._truncated is not None else ""
        # The delete half of a key change whose new row came first, in an earlier slice (fold.py on deferred keys).
        merge = merge.whenMatchedUpdate(
            f"s.out_tx IS NOT NULL AND t.__moved = s.out_tx AND {newer}",
            {"__position": F.expr("s.pos"), "__moved": F.expr("CAST(NULL AS STRING)")},
        )
        if self._reads:
            wins = f"s.r IS NOT NULL AND (s.r_last OR NOT coalesce({newer}, false))"
            merge = merge.whenMatchedUpdate(wins, _quoted(self._read_over(newer)))
        merge = merge.whenMatchedUpdate(f"{newer} AND s.w.kind <> 'd'", _quoted(self._changed()))
        if self._keeps_deleted:
            # What a truncate took leaves no row behind that a later delete could mark.
            marked = newer
            if gone and self._truncates_softly is None:
                marked = f"{newer} AND (s.alive IS NOT NULL OR NOT {gone})"
            merge = merge.whenMatchedUpdate(marked, _quoted(self._deleted_softly()))
            stays = f"s.wiped AND NOT {gone}" if gone else "s.wiped"
            merge = merge.whenMatchedUpdate(stays, {"__deleted": F.lit(True), "__op": F.lit("d")})
        else:
            merge = merge.whenMatchedDelete(newer).whenMatchedDelete("s.wiped")
        if gone:
            if self._truncates_softly is not None:
                softly: dict[str, str | Column] = {"__deleted": F.lit(True), "__op": F.lit("t")}
                merge = merge.whenMatchedUpdate(gone, softly).whenNotMatchedBySourceUpdate(gone, softly)
            else:
                merge = merge.whenMatchedDelete(gone).whenNotMatchedBySourceDelete(gone)
        if self._keeps_deleted:
            merge = merge.whenMatchedUpdate(self._knows_older(), _quoted(self._last_values("s.alive")))
        if self._values is not None:
            merge = merge.whenMatchedUpdate("s.late_filled IS NOT NULL", _quoted(self._filled_late()))
        return merge.whenNotMatchedInsert(self._inserts(keys), _quoted(self._inserted(keys)))

    def _newer(self) -> str:
        """BOOLEAN: the change `s.w` is not older than the row `t`. Rows that PostgreSQL's snapshot read are older than
        any change that arrives after them."""
        pos, held = "s.pos", "t.__position"
        equal = f"NOT {is_later(self._connector, held, pos)} AND (s.w.kind <> 'd' OR s.wiped)"
        if self._values is not None:  # sent again it knows less than the row that it wrote
            equal = f"{equal} AND NOT (t.__filled IS NOT NULL AND t.__op = s.w.kind)"
        if self._connector != "postgresql":
            return f"(s.w IS NOT NULL AND ({is_later(self._connector, pos, held)} OR ({equal})))"
        # A snapshot row over a known position: a change at that position is one that is sent again.
        equal = f"{equal} AND t.__op <> 'r'"
        only_read = "contains(t.__position, 'r')"
        return f"(s.w IS NOT NULL AND ({only_read} OR {is_later(self._connector, pos, held)} OR ({equal})))"

    def _inserts(self, keys: DataFrame) -> str:
        """BOOLEAN: a key that the table does not have gets a row."""
        change = "(s.w IS NOT NULL AND s.w.kind <> 'd' AND NOT s.if_there)"
        if self._keeps_deleted:
            change = "(s.w IS NOT NULL AND (s.w.kind <> 'd' OR s.alive IS NOT NULL) AND NOT s.if_there)"
        return f"({change} OR (s.r IS NOT NULL AND (s.w IS NULL OR s.r_last)))" if "r" in keys.columns else change

    def _values_of(self, source: str) -> dict[str, Column]:
        """The source's columns from one record; what it lacks from what is known."""
        out = {}
        for i, name in enumerate(self._to.columns):
            value = f"{source}.row.c{i}"
            if self._values is not None and name in self._values.types:
                known = from_text(f"s.vals[{sql.text(name)}].value", self._values.types[name])
                value = f"CASE WHEN array_contains({source}.missing, {i}) THEN {known} ELSE {value} END"
            out[name] = F.expr(value)
        return out

    def _row(self, source: str) -> dict[str, Column]:
        """The row of one record (`s.w` or `s.r`) with its origin."""
        return {
            **self._values_of(source),
            "__op": F.expr(f"{source}.kind"),
            "__source_ts": F.expr(f"timestamp_millis({source}.ts_ms)"),
            "__topic": F.lit(self._to.topic),
            "__partition": F.expr(f"{source}.partition"),
            "__offset": F.expr(f"{source}.offset"),
        }

    def _deleted(self, position: str) -> dict[str, Column]:
        """`__deleted` of a row that is written with that position: true where a truncate came after it."""
        if not self._soft:
            return {}
        if self._truncates_softly is None:
            return {"__deleted": F.lit(False)}
        return {"__deleted": F.expr(is_later(self._connector, sql.text(self._truncates_softly), position))}

    def _filled(self) -> Column:
        return F.expr("s.filled") if self._values is not None else F.lit(None).cast("string")

    def _changed(self) -> dict[str, Column]:
        """A row of the table becomes the change `w`."""
        snapshot = F.expr(f"coalesce({_SNAPSHOT}, t.__snapshot)" if self._reads else "t.__snapshot")
        return {
            **self._row("s.w"),
            "__position": F.expr("s.pos"),
            "__snapshot": snapshot,
            "__moved": F.expr("s.moved"),
            "__filled": self._filled(),
            **self._deleted("s.pos"),
        }

    def _read_over(self, newer: str) -> dict[str, Column]:
        """A row of the table becomes the snapshot row `r`; the position already known stays."""
        position = (
            f"CASE WHEN s.w IS NOT NULL AND {newer} THEN s.pos"
            " WHEN contains(t.__position, 'r') THEN s.r.pos ELSE t.__position END"
        )
        return {
            **self._row("s.r"),
            "__position": F.expr(position),
            "__snapshot": F.expr(_SNAPSHOT),
            "__moved": F.lit(None).cast("string"),
            "__filled": F.lit(None).cast("string"),
            **self._deleted("s.r.pos"),
        }

    def _deleted_softly(self) -> dict[str, Column]:
        """A row of the table is deleted and stays, with the last values that are known of it."""
        known = "s.alive IS NOT NULL"
        origin = f"coalesce({_KNOWN_ORIGIN}, t.__position)"
        values = self._values_of("s.alive")
        kept = {n: F.when(F.expr(known), v).otherwise(F.expr(f"t.{sql.name(n)}")) for n, v in values.items()}
        own = {name: value for name, value in self._row("s.w").items() if name not in values}
        return {
            **kept,
            **own,
            "__position": F.expr("s.pos"),
            "__snapshot": F.expr("t.__snapshot"),
            "__moved": F.lit(None).cast("string"),
            "__filled": F.expr(origin_of_all(f"CASE WHEN {known} THEN s.alive.pos ELSE {origin} END")),
            "__deleted": F.lit(True),
        }

    def _knows_older(self) -> str:
        """BOOLEAN: the row stays deleted, and a change came late that is newer than its last values."""
        newer = is_later(self._connector, "s.alive.pos", _KNOWN_ORIGIN)
        return f"(t.__deleted AND s.alive IS NOT NULL AND {newer})"

    def _last_values(self, source: str) -> dict[str, Column]:
        return {**self._values_of(source), "__filled": F.expr(origin_of_all(f"{source}.pos"))}

    def _filled_late(self) -> dict[str, Column]:
        """A row of the table gets values that it lacked, or older ones than are known now."""
        assert self._values is not None
        out = {"__filled": F.expr("s.late_filled")}
        for name, kind in self._values.types.items():
            got = from_text(f"s.late[{sql.text(name)}].value", kind)
            out[name] = F.expr(
                f"CASE WHEN map_contains_key(s.late, {sql.text(name)}) THEN {got} ELSE t.{sql.name(name)} END"
            )
        return out

    def _inserted(self, keys: DataFrame) -> dict[str, Column]:
        """A new row: `r` where it is the last word, else `w`."""
        row = self._row("s.w")
        tail = {
            "__position": F.expr("s.pos"),
            "__snapshot": F.lit(None).cast("string"),
            "__moved": F.expr("CASE WHEN NOT s.moved_if_there THEN s.moved END"),
            "__filled": self._filled(),
            **self._deleted("s.pos"),
        }
        if self._keeps_deleted:
            row, tail = self._also_deleted(row, tail, late="dead_at" in keys.columns)
        if not self._reads:
            return {**row, **tail}
        last = F.expr("s.r IS NOT NULL AND (s.w IS NULL OR s.r_last)")
        read = {
            **self._row("s.r"),
            "__position": F.expr("coalesce(s.pos, s.r.pos)"),
            "__moved": F.lit(None).cast("string"),
            "__filled": F.lit(None).cast("string"),
            **self._deleted("s.r.pos"),
        }
        both = {
            name: F.when(last, read[name]).otherwise(value) for name, value in {**row, **tail}.items() if name in read
        }
        return {**both, "__snapshot": F.expr(_SNAPSHOT)}

    def _also_deleted(
        self, row: dict[str, Column], tail: dict[str, Column], *, late: bool
    ) -> tuple[dict[str, Column], dict[str, Column]]:
        """The same for keys whose last word is a delete: their row has the last values."""
        is_delete, dead = "s.w.kind = 'd'", "s.dead_at IS NOT NULL" if late else "false"
        gone = F.expr(f"{is_delete} OR {dead}")
        values = self._values_of("s.alive")
        row = {n: F.when(F.expr(is_delete), values[n]).otherwise(v) if n in values else v for n, v in row.items()}
        row["__op"] = F.when(gone, F.lit("d")).otherwise(row["__op"])
        position = "CASE WHEN s.dead_at IS NOT NULL THEN s.dead_at ELSE s.pos END" if late else "s.pos"
        origin = f"CASE WHEN {is_delete} THEN s.alive.pos ELSE s.pos END"
        tail = {
            **tail,
            "__position": F.expr(position),
            "__moved": F.when(~gone, tail["__moved"]),
            "__filled": F.when(gone, F.expr(origin_of_all(origin))).otherwise(tail["__filled"]),
            "__deleted": F.when(gone, F.lit(True)).otherwise(tail["__deleted"]),
        }
        return row, tail


_SNAPSHOT = (
    "CASE WHEN s.r IS NOT NULL THEN concat(s.r.pos, '#', array_join(array_distinct(array_compact(array("
    "s.r.read_id, s.reads_known))), '#')) ELSE CAST(NULL AS STRING) END"
)


def older_than(connector: str, position: str, row: str) -> str:
    """BOOLEAN: a row of the table is older than the position, a text, with all that is known of it: what a truncate
    there takes. `row` stands before the names of its columns (`t.`)."""
    at = sql.text(position)
    older = is_later(connector, at, f"{row}__position")
    if connector != "postgresql":
        return older
    read = f"substring_index({row}__snapshot, '#', 1)"
    return f"({older} AND ({row}__snapshot IS NULL OR {is_later(connector, at, read)}))"


def origin_of_all(position: str) -> str:
    """STRING: `__filled` of a row that stays after its delete: all its values come from the change at that position."""
    return f"to_json(map('{_ALL}', {position}))"


def _quoted(values: Mapping[str, Column]) -> dict[str, str | Column]:
    return {sql.name(name): value for name, value in values.items()}
