"""The one MERGE of `mode: upsert`: what of the folded keys is newer than the table's rows, applied in one commit.

Beside the source's columns a row carries where it comes from (mode.ORIGIN_COLUMNS) and what later records must know of
it: `__snapshot`, the snapshot rows taken in (PostgreSQL: position of the last, then the identities of their source
blocks, after `#`); `__moved`, the transaction in which a key change put this row over a living one; `__filled`, where
values come from that its newest change did not bring (see fill.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.clause import Clause, Rows, with_kind
from distributary.merge.mode import ORIGIN_COLUMNS, Destination
from distributary.merge.position_sql import is_later, is_snapshot_row
from distributary.merge.queries import Query
from distributary.merge.standing import dead_at, older_than, stays
from distributary.merge.values import WAITS, Fillable, from_text

SERVICE_COLUMNS: Mapping[str, str] = {
    **ORIGIN_COLUMNS,
    "__snapshot": "string",
    "__moved": "string",
    "__filled": "string",
}
SOFT_COLUMNS: Mapping[str, str] = {"__deleted": "boolean"}
# In `__filled` of a row that stays after its delete: the position of the change that all its values come from, but
# for those that it waits for.
ALL = "*"
_NO_TEXT = "CAST(NULL AS STRING)"
_KNOWN_ORIGIN = f"element_at(from_json(t.__filled, '{WAITS}'), '{ALL}')"


class Clauses:
    """The merge of folded keys into one table.

    `reads`: snapshot rows stand beside the changes; `values`: the columns whose value may be missing; `keeps_deleted`:
    deleted rows stay; `soft`: the table has `__deleted`; `truncated` and `truncated_ever` as in mode.DecodedSlice;
    `moved`: there are key changes with headers; `late`: keys have `dead_at` (see upsert.UpsertMode).
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
        moved: bool,
        late: bool = False,
    ) -> None:
        self._to = to
        self._connector = to.connector
        self._reads = reads
        self._values = values
        self._keeps_deleted = keeps_deleted
        self._soft = soft
        self._truncated = truncated
        self._moved = moved
        self._late = late
        self._truncates_softly = truncated_ever if to.settings.truncate == "soft" else None

    def shared(self, *, first: bool) -> bool:
        """Whether all that the clauses ask of the table's row they say in SQL that Spark and DataFusion understand
        alike; what only the slice tells Spark computes beforehand (see flat.py). `first`: the table has no rows."""
        if self._values is not None:
            return False
        return first or not (self._reads or self._keeps_deleted or self._truncated is not None)

    def rows_to_insert(self, keys: Query) -> Query:
        """The rows that an empty table gets, with all columns of the table."""
        inserts, values = self._inserts(), self._inserted()

        def rows(known: DataFrame) -> DataFrame:
            lives = with_kind(known).alias("s").where(inserts)
            return lives.select(*(F.expr(value).alias(name) for name, value in values.items()))

        return keys.then((inserts, values), rows)

    def told(self, keys: DataFrame) -> DataFrame:
        """The keys with lives BOOLEAN, whether an empty table gets a row of it, and made STRUCT, that row."""
        row = F.struct(*(F.expr(value).alias(name) for name, value in self._inserted().items()))
        return with_kind(keys).alias("s").select("*", F.expr(self._inserts()).alias("lives"), row.alias("made"))

    def clauses(self) -> Iterator[Clause]:
        """The merge of the keys into the table. Rows older than the truncate go with it."""
        newer = self._newer()
        gone = older_than(self._connector, self._truncated, "t.__") if self._truncated is not None else ""
        late = self._filled_late() if self._values is not None else {}
        # The delete half of a key change whose new row came first, in an earlier slice (fold.py on deferred keys).
        half = f"s.out_tx IS NOT NULL AND t.__moved = s.out_tx AND {newer}"
        left = {**late, "__position": "s.pos", "__moved": _NO_TEXT}
        if gone and self._truncates_softly is not None:
            left["__deleted"] = f"coalesce(t.__deleted, false) OR {gone}"
            left["__op"] = f"CASE WHEN {gone} THEN 't' ELSE t.__op END"
        yield Clause(Rows.BOTH, half, left)
        if self._reads:
            wins = f"s.r IS NOT NULL AND (s.r_last OR NOT coalesce({newer}, false))"
            yield Clause(Rows.BOTH, wins, self._read_over(newer))
        yield from self._changes(newer)
        if self._keeps_deleted:
            # What a truncate took leaves no row behind that a later delete could mark.
            marked = newer
            if gone and self._truncates_softly is None:
                marked = f"{newer} AND (s.alive IS NOT NULL OR NOT {gone})"
            yield Clause(Rows.BOTH, marked, self._deleted_softly())
            wiped = f"s.wiped AND NOT {gone}" if gone else "s.wiped"
            yield Clause(Rows.BOTH, wiped, {**late, "__deleted": "true", "__op": "'d'"})
        else:
            yield Clause(Rows.BOTH, newer)
            yield Clause(Rows.BOTH, "s.wiped")
        if gone:
            softly = {"__deleted": "true", "__op": "'t'"} if self._truncates_softly is not None else None
            yield Clause(Rows.BOTH, gone, {**late, **softly} if softly is not None else None)
            yield Clause(Rows.TABLE_ONLY, gone, softly)
        if self._keeps_deleted:
            yield Clause(Rows.BOTH, self._knows_older(), self._last_values("s.alive"))
        if late:
            yield Clause(Rows.BOTH, "s.late_filled IS NOT NULL", late)
        yield Clause(Rows.KEYS_ONLY, self._inserts(), self._inserted())

    def _changes(self, newer: str) -> Iterator[Clause]:
        """The row becomes the change `w`, which is no delete."""
        when, values = f"{newer} AND s.kind <> 'd'", self._changed()
        if self._moved:
            # What was brought before, and is sent again, is no row that was there; it knows whether it lies over one.
            brought = f"{self._is_held('s.since')} AND t.__moved IS NULL"
            went = f"NOT {stays(self._connector, 't.__', 's.left_tx', 's.left_at')}"
            nothing = " OR ".join((f"({brought})", went, *self._dead("s.since")))
            when = f"{when} AND NOT (s.if_there AND ({nothing}))"
            known = {name: value for name, value in values.items() if name != "__moved"}
            yield Clause(Rows.BOTH, f"{when} AND s.moved_if_there AND {self._is_held('s.pos')}", known)
            nothing = " OR ".join((went, *self._dead("s.pos")))
            yield Clause(Rows.BOTH, f"{when} AND s.moved_if_there AND ({nothing})", {**known, "__moved": _NO_TEXT})
        yield Clause(Rows.BOTH, when, values)

    def _dead(self, at: str) -> tuple[str, ...]:
        """BOOLEAN: the table's row is not one of the source's at that position; nothing where each is one."""
        found = dead_at(self._connector, "t.__", soft=self._soft, truncated=self._truncated, at=at)
        return (found,) if found is not None else ()

    def _is_held(self, position: str) -> str:
        """BOOLEAN: the table's row is at that position."""
        held = "t.__position"
        later = [is_later(self._connector, *two) for two in ((position, held), (held, position))]
        return f"(NOT {later[0]} AND NOT {later[1]})"

    def _newer(self) -> str:
        """BOOLEAN: the change `s.w` is not older than the row `t`. Rows that PostgreSQL's snapshot read are older than
        any change that arrives after them."""
        pos, held = "s.pos", "t.__position"
        equal = f"NOT {is_later(self._connector, held, pos)} AND (s.kind <> 'd' OR s.wiped)"
        if self._values is not None:  # sent again it knows less than the row that it wrote
            equal = f"{equal} AND NOT (t.__filled IS NOT NULL AND t.__op = s.kind)"
        if self._connector != "postgresql":
            return f"(s.kind IS NOT NULL AND ({is_later(self._connector, pos, held)} OR ({equal})))"
        # A snapshot row over a known position: a change at that position is one that is sent again.
        equal = f"{equal} AND t.__op <> 'r'"
        only_read = is_snapshot_row("t.__position")
        return f"(s.kind IS NOT NULL AND ({only_read} OR {is_later(self._connector, pos, held)} OR ({equal})))"

    def _inserts(self) -> str:
        """BOOLEAN: a key that the table does not have gets a row."""
        change = "(s.kind IS NOT NULL AND s.kind <> 'd' AND NOT s.if_there)"
        if self._keeps_deleted:
            change = "(s.kind IS NOT NULL AND (s.kind <> 'd' OR s.alive IS NOT NULL))"
        return f"({change} OR (s.r IS NOT NULL AND (s.kind IS NULL OR s.r_last)))" if self._reads else change

    def _values_of(self, source: str) -> dict[str, str]:
        """The source's columns from one record; what it lacks from what is known."""
        out = {}
        for i, name in enumerate(self._to.columns):
            value = f"{source}.row.c{i}"
            if self._values is not None and name in self._values.types:
                known = from_text(f"s.vals[{sql.text(name)}].value", self._values.types[name])
                value = f"CASE WHEN array_contains({source}.missing, {i}) THEN {known} ELSE {value} END"
            out[name] = value
        return out

    def _row(self, source: str) -> dict[str, str]:
        """The row of one record (`s.w` or `s.r`) with its origin."""
        return {
            **self._values_of(source),
            "__op": f"{source}.kind",
            "__source_ts": f"timestamp_millis({source}.ts_ms)",
            "__topic": sql.text(self._to.topic),
            "__partition": f"{source}.partition",
            "__offset": f"{source}.offset",
        }

    def _deleted(self, position: str) -> dict[str, str]:
        """`__deleted` of a row that is written with that position: true where a truncate came after it."""
        if not self._soft:
            return {}
        if self._truncates_softly is None:
            return {"__deleted": "false"}
        return {"__deleted": is_later(self._connector, sql.text(self._truncates_softly), position)}

    def _filled(self) -> str:
        return "s.filled" if self._values is not None else _NO_TEXT

    def _changed(self) -> dict[str, str]:
        """A row of the table becomes the change `w`."""
        return {
            **self._row("s.w"),
            "__position": "s.pos",
            **({"__snapshot": f"coalesce({_SNAPSHOT}, t.__snapshot)"} if self._reads else {}),
            "__moved": "s.moved",
            "__filled": self._filled(),
            **self._deleted("s.pos"),
        }

    def _read_over(self, newer: str) -> dict[str, str]:
        """A row of the table becomes the snapshot row `r`; the position already known stays."""
        position = (
            f"CASE WHEN s.kind IS NOT NULL AND {newer} THEN s.pos"
            f" WHEN {is_snapshot_row('t.__position')} THEN s.r.pos ELSE t.__position END"
        )
        return {
            **self._row("s.r"),
            "__position": position,
            "__snapshot": _SNAPSHOT,
            "__moved": _NO_TEXT,
            "__filled": _NO_TEXT,
            **self._deleted("s.r.pos"),
        }

    def _deleted_softly(self) -> dict[str, str]:
        """A row of the table is deleted and stays, with the last values that are known of it."""
        origin = f"coalesce({_KNOWN_ORIGIN}, t.__position)"
        # Before the delete the slice may have had older changes alone, sent again.
        known = f"s.alive IS NOT NULL AND NOT {is_later(self._connector, origin, 's.alive.pos')}"
        if self._connector == "postgresql":  # what a snapshot read counts by its arrival
            known = f"s.alive IS NOT NULL AND (s.alive.kind = 'r' OR {is_snapshot_row(origin)} OR {known})"
        values = self._values_of("s.alive")
        kept = {n: f"CASE WHEN {known} THEN {v} ELSE {self._late_value(n)} END" for n, v in values.items()}
        # A delete ends no waiting: the last values of a row are those of its old key, whenever they come.
        filled = "coalesce(s.late_filled, t.__filled)" if self._values is not None else "t.__filled"
        filled = f"CASE WHEN {known} THEN {self._filled()} ELSE {filled} END"
        own = {name: value for name, value in self._row("s.w").items() if name not in values}
        return {
            **kept,
            **own,
            "__op": "'d'",
            "__position": "s.pos",
            "__moved": _NO_TEXT,
            "__filled": origin_of_all(f"CASE WHEN {known} THEN s.alive.pos ELSE {origin} END", filled),
            "__deleted": "true",
        }

    def _knows_older(self) -> str:
        """BOOLEAN: the row stays deleted, and a change came late that is newer than its last values."""
        newer = is_later(self._connector, "s.alive.pos", _KNOWN_ORIGIN)
        return f"(t.__deleted AND s.alive IS NOT NULL AND {newer})"

    def _last_values(self, source: str) -> dict[str, str]:
        return {**self._values_of(source), "__filled": origin_of_all(f"{source}.pos", self._filled())}

    def _filled_late(self) -> dict[str, str]:
        """A row of the table gets values that it lacked, or older ones than are known now."""
        assert self._values is not None
        values = {name: self._late_value(name) for name in self._values.types}
        return {"__filled": "coalesce(s.late_filled, t.__filled)", **values}

    def _late_value(self, column: str) -> str:
        """A value of the table's row, with what it gets where that lacked it."""
        held = f"t.{sql.name(column)}"
        if self._values is None or column not in self._values.types:
            return held
        got = from_text(f"s.late[{sql.text(column)}].value", self._values.types[column])
        return f"CASE WHEN map_contains_key(s.late, {sql.text(column)}) THEN {got} ELSE {held} END"

    def _inserted(self) -> dict[str, str]:
        """A new row: `r` where it is the last word, else `w`."""
        row = self._row("s.w")
        tail = {
            "__position": "s.pos",
            "__snapshot": _NO_TEXT,
            "__moved": "CASE WHEN NOT s.moved_if_there THEN s.moved END",
            "__filled": self._filled(),
            **self._deleted("s.pos"),
        }
        if self._keeps_deleted:
            row, tail = self._also_deleted(row, tail, late=self._late)
        if not self._reads:
            return {**row, **tail}
        last = "s.r IS NOT NULL AND (s.kind IS NULL OR s.r_last)"
        read = {
            **self._row("s.r"),
            "__position": "coalesce(s.pos, s.r.pos)",
            "__moved": _NO_TEXT,
            "__filled": _NO_TEXT,
            **self._deleted("s.r.pos"),
        }
        both = {
            name: f"CASE WHEN {last} THEN {read[name]} ELSE {value} END"
            for name, value in {**row, **tail}.items()
            if name in read
        }
        return {**both, "__snapshot": _SNAPSHOT}

    def _also_deleted(
        self, row: dict[str, str], tail: dict[str, str], *, late: bool
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The same for keys whose last word is a delete: their row has the last values."""
        is_delete = "(s.kind = 'd' OR s.if_there)" if self._moved else "s.kind = 'd'"
        gone = f"({is_delete} OR {'s.dead_at IS NOT NULL' if late else 'false'})"
        values = self._values_of("s.alive")
        row = {n: f"CASE WHEN {is_delete} THEN {values[n]} ELSE {v} END" if n in values else v for n, v in row.items()}
        row["__op"] = f"CASE WHEN {gone} THEN 'd' ELSE {row['__op']} END"
        position = "CASE WHEN s.dead_at IS NOT NULL THEN s.dead_at ELSE s.pos END" if late else "s.pos"
        origin = origin_of_all(f"CASE WHEN {is_delete} THEN s.alive.pos ELSE s.pos END", self._filled())
        tail = {
            **tail,
            "__position": position,
            "__moved": f"CASE WHEN NOT {gone} THEN {tail['__moved']} END",
            "__filled": f"CASE WHEN {gone} THEN {origin} ELSE {tail['__filled']} END",
            "__deleted": f"CASE WHEN {gone} THEN true ELSE {tail['__deleted']} END",
        }
        return row, tail


_SNAPSHOT = (
    "CASE WHEN s.r IS NOT NULL THEN concat(s.r.pos, '#', coalesce(s.reads_known, '')) ELSE CAST(NULL AS STRING) END"
)


def origin_of_all(position: str, filled: str) -> str:
    """STRING: `__filled` of a row that stays after its delete: all its values come from the change at that position,
    but for those that the row waits for, which `filled` tells, its `__filled` without the delete."""
    if filled == _NO_TEXT:
        return f"to_json(map('{ALL}', {position}))"
    waits = f"map_filter(from_json({filled}, '{WAITS}'), (n_, o_) -> startswith(o_, '@') AND n_ <> '{ALL}')"
    return f"to_json(map_concat(map('{ALL}', {position}), coalesce({waits}, CAST(map() AS {WAITS}))))"
