"""Fills in the values that the source did not send, from what the slice, the table and the memory of departures know.

Where a value comes from is kept in the row (`__filled`, JSON: column to the position of the change that brought its
value; empty: nothing is known of it; `@…#…`: it waits for what the row's old key held, whose last change has not come
yet, since the key change at the position after `#`). With it a change that comes late, or the other half of a key
change, still finds the rows that its value is for: the outcome does not depend on what came first.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.clauses import ALL
from distributary.merge.held import held_struct
from distributary.merge.kept import kept
from distributary.merge.position_sql import is_later
from distributary.merge.standing import dead_at, stays
from distributary.merge.values import NO_VALS, VALS, WAITS, Fillable, under_id

_NO_WAITS = f"CAST(map() AS {WAITS})"
_ORIGINS = f"coalesce(from_json(held.filled, '{WAITS}'), {_NO_WAITS})"
_DEEPEST = 10  # key changes of one row in one slice that are followed, each waiting for the one before


class Fill:
    """Filling in for one table. `key` are its key columns, name to Spark type; `keeps_deleted`: deleted rows stay;
    `soft` as held.with_held has it; `truncated` is the position of the slice's newest truncate."""

    def __init__(
        self,
        connector: str,
        key: Mapping[str, str],
        values: Fillable,
        *,
        keeps_deleted: bool,
        soft: bool = False,
        truncated: str | None = None,
    ) -> None:
        self._keeps_deleted = keeps_deleted
        self._soft = soft
        self._truncated = truncated
        self._connector = connector
        self._key = key
        self._values = values

    def departures(self, keys: DataFrame) -> DataFrame:
        """The rows of the slice that left their key: k STRUCT, id STRING, pos STRING, vals MAP, waits MAP.

        `keys` are folded with `held` beside them (see held.py). What a row held may itself wait for a departure. Where
        the table's row lies over the one that left, an earlier slice remembered that (see values.departures).
        """
        dead = dead_at(self._connector, "held.", soft=True, truncated=self._truncated, at="d.pos")
        left = keys.select("k", "held", F.explode("departures").alias("d")).where(
            f"d.if_there IS NULL OR d.if_there = (held IS NOT NULL AND NOT {dead} AND {self._stays('d')})"
        )
        held_before = f"held IS NOT NULL AND NOT {is_later(self._connector, 'held.position', 'd.pos')}"
        # A row at the departure's own position, which lived there, is what was put over the one that left: this is sent
        # again.
        lies_over = f"NOT {dead} AND NOT {is_later(self._connector, 'd.pos', 'held.position')}"
        if self._connector == "postgresql":  # what a snapshot read is older than any change
            lies_over = f"{lies_over} AND NOT contains(held.position, 'r')"
        # After a delete of the key what leaves is the table's row itself, unless that has come over it since.
        since = f"(d.life.left_at IS NULL OR {is_later(self._connector, 'held.position', 'd.life.left_at')})"
        below = f"d.life.base = 'table' AND coalesce(held.moved = d.tx, false) AND {since}"
        before = f"{held_before} AND NOT ({lies_over}) AND NOT ({below}) AND {self._stays('d.life')}"
        known = self._known("d.life", before)
        under = f"CASE WHEN {below} THEN {under_id('k', 'held.position', self._connector)} END"
        found = left.select(
            "k",
            F.expr("d.id").alias("id"),
            F.expr("d.pos").alias("pos"),
            F.expr(known).alias("vals"),
            F.expr(self._waits("d.life", known, before, under)).alias("waits"),
        )
        return found.where("id IS NOT NULL")

    @staticmethod
    def waited_for(departures: DataFrame) -> DataFrame:
        """The ids of the departures that others wait for: id STRING."""
        return departures.select(F.explode(F.map_values("waits")).alias("id"))

    def recalled(self, asked: DataFrame, remembered: DataFrame | None) -> DataFrame | None:
        """The remembered departures with the ids `asked`, those that they wait for themselves, and so on."""
        if remembered is None:
            return None
        recalled = None
        for _ in range(_DEEPEST):
            found = kept(remembered.join(asked.distinct(), "id", "left_semi"), eager=True)
            recalled = found if recalled is None else recalled.unionByName(found)
            asked = self.waited_for(found).join(recalled.select("id"), "id", "left_anti")
            if asked.isEmpty():
                break
        return recalled

    def settled(self, departures: DataFrame, remembered: DataFrame | None) -> DataFrame:
        """Departures (id, vals, waits) of which none waits for another one among them any more."""
        known = departures.select("id", "vals", "waits")
        if remembered is not None:
            known = known.unionByName(remembered)
        # The same departure may be there twice, sent again: whichever knows a value tells it.
        known = known.groupBy("id").agg(
            F.expr(f"reduce(collect_list(vals), {NO_VALS}, (a_, v_) -> {_prefer('a_', 'v_')})").alias("vals"),
            F.expr(f"reduce(collect_list(waits), {_NO_WAITS}, (a_, v_) -> {_prefer('a_', 'v_')})").alias("waits"),
        )
        known = kept(_without_needless_waits(known), eager=True)
        for _ in range(_DEEPEST):
            waiting = known.where("size(waits) > 0")
            ids = known.select(F.col("id").alias("known_id"))
            answered = waiting.select(F.explode(F.map_values("waits")).alias("on")).join(
                ids, F.col("on") == F.col("known_id")
            )
            if answered.isEmpty():
                break
            known = kept(self.answered(known, "id", known), eager=True)
        return known

    def answered(self, waiting: DataFrame, by: str, known: DataFrame) -> DataFrame:
        """`waiting` (column `by`, vals, waits, others) with what the departures `known` tell of what it waits for."""
        asked = waiting.where("size(waits) > 0").select(
            F.col(by).alias("asker"), F.explode("waits").alias("column", "on")
        )
        told = known.select(F.col("id").alias("told_id"), F.col("vals").alias("told"), F.col("waits").alias("still"))
        answers = (
            asked.join(told, F.col("on") == F.col("told_id"))
            .groupBy("asker")
            .agg(
                F.expr(
                    "map_from_entries(array_compact(collect_list(CASE WHEN map_contains_key(told, column)"
                    " THEN struct(column, element_at(told, column)) END)))"
                ).alias("got"),
                # What nobody knows any more is waited for no longer: ''.
                F.expr(
                    "map_from_entries(array_compact(collect_list(CASE WHEN NOT map_contains_key(told, column)"
                    " THEN struct(column, coalesce(element_at(still, column), '')) END)))"
                ).alias("now"),
            )
        )
        joined = waiting.join(answers, F.col(by).eqNullSafe(F.col("asker")), "left")
        vals = f"coalesce({_prefer('got', 'vals')}, vals)"
        waits = (
            "map_filter(map_zip_with(waits, coalesce(now, map()), (n_, w_, a_) -> coalesce(a_, w_)),"
            " (n_, w_) -> NOT map_contains_key(coalesce(got, map()), n_) AND w_ <> '')"
        )
        others = [c for c in waiting.columns if c not in ("vals", "waits")]
        return joined.select(
            *others, F.expr(f"CAST({vals} AS {VALS})").alias("vals"), F.expr(f"CAST({waits} AS {WAITS})").alias("waits")
        )

    def pushed(self, table: DataFrame, known: DataFrame) -> DataFrame:
        """Rows of the table that wait for one of the departures: k STRUCT and held STRUCT as it is now."""
        of_row = F.struct(
            *(F.col(sql.name(name)).cast(kind).alias(f"k{i}") for i, (name, kind) in enumerate(self._key.items()))
        )
        waiting = table.where("__filled LIKE '%\"@%'").select(
            of_row.alias("k"), held_struct(self._values, soft=self._soft).alias("held")
        )
        asked = waiting.select("k", F.expr("explode(map_values(held.waits))").alias("on"))
        ids = known.select(F.col("id").alias("known_id"))
        concerned = asked.join(ids, F.col("on") == F.col("known_id"), "left_semi").select("k").distinct()
        rows = waiting.join(concerned, "k", "left_semi").select("*", "held.vals", "held.waits")
        # What the new key held before the key change is another row's, also where it is newer than the value that came.
        since = _since(f"element_at({_ORIGINS}, n_)")
        vals = (
            "transform_values(vals, (n_, v_) -> CASE WHEN map_contains_key(held.waits, n_)"
            f" THEN named_struct('pos', {since}, 'value', v_.value) ELSE v_ END)"
        )
        return self.answered(rows, "k", known).select(
            "k",
            F.expr(
                "named_struct('position', held.position, 'snapshot', held.snapshot, 'moved', held.moved,"
                " 'filled', held.filled, 'op', held.op, 'deleted', held.deleted,"
                f" 'vals', CAST({vals} AS {VALS}), 'waits', waits)"
            ).alias("held"),
        )

    def filled(self, keys: DataFrame, known: DataFrame | None, pushed: DataFrame | None) -> DataFrame:
        """The keys with what the merge stores.

        vals MAP: the values for what is missing in the key's newest row; filled STRING: its `__filled`; unknown INT:
        how many values nothing is known of; late MAP and late_filled STRING: values for the table's row, where the
        slice does not replace it but knows values that it lacks.
        """
        if pushed is not None:
            keys = _with_pushed(keys, pushed)
        newest = "CASE WHEN w.kind <> 'd' THEN w ELSE alive END" if self._keeps_deleted else "w"
        held_at = "held.position"
        if self._keeps_deleted:  # a change that comes after the delete may be newer than the row's last values
            held_at = f"coalesce(element_at({_ORIGINS}, '{ALL}'), held.position)"
        held_before = f"held IS NOT NULL AND (pos IS NULL OR NOT {is_later(self._connector, held_at, 'pos')})"
        held_before = f"{held_before} AND {self._stays('life')}"
        known_vals = self._known("life", held_before)
        keys = keys.select(
            *keys.columns,
            F.expr(self._names(f"({newest}).missing")).alias("lacking"),
            F.expr(known_vals).alias("vals"),
            F.expr(self._waits("life", known_vals, held_before)).alias("waits"),
        )
        keys = keys.withColumn("waits", F.expr("map_filter(waits, (n_, w_) -> array_contains(lacking, n_))"))
        if known is not None:
            keys = self.answered(keys, "k", known)
        # A value that came with the row from its old key counts from the key change on: what the new key held before is
        # another row's.
        origin = (
            "CASE WHEN life.base = 'link' AND NOT map_contains_key(life.vals, n_) THEN life.begin ELSE vals[n_].pos END"
        )
        since = f"CASE WHEN life.base = 'link' THEN life.begin ELSE {_since(f'element_at({_ORIGINS}, n_)')} END"
        entry = (
            f"CASE WHEN map_contains_key(vals, n_) THEN {origin}"
            f" WHEN map_contains_key(waits, n_) THEN concat('@', waits[n_], '#', {since}) ELSE '' END"
        )
        of_new = f"transform(lacking, n_ -> struct(n_, {entry}))"
        return keys.select(
            *(c for c in keys.columns if c != "lacking"),
            F.expr(f"CASE WHEN size(lacking) > 0 THEN to_json(map_from_entries({of_new})) END").alias("filled"),
            F.expr(
                "size(filter(lacking, n_ -> NOT map_contains_key(vals, n_) AND NOT map_contains_key(waits, n_)))"
            ).alias("unknown"),
            F.expr(self._late()).alias("late"),
        ).withColumn("late_filled", F.expr(self._late_filled()))

    def _stays(self, of: str) -> str:
        return stays(self._connector, "held.", f"{of}.left_tx", f"{of}.left_at")

    def _known(self, life: str, held_before: str) -> str:
        """VALS: what is known of a life: by the slice and, where that is older, by the table's row; of both the newest.
        The slice may have an older change alone, sent again."""
        from_table = f"CASE WHEN {life}.base = 'table' AND {held_before} THEN held.vals ELSE {NO_VALS} END"
        later = is_later(self._connector, "b_.pos", "a_.pos")
        if self._connector == "postgresql":  # what a snapshot read counts by its arrival
            later = f"({later} AND NOT contains(a_.pos, 'r') AND NOT contains(b_.pos, 'r'))"
        newest = f"(n_, a_, b_) -> CASE WHEN a_ IS NULL OR {later} THEN b_ ELSE a_ END"
        known = f"map_zip_with(coalesce({life}.vals, {NO_VALS}), {from_table}, {newest})"
        return f"CAST({known} AS {VALS})"

    def _waits(self, life: str, known: str, held_before: str, under: str = "CAST(NULL AS STRING)") -> str:
        """WAITS: what the life waits for; where `under` is the id of a departure, for that with all that it lacks."""
        names = f"array({', '.join(sql.text(n) for n in self._values.types)})"
        on = (
            f"CASE WHEN map_contains_key({known}, n_) THEN NULL"
            f" WHEN {under} IS NOT NULL THEN {under}"
            f" WHEN {life}.base = 'link' THEN {life}.link"
            f" WHEN {life}.base = 'table' AND {held_before} THEN element_at(held.waits, n_) END"
        )
        return (
            f"CAST(map_from_entries(filter(transform({names}, n_ -> struct(n_ AS key, {on} AS value)),"
            f" e_ -> e_.value IS NOT NULL)) AS {WAITS})"
        )

    def _names(self, places: str) -> str:
        """ARRAY<STRING>: the fillable columns at those places of the row."""
        pairs = ", ".join(
            f"CASE WHEN array_contains({places}, {p}) THEN {sql.text(n)} END" for n, p in self._values.places.items()
        )
        return f"coalesce(array_compact(array({pairs})), CAST(array() AS ARRAY<STRING>))"

    def _late(self) -> str:
        """Values for the table's row: what it waited for, and what a change brings that is older than the row, but
        newer than where the row's own value comes from, or than the key change since which it waits for one."""
        origin = "element_at(origins_, n_)"
        brought = (
            f"map_filter(coalesce(life.vals, {NO_VALS}), (n_, v_) -> map_contains_key(origins_, n_)"
            f" AND ({origin} = '' OR {is_later(self._connector, 'v_.pos', _since(origin))})"
            f" AND {is_later(self._connector, 'held.position', 'v_.pos')})"
        )
        waited = "map_filter(held.vals, (n_, v_) -> coalesce(startswith(element_at(origins_, n_), '@'), false))"
        found = sql.let("origins_", _ORIGINS, _prefer(brought, waited))
        return f"CAST(CASE WHEN held IS NOT NULL THEN {found} ELSE {NO_VALS} END AS {VALS})"

    @staticmethod
    def _late_filled() -> str:
        now = (
            f"transform_values({_ORIGINS}, (n_, o_) -> CASE WHEN map_contains_key(late, n_) THEN late[n_].pos"
            " WHEN startswith(o_, '@')"
            f" THEN coalesce(concat('@', element_at(held.waits, n_), '#', {_since('o_')}), '') ELSE o_ END)"
        )
        return f"CASE WHEN held.filled IS NOT NULL THEN nullif(to_json({now}), held.filled) END"


def _since(origin: str) -> str:
    """STRING: the position from which an entry of `__filled` counts: a later change of the key knows more."""
    return f"substring_index({origin}, '#', -1)"


def _prefer(first: str, second: str) -> str:
    """The union of two maps; where both have a key, the first one's value."""
    return f"map_zip_with({first}, {second}, (n_, x_, y_) -> coalesce(x_, y_))"


def _without_needless_waits(known: DataFrame) -> DataFrame:
    needed = "map_filter(waits, (n_, w_) -> NOT map_contains_key(vals, n_) AND w_ <> id)"
    return known.withColumn("waits", F.expr(needed))


def _with_pushed(keys: DataFrame, pushed: DataFrame) -> DataFrame:
    """The keys, and those of other rows of the table that get a value; `held` knows what they get."""
    news = pushed.select(F.col("k").alias("pushed_k"), F.col("held").alias("pushed_held"))
    joined = keys.join(news, F.col("k").eqNullSafe(F.col("pushed_k")), "full")
    return joined.select(
        F.expr("coalesce(k, pushed_k)").alias("k"),
        F.expr("coalesce(pushed_held, held)").alias("held"),
        *(c for c in keys.columns if c not in ("k", "held")),
    )
