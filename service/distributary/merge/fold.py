"""The last word on each key: the records of one slice folded to at most one row per key.

The fold walks a key's records in the order they arrived (offset within a partition, timestamp across partitions) and
keeps what the rules of order say. It is one aggregate expression that runs in the JVM; what depends on the row that
the table holds (is the slice older than it? was there a row at all?) is left to the merge, see upsert.py.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary.decode.position import is_later
from distributary.decode.sql import let

# What the walk needs of a record, and the record's row with what is stored beside it.
_STEP_FIELDS = ("kind", "pos", "tx", "read_id", "moved_in", "moved_out", "carried", "partition", "offset", "timestamp")
_STORED_FIELDS = ("kind", "pos", "read_id", "ts_ms", "partition", "offset", "row")


def folded(records: DataFrame, connector: str, truncated: str | None) -> DataFrame:
    """Decoded records folded by key.

    Records older than `truncated` (the position of the newest truncate) are left out. Out, one row per key:

    * k STRUCT, the key
    * w STRUCT<kind, pos, …, row>: the newest change, NULL where there is none; `pos` STRING: the position the key
      reaches with it
    * r STRUCT, alike: the newest snapshot row that stands beside the changes (PostgreSQL only); `r_last` BOOLEAN: it
      came after `w`
    * wiped BOOLEAN: a tombstone without a delete took the key's row away, `w` came after it
    * if_there BOOLEAN: `w` lives only if the table has a row of that key (see _walk on deferred keys)
    * moved STRING: the transaction in which a key change put `w` over a living row, so that a delete of the same
      transaction is the old row's; NULL for none; `moved_if_there` BOOLEAN: only if the table has a row of that key
    * out_tx STRING: `w` is the delete half of a key change of that transaction
    """
    usable = records.where("bad IS NULL AND kind NOT IN ('t', 'm')")
    if truncated is not None:
        usable = usable.where(f"pos IS NULL OR NOT {is_later(connector, _quoted(truncated), 'pos')}")
    element = F.struct(*_STEP_FIELDS, "ts_ms", "row").alias("e")
    collected = usable.groupBy("k").agg(F.collect_list(element).alias("es"))
    ordered = collected.select("k", F.expr(_IN_ORDER).alias("es"))
    walked = ordered.select("k", "es", F.expr(_walk(connector)).alias("s"))
    stored = ", ".join(f"'{name}', {{e}}.{name}" for name in _STORED_FIELDS)
    return walked.select(
        "k",
        F.expr(_element("s.w", stored)).alias("w"),
        F.expr("s.pos").alias("pos"),
        F.expr(_element("s.r", stored)).alias("r"),
        F.expr("s.r > s.w").alias("r_last"),
        F.expr("s.wiped").alias("wiped"),
        F.expr("s.if_there").alias("if_there"),
        F.expr("CASE WHEN s.over <> 'no' THEN s.moved END").alias("moved"),
        F.expr("s.over = 'ask'").alias("moved_if_there"),
        F.expr("CASE WHEN es[s.w - 1].moved_out THEN es[s.w - 1].tx END").alias("out_tx"),
    ).where("w IS NOT NULL OR r IS NOT NULL OR wiped")


def _quoted(position: str) -> str:
    return f"'{position}'"


def _element(index: str, stored: str) -> str:
    return f"CASE WHEN {index} > 0 THEN named_struct({stored.format(e=f'es[{index} - 1]')}) END"


# Offsets order the records of one partition. A key whose records lie in two partitions (the topic got more of them)
# is ordered by timestamp.
_BY_OFFSET = "CASE WHEN a.offset < b.offset THEN -1 WHEN a.offset > b.offset THEN 1 ELSE 0 END"
_BY_TIME = (
    "CASE WHEN struct(a.timestamp, a.partition, a.offset) < struct(b.timestamp, b.partition, b.offset) THEN -1"
    " WHEN struct(a.timestamp, a.partition, a.offset) > struct(b.timestamp, b.partition, b.offset) THEN 1 ELSE 0 END"
)
_IN_ORDER = (
    "CASE WHEN size(es) = 1 THEN es"
    " WHEN array_min(transform(es, e -> e.partition)) = array_max(transform(es, e -> e.partition))"
    f" THEN array_sort(es, (a, b) -> {_BY_OFFSET}) ELSE array_sort(es, (a, b) -> {_BY_TIME}) END"
)

_STATE_TYPE = (
    "STRUCT<i: INT, w: INT, pos: STRING, rank: INT, r: INT, seen: ARRAY<STRING>, wiped: BOOLEAN, last: STRING,"
    " moved: STRING, over: STRING, if_there: BOOLEAN>"
)
_START = (
    f"CAST(named_struct('i', 0, 'w', 0, 'pos', NULL, 'rank', 0, 'r', 0, 'seen', array(), 'wiped', false, 'last', '',"
    f" 'moved', NULL, 'over', 'no', 'if_there', false) AS {_STATE_TYPE})"
)


def _walk(connector: str) -> str:
    """The state after a key's records. Indexes count from 1; 0 is none.

    `rank` is 0 where `w` is a delete, else 1: at an equal position a delete comes first; -1 accepts any equal one.

    Deferred keys: `UPDATE t SET id = id + 1` arrives as d1 c2 d2 c3 d3 …, so the delete of key 2's old row comes after
    the create of its new one. Within one transaction a delete that is half of a key change therefore leaves a row that
    a key change of the same transaction put over a living one. `over` tells whether it was: 'yes', 'no', or 'ask' the
    table.
    """
    # A record whose place among the changes is not its position: PostgreSQL's snapshot rows.
    beside = "e.kind = 'r'" if connector == "postgresql" else "false"
    rank = "CASE WHEN e.kind = 'd' THEN 0 ELSE 1 END"
    newer = (
        f"e.kind <> 'x' AND NOT ({beside}) AND (s.pos IS NULL OR {is_later(connector, 'e.pos', 's.pos')}"
        # An equal position may be the rest of one step; once a snapshot row came after it, it is sent again.
        f" OR (NOT {is_later(connector, 's.pos', 'e.pos')} AND {rank} >= s.rank AND s.r <= s.w))"
    )
    lived = (
        "CASE WHEN (s.w > 0 AND s.rank = 1) OR s.r > s.w THEN 'yes' WHEN s.w > 0 OR s.wiped THEN 'no' ELSE 'ask' END"
    )
    # What the record is to the key: 'lone' tombstone, snapshot 'read', change that is 'newer', delete that is 'kept'
    # from taking the new row, or nothing.
    role = (
        "CASE WHEN e.kind = 'x' THEN CASE WHEN s.last <> 'd' AND NOT (s.i = 0 AND e.carried) THEN 'lone' ELSE '' END"
        f" WHEN {beside} THEN CASE WHEN NOT array_contains(s.seen, e.read_id) THEN 'read' ELSE '' END"
        f" WHEN {newer} THEN CASE WHEN coalesce(e.moved_out AND s.moved = e.tx AND s.over <> 'no', false)"
        " THEN 'kept' ELSE 'newer' END ELSE '' END"
    )
    step = f"""named_struct(
        'i', s.i + 1,
        'w', CASE role_ WHEN 'lone' THEN 0 WHEN 'newer' THEN s.i + 1 ELSE s.w END,
        'pos', CASE WHEN role_ IN ('newer', 'kept') THEN e.pos ELSE s.pos END,
        'rank', CASE role_ WHEN 'lone' THEN -1 WHEN 'kept' THEN 1 WHEN 'newer' THEN {rank} ELSE s.rank END,
        'r', CASE role_ WHEN 'lone' THEN 0 WHEN 'read' THEN s.i + 1 ELSE s.r END,
        'seen', CASE WHEN role_ = 'read' THEN concat(s.seen, array(e.read_id)) ELSE s.seen END,
        'wiped', s.wiped OR role_ = 'lone',
        'last', e.kind,
        'moved', CASE WHEN role_ = 'newer' AND e.moved_in THEN e.tx WHEN role_ IN ('lone', 'kept', 'newer') THEN NULL
                 ELSE s.moved END,
        'over', CASE WHEN role_ = 'newer' AND e.moved_in THEN {lived} WHEN role_ IN ('newer', 'kept') THEN 'no'
                ELSE s.over END,
        'if_there', CASE role_ WHEN 'kept' THEN s.over = 'ask' WHEN 'lone' THEN false WHEN 'newer' THEN false
                    ELSE s.if_there END
    )"""
    bound = let("role_", role, f"CAST({step} AS {_STATE_TYPE})")
    return f"aggregate(es, {_START}, (s, e) -> {bound})"
