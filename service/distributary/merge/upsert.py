"""One MERGE for `mode: upsert`: what of the folded keys is newer than the table's rows, applied in one commit.

Beside the source's columns a row carries where it comes from: `__op`, `__source_ts`, `__position`, `__topic`,
`__partition`, `__offset`; and what later records must know of it: `__snapshot`, the snapshot row last taken in
(PostgreSQL: its own position and the identity of its source block), and `__moved`, the transaction in which a key
change put this row over a living one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary.config.table import TableSettings
from distributary.decode import sql
from distributary.decode.position import is_later
from distributary.merge.facts import Facts
from distributary.merge.fold import folded
from distributary.merge.mode import ORIGIN_COLUMNS, DecodedSlice, Destination, Details

SERVICE_COLUMNS: Mapping[str, str] = {**ORIGIN_COLUMNS, "__snapshot": "string", "__moved": "string"}


class UpsertMode:
    """`mode: upsert`: one row per key, the newest state."""

    def __init__(self, settings: TableSettings) -> None:
        self._settings = settings

    @property
    def service_columns(self) -> Mapping[str, str]:
        """Where a row comes from, and what later records must know of it."""
        return SERVICE_COLUMNS

    def wants(self, found: Facts | None) -> Details:  # noqa: ARG002
        """The row is enough."""
        return Details()

    def write(self, to: Destination, part: DecodedSlice) -> Callable[[], None]:
        """Folds the slice to one row per key and merges it; deletes are remembered before."""
        found = part.found
        if not (found.reads or found.changes or found.deletes or part.truncated):
            return to.lake.nothing()
        keys = folded(part.records, to.connector, part.truncated_ever)
        if part.first:
            to.deletes.forget_all()
        elif found.late or (found.reads and to.connector == "postgresql"):
            keys = to.deletes.without_older(keys, to.connector, to.key)
        # Two jobs read the folded keys (remembered deletes, MERGE); MERGE refuses a source that is merely cached.
        keys = keys.localCheckpoint(eager=True)
        if found.deletes:
            to.deletes.remember(keys, datetime.now(timezone.utc).date())
        reads = to.connector == "postgresql" and found.reads > 0
        upsert = Upsert(to.topic, to.connector, to.columns, to.key, reads=reads)
        if part.first:
            return to.lake.append(upsert.rows_to_insert(keys))
        return to.lake.merge(upsert.merge(to.lake.delta(), keys, part.truncated))


class Upsert:
    """The merge of folded keys into one table.

    `columns` and `key` are the table's source columns and key columns (name to Spark type), in the order of the
    decoded rows' fields c0, c1 … and k0, k1 …; `reads` tells whether snapshot rows stand beside the changes.
    """

    def __init__(
        self, topic: str, connector: str, columns: Mapping[str, str], key: Mapping[str, str], *, reads: bool
    ) -> None:
        self._topic = topic
        self._connector = connector
        self._columns = columns
        self._key = key
        self._reads = reads

    def rows_to_insert(self, keys: DataFrame) -> DataFrame:
        """The rows that an empty table gets: the living ones, with all columns of the table."""
        rows = keys.alias("s").where(self._lives("s"))
        return rows.select(*(value.alias(name) for name, value in self._inserted("s").items()))

    def merge(self, table: DeltaTable, keys: DataFrame, truncated: str | None) -> DeltaMergeBuilder:
        """The MERGE, to be executed by the caller. Rows older than the truncate at `truncated` go with it."""
        on = " AND ".join(f"t.{sql.name(name)} <=> s.k.k{i}" for i, name in enumerate(self._key))
        merge = table.alias("t").merge(keys.alias("s"), on or "false")
        newer = self._newer()
        # The delete half of a key change whose new row came first, in an earlier slice (fold.py on deferred keys).
        merge = merge.whenMatchedUpdate(
            f"s.out_tx IS NOT NULL AND t.__moved = s.out_tx AND {newer}",
            {"__position": F.expr("s.pos"), "__moved": F.expr("CAST(NULL AS STRING)")},
        )
        if self._reads:
            unseen = "NOT coalesce(endswith(t.__snapshot, concat('#', s.r.read_id)), false)"
            wins = f"s.r IS NOT NULL AND {unseen} AND (s.r_last OR NOT coalesce({newer}, false))"
            merge = merge.whenMatchedUpdate(wins, self._quoted_names(self._read_over("t", newer)))
        merge = merge.whenMatchedUpdate(f"{newer} AND s.w.kind <> 'd'", self._quoted_names(self._changed("s")))
        merge = merge.whenMatchedDelete(newer)
        merge = merge.whenMatchedDelete("s.wiped")
        if truncated is not None:
            gone = self._older_than(truncated)
            merge = merge.whenMatchedDelete(gone).whenNotMatchedBySourceDelete(gone)
        return merge.whenNotMatchedInsert(self._lives("s"), self._quoted_names(self._inserted("s")))

    def _newer(self) -> str:
        """BOOLEAN: the change `s.w` is not older than the row `t`. Rows that PostgreSQL's snapshot read are older than
        any change that arrives after them."""
        pos, held = "s.pos", "t.__position"
        equal = f"NOT {is_later(self._connector, held, pos)} AND (s.w.kind <> 'd' OR s.wiped)"
        after = f"({is_later(self._connector, pos, held)} OR ({equal}))"
        if self._connector == "postgresql":
            # A snapshot row over a known position: a change at that position is one that is sent again.
            equal = f"{equal} AND t.__op <> 'r'"
            after = f"(t.__position LIKE '%r%' OR {is_later(self._connector, pos, held)} OR ({equal}))"
        return f"(s.w IS NOT NULL AND {after})"

    def _older_than(self, truncated: str) -> str:
        at = f"'{truncated}'"
        older = is_later(self._connector, at, "t.__position")
        if self._connector != "postgresql":
            return older
        read = "substring_index(t.__snapshot, '#', 1)"
        return f"({older} AND (t.__snapshot IS NULL OR {is_later(self._connector, at, read)}))"

    @staticmethod
    def _lives(s: str) -> str:
        change = f"({s}.w IS NOT NULL AND {s}.w.kind <> 'd' AND NOT {s}.if_there)"
        return f"({change} OR ({s}.r IS NOT NULL AND ({s}.w IS NULL OR {s}.r_last)))"

    def _values(self, source: str) -> dict[str, Column]:
        """The row of one record (`s.w` or `s.r`) with its origin."""
        values = {name: F.expr(f"{source}.row.c{i}") for i, name in enumerate(self._columns)}
        values |= {
            "__op": F.expr(f"{source}.kind"),
            "__source_ts": F.expr(f"timestamp_millis({source}.ts_ms)"),
            "__topic": F.lit(self._topic),
            "__partition": F.expr(f"{source}.partition"),
            "__offset": F.expr(f"{source}.offset"),
        }
        return values

    def _changed(self, s: str) -> dict[str, Column]:
        """A row of the table becomes the change `w`."""
        return {
            **self._values(f"{s}.w"),
            "__position": F.expr(f"{s}.pos"),
            "__snapshot": F.expr(f"coalesce({self._snapshot(s)}, t.__snapshot)")
            if self._reads
            else F.expr("t.__snapshot"),
            "__moved": F.expr(f"{s}.moved"),
        }

    def _read_over(self, t: str, newer: str) -> dict[str, Column]:
        """A row of the table becomes the snapshot row `r`; the position already known stays."""
        return {
            **self._values("s.r"),
            "__position": F.expr(
                f"CASE WHEN s.w IS NOT NULL AND {newer} THEN s.pos"
                f" WHEN {t}.__position LIKE '%r%' THEN s.r.pos ELSE {t}.__position END"
            ),
            "__snapshot": F.expr(self._snapshot("s")),
            "__moved": F.expr("CAST(NULL AS STRING)"),
        }

    def _inserted(self, s: str) -> dict[str, Column]:
        """A new row: `r` where it is the last word, else `w`."""
        from_change = self._values(f"{s}.w")
        tail = {
            "__position": F.expr(f"{s}.pos"),
            "__snapshot": F.expr("CAST(NULL AS STRING)"),
            "__moved": F.expr(f"CASE WHEN NOT {s}.moved_if_there THEN {s}.moved END"),
        }
        if not self._reads:
            return {**from_change, **tail}
        last = F.expr(f"{s}.r IS NOT NULL AND ({s}.w IS NULL OR {s}.r_last)")
        from_read = self._values(f"{s}.r")
        row = {name: F.when(last, from_read[name]).otherwise(value) for name, value in from_change.items()}
        return {
            **row,
            **tail,
            "__position": F.expr(f"coalesce({s}.pos, {s}.r.pos)"),
            "__snapshot": F.expr(self._snapshot(s)),
            "__moved": F.when(~last, tail["__moved"]),
        }

    @staticmethod
    def _snapshot(s: str) -> str:
        return f"CASE WHEN {s}.r IS NOT NULL THEN concat({s}.r.pos, '#', {s}.r.read_id) END"

    @staticmethod
    def _quoted_names(values: Mapping[str, Column]) -> dict[str, str | Column]:
        return {sql.name(name): value for name, value in values.items()}
