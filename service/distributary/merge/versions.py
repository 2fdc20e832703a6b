"""The versions of keys from the events that made them (see events.py). Pure: frames in, frames out, no Spark job.

Events are laid in the source's order, what came twice is taken once, and a change that leaves the row as it was is kept
beside the version it left (`same`): a late change may come between the two, and then it opens a version after all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge.events import SAME_TYPE
from distributary.merge.fold import KEYS_AT_COMMIT
from distributary.merge.kept import kept
from distributary.merge.position_sql import is_later, lsn_of
from distributary.sql import let

KEPT_SAME = 100
"""So many of the newest changes that left a version as it was are kept with it."""
_IS_ROW = "kind IN ('c', 'u', 'r')"
_ORDER = ("pos", "rank", "n")


def placed(events: DataFrame, connector: str, truncates: Sequence[str]) -> DataFrame:
    """Events with their place in the order, each taken once.

    Out, beside what events have: n INT, the order in which they came.
    """
    came = Window.partitionBy("k").orderBy("came", "at", "partition", "offset", "kind", "pos")
    earlier = came.rowsBetween(Window.unboundedPreceding, -1)
    beside = "(kind = 'x' OR kind = 'r')" if connector == "postgresql" else "kind = 'x'"
    arrived = events.select(
        "*",
        F.row_number().over(came).alias("n"),
        F.max(F.expr(f"CASE WHEN NOT (came = 1 AND {beside}) THEN reach END")).over(earlier).alias("known"),
        F.lag(F.struct("kind", "came")).over(came).alias("prior"),
    )
    own_later = f"known IS NULL OR known = '' OR {is_later(connector, 'own', 'known')}"
    stands = f"coalesce({_greatest('known', *map(sql.text, truncates))}, '')"
    start = (
        f"CASE WHEN came = 1 AND kind = 'x' THEN {stands}"
        f" WHEN came = 1 AND {beside} AND NOT ({own_later}) THEN known ELSE start END"
    )
    after_delete = "coalesce(prior.kind = 'd' AND prior.came = 1, false) OR (coalesce(prior.came, 0) = 0 AND carried)"
    place = (
        f"CASE WHEN came = 1 AND kind = 'x' THEN {stands}"
        f" WHEN came = 1 AND {beside} THEN coalesce(known, '') ELSE pos END"
    )
    stood = arrived.where(f"NOT (kind = 'x' AND came = 1 AND ({after_delete}))")
    stood = stood.withColumn("start", F.expr(start)).withColumn("pos", F.expr(place))
    if connector == "postgresql" and truncates:
        # A snapshot row stands after the truncates that its own position, or the one known, is not older than.
        before = [
            f"CASE WHEN NOT {is_later(connector, sql.text(t), 'start')} THEN {sql.text(t)} END" for t in truncates
        ]
        stood = stood.withColumn("pos", F.expr(f"CASE WHEN kind = 'r' THEN {_greatest('pos', *before)} ELSE pos END"))
    return _once(stood, connector)


def _greatest(*values: str) -> str:
    return f"greatest({', '.join(values)})" if len(values) > 1 else values[0]


def _once(events: DataFrame, connector: str) -> DataFrame:
    at = f"concat(left(pos, 4), {lsn_of('pos')})" if connector == "postgresql" else "pos"
    identity = f"CASE WHEN rank = 2 THEN concat(kind, coalesce(read_id, CAST(n AS STRING))) ELSE concat(kind, {at}) END"
    known = events.withColumn("identity", F.expr(identity))
    same = Window.partitionBy("k", "identity")
    there = Window.partitionBy("k", "pos")
    told = known.select(
        "*",
        F.row_number().over(same.orderBy("n")).alias("nth"),
        F.max("tx").over(same).alias("any_tx"),
        F.max("moved_out").over(same).alias("any_out"),
        F.max(F.expr(f"CASE WHEN rank = 1 AND {_IS_ROW} THEN n END")).over(there).alias("row_n"),
    )
    # A delete and a create of one position are one step; after a tombstone an equal position is accepted again.
    stays = "nth = 1 AND NOT (kind = 'd' AND row_n IS NOT NULL) AND NOT (kind = 'x' AND coalesce(row_n > n, false))"
    once = told.where(stays).withColumn("tx", F.col("any_tx")).withColumn("moved_out", F.col("any_out"))
    return once.drop("identity", "nth", "any_tx", "any_out", "row_n", "known", "prior")


_FLAGS = (
    "STRUCT<lives: BOOLEAN, tx: STRING, over: BOOLEAN, kept: ARRAY<INT>, overs: ARRAY<INT>>"
)  # fmt: skip


def with_key_changes(events: DataFrame, connector: str, *, moved: bool) -> DataFrame:
    """Adds over BOOLEAN (a key change put it over a living row) and kept BOOLEAN (a delete that does not take it: under
    a deferred constraint the transaction means the row that was there before). `moved`: there are key changes, or more
    is known than the current versions."""
    if not moved:
        kept_ = F.lit(False)
        if connector in KEYS_AT_COMMIT:
            before = F.lag(F.struct("tx", "held.over")).over(Window.partitionBy("k").orderBy(*_ORDER))
            kept_ = (F.col("kind") == "d") & F.coalesce(before["over"] & (before["tx"] == F.col("tx")), F.lit(False))
        return events.select("*", F.expr("coalesce(held.over, false)").alias("over"), kept_.alias("kept"))
    element = F.struct("pos", "rank", "n", "kind", "tx", "moved_in", "moved_out", F.col("held.over").alias("was_over"))
    any_moved = F.max("moved_in").over(Window.partitionBy("k"))
    # What is collected of a key is in memory together, and some keys have very many versions.
    moving = events.select("k", element.alias("e"), any_moved.alias("any_moved")).where("any_moved")
    lists = moving.groupBy("k").agg(F.sort_array(F.collect_list("e")).alias("es"))
    start = (
        f"CAST(named_struct('lives', false, 'tx', NULL, 'over', false, 'kept', array(), 'overs', array()) AS {_FLAGS})"
    )
    goes = "e.kind IN ('d', 't', 'x')"
    of_below = "true" if connector in KEYS_AT_COMMIT else "e.moved_out"
    keeps = f"e.kind = 'd' AND coalesce({of_below} AND s.over AND s.tx = e.tx, false)"
    over = "(coalesce(e.moved_in, false) AND (s.lives OR coalesce(e.was_over, false)))"
    step = f"""CAST(named_struct(
        'lives', CASE WHEN {goes} THEN s.lives AND {keeps} ELSE true END,
        'tx', CASE WHEN NOT {goes} AND e.moved_in THEN e.tx END,
        'over', NOT {goes} AND {over},
        'kept', CASE WHEN {keeps} THEN concat(s.kept, array(e.n)) ELSE s.kept END,
        'overs', CASE WHEN NOT {goes} AND {over} THEN concat(s.overs, array(e.n)) ELSE s.overs END) AS {_FLAGS})"""
    found = lists.select(F.col("k").alias("flag_k"), F.expr(f"aggregate(es, {start}, (s, e) -> {step})").alias("flags"))
    joined = events.join(found, F.col("k").eqNullSafe(F.col("flag_k")), "left")
    return joined.select(
        *events.columns,
        F.expr("coalesce(array_contains(flags.overs, n), false)").alias("over"),
        F.expr("coalesce(array_contains(flags.kept, n), false)").alias("kept"),
    )


def comparable(value: str, kind: str) -> str:
    """The value as something that can be compared: maps and variants can't."""
    if "variant" in kind:
        return f"to_json({value})"
    if kind.startswith("map<"):
        return f"array_sort(map_entries({value}))"
    return f"to_json({value})" if "map<" in kind else value


def versions(events: DataFrame, columns: Mapping[str, str], *, whole: bool) -> DataFrame:
    """The versions that have to be written. In: placed events with key changes told and values filled in; `whole`: all
    that is known of their keys is among them.

    Out: events' columns of the event that opened it, with end STRING (NULL while it is current), same ARRAY (see the
    module), and act STRING: insert, update (of the table's version with that start, kind and read_id) or delete.
    """
    order = Window.partitionBy("k").orderBy(*_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    lives = F.sum(F.expr(f"CASE WHEN {_IS_ROW} OR kept THEN 0 ELSE 1 END")).over(so_far)
    row = F.expr(f"struct({', '.join(comparable(f'row.c{i}', kind) for i, kind in enumerate(columns.values()))})")
    before = Window.partitionBy("k", "life").orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, -1)
    compared = events.withColumn("life", lives).withColumn("now", F.when(F.expr(_IS_ROW), row))
    compared = compared.withColumn("was", F.last("now", ignorenulls=True).over(before))
    told = compared.withColumn("role", F.expr(
        f"CASE WHEN kept THEN 'same' WHEN NOT ({_IS_ROW}) THEN 'end' WHEN was IS NOT NULL AND now <=> was THEN 'same'"
        " ELSE 'open' END"
    )).withColumn("number", F.sum(F.expr("CASE WHEN role = 'same' THEN 0 ELSE 1 END")).over(so_far))  # fmt: skip
    entry = (
        "named_struct('pos', pos, 'own', own, 'start', start, 'kind', kind, 'ts_ms', ts_ms, 'partition', partition,"
        " 'offset', offset, 'read_id', read_id, 'tx', tx, 'old_key', old_key, 'unsent', unsent)"
    )
    version = Window.partitionBy("k", "number").orderBy(*_ORDER)
    version = version.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    beside = F.collect_list(F.expr(f"CASE WHEN role = 'same' THEN CAST({entry} AS {SAME_TYPE}) END")).over(version)
    # Both what stays and what goes is read from it.
    listed = kept(told.withColumn("same", beside), eager=False)
    turns = F.lead(F.struct("kind", "start")).over(Window.partitionBy("k").orderBy(*_ORDER))
    edges = listed.where("role <> 'same'").withColumn("next", turns).where("role = 'open'")
    kept_before = "array()" if whole else "coalesce(held.same, array())"
    all_same = f"CAST(concat({kept_before}, same) AS ARRAY<{SAME_TYPE}>)"
    written = (
        edges.withColumn(
            "end", F.expr("CASE WHEN next.kind = 'x' THEN greatest(next.start, start) ELSE next.start END")
        )
        .withColumn(
            "same",
            F.expr(let("all_", all_same, f"slice(all_, -least({KEPT_SAME}, greatest(size(all_), 1)), {KEPT_SAME})")),
        )
        .withColumn("act", F.expr(_ACT))
        .where("act IS NOT NULL")
    )
    names = [*events.columns, "end", "same", "act"]
    if not whole:
        return written.select(*names)
    # A version that a late change made into one that changes nothing.
    gone = listed.where("role = 'same' AND held IS NOT NULL")
    gone = gone.withColumn("end", F.lit(None).cast("string")).withColumn("act", F.lit("delete"))
    return written.select(*names).unionByName(gone.select(*names))


_AS_HELD = (
    "held.end <=> end AND coalesce(held.over, false) = over AND coalesce(held.same, array()) = same AND NOT filled"
)
_ACT = f"CASE WHEN held IS NULL THEN 'insert' WHEN NOT ({_AS_HELD}) THEN 'update' END"
