"""Slices committed from this process, where the table allows it and they fit into its memory; all others are Spark's.

Spark jobs of such a slice: one, which folds it and collects the folded keys.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pyarrow as pa
from pyspark.sql import DataFrame

from distributary.merge.choice import AT_MOST, AT_ONCE, why_not_size, why_not_touched
from distributary.merge.clause import Rows
from distributary.merge.clauses import Clauses
from distributary.merge.direct import DirectTable, NotByLibrary
from distributary.merge.doubts import Doubts
from distributary.merge.flat import FlatKeys, flat
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.progress import Head, Progress
from distributary.merge.queries import Query
from distributary.merge.room import Room
from distributary.merge.table import Write

_ROOM = Room(AT_ONCE)
_ASKS_MORE = "it has values that were not sent, snapshot rows among changes, a truncate, or deleted rows that stay"


def merged_here(
    to: Destination,
    part: DecodedSlice,
    keys: Query,
    clauses: Clauses,
    doubts: Doubts,
    today: date,
    by_spark: Callable[[], Write],
) -> Write | None:
    """The write of folded keys, with the deletes among them remembered; None where Spark has to do it all. `by_spark`
    makes Spark's write, for the case that the library fails. `doubts` is told of those that the keys have."""
    table = to.lake.direct
    if table is None:
        return None
    key = None if part.first else list(to.key)
    reason = None if clauses.shared(first=part.first) else _ASKS_MORE
    reason = reason or _why_not(to, part, table) or table.why_not(part.head, key)
    touched = 0
    if reason is None and key is not None:
        touched, among = table.touched(part.head, key[0], part.found.keys)
        reason = None if to.settings.commit == "deltalake" else why_not_touched(touched, among, table.times)
    rows = None
    if reason is None:
        # An empty table has only inserts. What the first slice asks for the others too is planned once for all.
        only_inserts = part.first and not clauses.shared(first=False)
        made = (clause for clause in clauses.clauses() if clause.of is Rows.KEYS_ONLY or not only_inserts)
        rows = flat(keys, len(to.key), made)
        doubts.told(rows.doubts())
        reason = None if part.first else _why_not_rows(rows)
    if rows is None or reason is not None:
        to.debug(reason or "")
        return None
    if part.found.deletes:
        to.deletes.remember_rows(rows.gone(), today)
    if part.first:
        first = rows.inserted()
        return _or_spark(to, _append(table, first), by_spark)

    def merge(head: Head, progress: Progress) -> None:
        with _room(table).taken(touched + rows.rows.nbytes):
            table.merge(rows, list(to.key), head, progress)

    return _or_spark(to, merge, by_spark)


def appended_here(to: Destination, part: DecodedSlice, rows: DataFrame) -> Write | None:
    """The write of new rows; None where Spark has to do it."""
    table = to.lake.direct
    if table is None:
        return None
    if reason := _why_not(to, part, table) or table.why_not(part.head):
        to.debug(reason)
        return None
    collected = rows.toArrow()
    return _or_spark(to, _append(table, collected), lambda: to.lake.append(rows))


def _append(table: DirectTable, rows: pa.Table) -> Write:
    def append(head: Head, progress: Progress) -> None:
        with _room(table).taken(rows.nbytes):
            table.append(rows, head, progress)

    return append


def _why_not(to: Destination, part: DecodedSlice, table: DirectTable) -> str | None:
    return why_not_size(part.found, len(to.columns), AT_MOST if to.settings.commit == "deltalake" else table.times)


def _room(table: DirectTable) -> Room:
    """What all tables share; its size follows from this process's memory, so that each table widens it as far."""
    _ROOM.widen(table.times * AT_ONCE)
    return _ROOM


def _why_not_rows(keys: FlatKeys) -> str | None:
    return "a key has NULL in it" if any(keys.rows.column(name).null_count for name in keys.key) else None


def _or_spark(to: Destination, here: Write, by_spark: Callable[[], Write]) -> Write:
    def run(head: Head, progress: Progress) -> None:
        try:
            here(head, progress)
        except NotByLibrary as error:
            to.debug(f"deltalake failed ({error})")
            to.tell("the deltalake library could not commit a slice; from now on Spark does", 1)
            by_spark()(head, progress)

    return run
