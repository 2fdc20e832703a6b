"""The last word on each key: the records of one slice folded to at most one row per key.

The fold walks a key's records in the order they arrived (offset within a partition, timestamp across partitions) and
keeps what the rules of order say. It is one aggregate expression that runs in the JVM; what depends on the row that
the table holds (is the slice older than it? was there a row at all?) is left to the merge, see upsert.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.merge import values
from distributary.merge.position_sql import is_later

# What the walk needs of a record, and the record's row with what is stored beside it.
_STEP_FIELDS = ("kind", "pos", "tx", "read_id", "moved_in", "moved_out", "carried", "partition", "offset", "timestamp")
_STORED_FIELDS = ("kind", "pos", "read_id", "ts_ms", "partition", "offset", "missing", "row")
_PAST = "d before a truncate"  # a kind
COUNTS = "bad IS NULL AND kind NOT IN ('t', 'm')"
"""BOOLEAN: a decoded record says something of its key."""
_DELETES = f"('d', '{_PAST}')"
KEYS_AT_COMMIT = ("postgresql", "oracle")
"""Connectors of databases that may check keys at the commit alone: a row may take the key of one that is deleted only
after that."""


@dataclass(frozen=True)
class Folding:
    """What a fold must know.

    Records older than `truncated` (the position of the newest truncate) count for nothing. Where a truncate only marks
    rows its position is `marked` instead: a row before it does not live, which key changes ask. `values` says which
    columns' values are followed through the changes, because some of them were not sent (see values.py); none for most
    slices. `keeps_deleted`: a deleted row stays in the table with its last values. `apart`: no two records have one key
    (see slice_keys.SliceKeys), so that nothing has to be brought together. `moved`: there are key changes with headers.
    """

    connector: str
    truncated: str | None = None
    marked: str | None = None
    values: values.Fillable | None = None
    keeps_deleted: bool = False
    apart: bool = False
    moved: bool = False


def folded(records: DataFrame, folding: Folding) -> DataFrame:
    """Decoded records folded by key.

    Out, one row per key:

    * k STRUCT, the key
    * w STRUCT<kind, pos, …, row>: the newest change, NULL where there is none; with `keeps_deleted` a lone tombstone
      after the key's last row stands in it as that row's delete; `pos` STRING: the position the key reaches with it
    * with `keeps_deleted` also alive STRUCT, alike: the newest record of the key that has a row; with a delete in `w`
      its last values
    * r STRUCT, alike: the newest snapshot row that stands beside the changes (PostgreSQL only); `r_last` BOOLEAN: it
      came after `w`; of PostgreSQL also `reads` ARRAY<STRUCT<…>>: all of them in the order of arrival
    * wiped BOOLEAN: a tombstone without a delete took the key's row away, `w` came after it
    * if_there BOOLEAN: `w` lives only if the table has a row of that key (see _walk on deferred keys); with `moved` in
      the folding also since STRING: the position of `w`, before which that row must lie
    * moved STRING: the transaction in which a key change put `w` over a living row, so that a delete of the same
      transaction is the old row's; NULL for none; `moved_if_there` BOOLEAN: only if the table has a row of that key
    * with `moved` in the folding left_tx and left_at STRING: transaction and position of the key's last delete; for
      `if_there` and `moved_if_there` the table's row must be one that stays after it, see standing.stays()
    * out_tx STRING: `w` is a delete that means the row which that transaction put a moved one over, if it did
    * doubts ARRAY<STRUCT<partition: INT, pos: STRING, create_pos: STRING>>: deletes of which nothing tells whether they
      took the row that their transaction had created or the one before it (see _walk); create_pos is empty where it is
      sure that there was one before, else the table must know
    * with `values` also: life STRUCT and departures ARRAY<STRUCT>, see values.py
    """
    usable = records.where(COUNTS)
    if folding.truncated is not None:
        older = f"coalesce({is_later(folding.connector, sql.text(folding.truncated), 'pos')}, false)"
        # Of the deletes it must be seen that they were there: their tombstones are not lone ones.
        usable = usable.where(f"NOT {older} OR kind = 'd'")
        usable = usable.withColumn("kind", F.expr(f"CASE WHEN {older} THEN '{_PAST}' ELSE kind END"))
    element = F.struct(*_STEP_FIELDS, "ts_ms", "missing", "row", *values.element_fields(folding)).alias("e")
    walk = _Walk.of(folding)
    if folding.apart:
        walked = usable.select("k", element).withColumn("role_", F.expr(walk.role_of_one))
        state = walk.of_one
    else:
        collected = usable.groupBy("k").agg(F.collect_list(element).alias("es"))
        ordered = collected.select("k", F.expr(_IN_ORDER).alias("es"))
        # Most keys have one record.
        walked = ordered.select("*", F.expr(f"CASE WHEN size(es) = 1 THEN {walk.role_of_one} END").alias("role_"))
        state = f"CASE WHEN role_ IS NOT NULL THEN {walk.of_one} ELSE {walk.of_many} END"
    # Else Spark would walk twice, for the rows and for what is left out: it moves no filter over what need not be the
    # same when it is asked again.
    once = F.when(F.spark_partition_id() >= 0, F.expr(state))
    walked = walked.withColumn("s", once)

    def record(index: str) -> str:
        """The record with that index, which is not 0."""
        return "e" if folding.apart else f"es[{index} - 1]"

    def stored(index: str) -> str:
        return f"CASE WHEN {index} > 0 THEN {_stored(record(index))} END"

    w, pos = stored("s.w"), "s.pos"
    if folding.keeps_deleted:
        marked = "s.w = 0 AND s.r = 0 AND s.wiped AND s.alive > 0"
        w = f"CASE WHEN {marked} THEN {_stored(record('s.alive'), kind='d')} ELSE {w} END"
        pos = f"CASE WHEN {marked} THEN coalesce({pos}, {record('s.alive')}.pos) ELSE {pos} END"
    # For lambdas Spark generates no code: what only some tables need is not in the plan of the others.
    reads = f"transform(s.reads, i_ -> named_struct('i', i_, 'after', i_ > s.w, 'e', {_stored(record('i_'))}))"
    return walked.select(
        "k",
        F.expr(w).alias("w"),
        F.expr(pos).alias("pos"),
        *((F.expr(stored("s.alive")).alias("alive"),) if folding.keeps_deleted else ()),
        F.expr(stored("s.r")).alias("r"),
        F.expr("s.r > s.w").alias("r_last"),
        *((F.expr(reads).alias("reads"),) if _has_reads(folding) else ()),
        F.expr("s.wiped").alias("wiped"),
        F.expr("s.if_there").alias("if_there"),
        *((F.expr(f"CASE WHEN s.if_there THEN {record('s.w')}.pos END").alias("since"),) if folding.moved else ()),
        F.expr("CASE WHEN s.over IN ('yes', 'ask') THEN s.moved END").alias("moved"),
        F.expr("s.over = 'ask'").alias("moved_if_there"),
        F.expr("CASE WHEN s.over = 'left' THEN s.moved END").alias("out_tx"),
        *((F.expr("s.left_tx").alias("left_tx"), F.expr("s.left_at").alias("left_at")) if folding.moved else ()),
        F.expr("s.doubts").alias("doubts"),
        *(
            (F.expr("s.life").alias("life"), F.expr(values.departures(folding.connector)).alias("departures"))
            if folding.values
            else ()
        ),
    ).where("w IS NOT NULL OR r IS NOT NULL OR wiped")


def _has_reads(folding: Folding) -> bool:
    """Whether there may be records whose place among the changes is not their position: PostgreSQL's snapshot rows."""
    return folding.connector == "postgresql"


def _stored(e: str, kind: str | None = None) -> str:
    """STRUCT: what is kept of a record; as another `kind` of change, where one is given."""
    fields = {name: f"{e}.{name}" for name in _STORED_FIELDS}
    if kind is not None:
        fields["kind"] = sql.text(kind)
    return f"named_struct({', '.join(f'{sql.text(name)}, {value}' for name, value in fields.items())})"


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


@dataclass(frozen=True)
class _Walk:
    """SQL of the state after a key's records `es`; and after its only one, whose role is in the column `role_`, and
    which is `e` where no two records have one key."""

    role_of_one: str
    of_one: str
    of_many: str

    @classmethod
    def of(cls, folding: Folding) -> _Walk:
        """The walk that a fold asks for."""
        role, fields = _step(folding)
        kind = f"STRUCT<{', '.join(f'{name}: {type_}' for name, (type_, _, _) in fields.items())}>"
        start = ", ".join(f"'{name}', {value}" for name, (_, value, _) in fields.items())
        step = ", ".join(f"'{name}', {value}" for name, (_, _, value) in fields.items())
        walk = sql.let("role_", role, f"CAST(named_struct({step}) AS {kind})")
        starts = {name: f"CAST({value} AS {type_})" for name, (type_, value, _) in fields.items()}

        def of_one(text: str) -> str:
            """A step from the start, over the only record: no function is called per record for it."""
            text = re.sub(r"\bs\.(\w+)", lambda field: starts[field[1]], text)
            return text if folding.apart else re.sub(r"\be\.", "es[0].", text)

        return cls(
            of_one(role),
            f"CAST(named_struct({of_one(step)}) AS {kind})",
            f"aggregate(es, CAST(named_struct({start}) AS {kind}), (s, e) -> {walk})",
        )


def _step(folding: Folding) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """What a record `e` is to the key, and per field of the state `s` its type, what it starts as, and what it becomes
    by the record, whose role is `role_`. Indexes count from 1; 0 is none.

    `rank` is 0 where `w` is a delete, else 1: at an equal position a delete comes first; -1 accepts any equal one.

    Deferred keys: `UPDATE t SET id = id + 1` arrives as d1 c2 d2 c3 d3 …, so the delete of key 2's old row comes after
    the create of its new one. Within one transaction a delete that is half of a key change therefore leaves a row that
    a key change of the same transaction put over a living one; so does any first delete where a row may take the key of
    another one before that is deleted. `over` tells whether it was: 'yes', 'no', or 'ask' the table. Where the create
    came in an earlier slice the table knows: after a delete that may mean the row below it says 'left', after any other
    'gone'. What comes to the key after a 'left' may lie over the table's row again, if that stays: of which delete that
    is asked say `left_tx` and `left_at`.

    Without headers nothing tells such a delete from one of the new row. It counts where its position puts it, and
    stands in `doubts`: `brought` is the transaction of a create over a living row, `asks` its position where only the
    table knows of one.
    """
    connector = folding.connector
    beside = "e.kind = 'r'" if _has_reads(folding) else "false"
    rank = "CASE WHEN e.kind = 'd' THEN 0 ELSE 1 END"
    newer = (
        f"e.kind <> 'x' AND NOT ({beside}) AND (s.pos IS NULL OR {is_later(connector, 'e.pos', 's.pos')}"
        # An equal position may be the rest of one step; once a snapshot row came after it, it is sent again.
        f" OR (NOT {is_later(connector, 's.pos', 'e.pos')} AND {rank} >= s.rank AND s.r <= s.w))"
    )
    row = "s.w > 0 AND s.rank = 1"
    if folding.marked is not None:
        marked = sql.text(folding.marked)
        row += f" AND NOT ({is_later(connector, marked, 's.pos')} AND {is_later(connector, 'e.pos', marked)})"
    lived = (
        f"CASE WHEN s.r > s.w THEN 'yes' WHEN s.if_there THEN 'ask' WHEN {row} THEN 'yes'"
        " WHEN s.w > 0 OR s.wiped THEN 'no' ELSE 'ask' END"
    )
    may_stay = "s.over = 'left' AND NOT s.wiped AND s.r <= s.w"
    below = f"CASE WHEN {may_stay} THEN 'ask' ELSE {lived} END" if folding.moved else lived
    lies_over = "s.over IN ('yes', 'ask')"
    deferred = folding.connector in KEYS_AT_COMMIT
    of_below = "e.kind = 'd'" if deferred else "e.moved_out"
    # What the record is to the key: 'lone' tombstone, snapshot 'read', change that is 'newer', delete that is 'kept'
    # from taking the new row, or nothing.
    role = (
        f"CASE WHEN e.kind = '{_PAST}' THEN ''"
        f" WHEN e.kind = 'x' THEN CASE WHEN s.last NOT IN {_DELETES} AND NOT (s.i = 0 AND e.carried)"
        " THEN 'lone' ELSE '' END"
        f" WHEN {beside} THEN CASE WHEN NOT array_contains(s.seen, e.read_id) THEN 'read' ELSE '' END"
        f" WHEN {newer} THEN CASE WHEN coalesce({of_below} AND s.moved = e.tx AND {lies_over}, false)"
        " THEN 'kept' ELSE 'newer' END ELSE '' END"
    )
    moves_in = "role_ = 'newer' AND e.moved_in"
    leaves = "role_ = 'newer' AND e.kind = 'd'"
    again = "s.over IN ('left', 'gone') AND coalesce(s.moved = e.tx, false)"
    if folding.moved:
        again = f"({again}) OR coalesce(s.kept_tx = e.tx, false)"
    first = "(e.moved_out OR s.w = 0)" if deferred else "e.moved_out"
    left = f"CASE WHEN {first} AND NOT ({again}) THEN 'left' ELSE 'gone' END"
    same = f"s.pos IS NOT NULL AND s.rank = {rank} AND NOT {is_later(connector, 'e.pos', 's.pos')}"
    over = (
        # Sent again, what a key change brought does not lie over itself.
        f"CASE WHEN role_ = 'newer' AND (e.kind = 'd' OR e.moved_in) AND {same} THEN s.over"
        f" WHEN {moves_in} THEN {below} WHEN {leaves} THEN {left} WHEN role_ IN ('newer', 'kept') THEN 'no'"
        " ELSE s.over END"
    )
    reads = "CASE role_ WHEN 'lone' THEN slice(s.reads, 1, 0) WHEN 'read' THEN concat(s.reads, array(s.i + 1))"
    moved = (
        f"CASE WHEN ({moves_in}) OR ({leaves}) THEN e.tx WHEN role_ IN ('lone', 'kept', 'newer') THEN NULL"
        " ELSE s.moved END"
    )
    brings = "role_ = 'newer' AND e.kind = 'c' AND NOT e.moved_in"
    ends = "role_ IN ('lone', 'kept', 'newer') AND e.kind <> 'u'"
    doubt = "named_struct('partition', e.partition, 'pos', e.pos, 'create_pos', s.asks)"
    doubtful = "role_ = 'newer' AND e.kind = 'd' AND s.brought = e.tx"
    if_there = "CASE WHEN role_ = 'kept' THEN s.over = 'ask' WHEN role_ IN ('lone', 'newer') THEN false"
    state = {
        "i": ("INT", "0", "s.i + 1"),
        "w": ("INT", "0", "CASE role_ WHEN 'lone' THEN 0 WHEN 'newer' THEN s.i + 1 ELSE s.w END"),
        "pos": ("STRING", "NULL", "CASE WHEN role_ IN ('newer', 'kept') THEN e.pos ELSE s.pos END"),
        "rank": (
            "INT",
            "0",
            f"CASE role_ WHEN 'lone' THEN -1 WHEN 'kept' THEN 1 WHEN 'newer' THEN {rank} ELSE s.rank END",
        ),
        "alive": (
            "INT",
            "0",
            "CASE WHEN role_ = 'read' OR (role_ = 'newer' AND e.kind <> 'd') THEN s.i + 1 ELSE s.alive END",
        ),
        "r": ("INT", "0", "CASE role_ WHEN 'lone' THEN 0 WHEN 'read' THEN s.i + 1 ELSE s.r END"),
        "reads": ("ARRAY<INT>", "array()", f"{reads} ELSE s.reads END"),
        "seen": (
            "ARRAY<STRING>",
            "array()",
            "CASE WHEN role_ = 'read' THEN concat(s.seen, array(e.read_id)) ELSE s.seen END",
        ),
        "wiped": ("BOOLEAN", "false", "s.wiped OR role_ = 'lone'"),
        "last": ("STRING", "''", "e.kind"),
        "moved": ("STRING", "NULL", moved),
        "over": ("STRING", "'no'", over),
        "if_there": ("BOOLEAN", "false", f"{if_there} ELSE s.if_there END"),
        "brought": (
            "STRING",
            "NULL",
            f"CASE WHEN {brings} AND ({lived}) <> 'no' THEN e.tx WHEN {ends} THEN NULL ELSE s.brought END",
        ),
        "asks": (
            "STRING",
            "''",
            f"CASE WHEN {brings} THEN CASE WHEN ({lived}) = 'ask' THEN e.pos ELSE '' END ELSE s.asks END",
        ),
        "doubts": (
            "ARRAY<STRUCT<partition: INT, pos: STRING, create_pos: STRING>>",
            "array()",
            f"CASE WHEN {doubtful} THEN concat(s.doubts, array({doubt})) ELSE s.doubts END",
        ),
        # The row below has left in that transaction: another delete is of the one that lay over it.
        **(
            {"kept_tx": ("STRING", "NULL", "CASE WHEN role_ = 'kept' THEN e.tx ELSE s.kept_tx END")}
            if folding.moved
            else {}
        ),
        **(
            {
                "left_tx": ("STRING", "NULL", f"CASE WHEN {leaves} THEN e.tx ELSE s.left_tx END"),
                "left_at": ("STRING", "NULL", f"CASE WHEN {leaves} THEN e.pos ELSE s.left_at END"),
            }
            if folding.moved or folding.values
            else {}
        ),
        **(
            values.state(connector, below, may_stay, same, keeps_deleted=folding.keeps_deleted)
            if folding.values
            else {}
        ),
    }
    return role, state
