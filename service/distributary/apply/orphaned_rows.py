"""Orphaned rows: rows that are older than a complete snapshot and that it does not have (rule 3.10).

A row is orphaned exactly if a truncate at the snapshot's position would remove it. PostgreSQL's needs more: a truncate
locks the table, but while a snapshot is read a transaction may be open that wrote at a lower LSN and commits later. Its
rows are alive, and recognized by the commit time at the end of the position. Oracle has the same case if a change does
not name the SCN of its commit: then the change's own SCN is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import key_texts
from distributary.apply.origin_columns import DELETED, with_origin
from distributary.rules.columns import Bools, as_bools, one_array
from distributary.rules.position_columns import precede_truncate
from distributary.rules.position_text import read_position

COLUMNS = ("__op", "__position", "__partition", "__offset")
"""The columns that are read of each row, with DELETED if the table has it."""

# The time in a snapshot's rows is not when it was taken, only near it: the connector starts up in between.
_NEAR_MS = 3_600_000
_TIME_DIGITS = 13  # the end of PostgreSQL's positions: milliseconds since 1970
_READ_SIGN = "[rR]"


def are_orphaned(connector: str, rows: pa.Table, snapshot: str) -> Bools:
    """Whether the complete snapshot at that position shows that the source does not have each row. False for a
    row that is deleted already."""
    at = read_position(connector, snapshot)
    if at is None:
        return np.zeros(rows.num_rows, np.bool_)
    texts = one_array(rows["__position"])
    orphans = precede_truncate(connector, texts, at)
    if connector == "postgresql":
        until = str(max(0, int(snapshot[-_TIME_DIGITS:]) - _NEAR_MS)).zfill(_TIME_DIGITS)
        is_read = as_bools(pc.match_substring_regex(texts, _READ_SIGN))
        orphans &= is_read | as_bools(pc.less(pc.utf8_slice_codeunits(texts, -_TIME_DIGITS, None), until))
    if connector == "oracle":
        scns = pc.extract_regex(texts, r"^[0-9]+:(?P<commit>[0-9]*)/(?P<own>[0-9]*)")
        names_commit = pc.not_equal(pc.struct_field(scns, 0), pc.struct_field(scns, 1))
        orphans &= as_bools(pc.equal(one_array(rows["__op"]), "r")) | as_bools(names_commit)
    orphans |= as_bools(texts.is_null())  # adopted, and neither the snapshot nor a change had the row since
    if DELETED in rows.column_names:
        orphans &= ~as_bools(one_array(rows[DELETED]))
    return orphans


def deletes_of(
    connector: str, orphans: pa.Table, key: Sequence[pa.Field], row: pa.StructType, snapshot: str
) -> pa.Table:
    """A delete of each orphaned row as an event (see decode.events.make_events), at the snapshot's position: older
    changes of the row that arrive later do not restore it. `orphans`: the key's columns, and COLUMNS.

    PostgreSQL's get the position of a change, not of a snapshot row: a change that arrives after a snapshot row always
    counts as newer, so an old change would undo the delete.
    """
    count = orphans.num_rows
    position = snapshot.replace("r", "?").replace("R", "?") if connector == "postgresql" else snapshot
    keys = [one_array(orphans[field.name]).cast(field.type) for field in key]
    struct = pa.StructArray.from_arrays(keys, fields=list(key))
    orphans = with_origin(orphans, key_texts(struct))
    no_key = pa.nulls(count, pa.struct(list(key)))
    texts = pa.nulls(count, pa.string())
    no = pa.array(np.zeros(count, np.bool_))
    return pa.table(
        {
            "partition": orphans["__partition"],
            # Below zero, where Kafka has no record. With the row's own offset, the delete would be the same event as
            # the one that wrote the row.
            "offset": pc.subtract(-1, orphans["__offset"]),
            "timestamp": pa.array(np.zeros(count, np.int64), pa.timestamp("us", "UTC")),
            "size": pa.array(np.zeros(count, np.int32)),
            "operation": pa.array(["d"] * count, pa.string()),
            "position": pa.array([position] * count, pa.string()),
            "transaction": texts,
            "source_time": pa.nulls(count, pa.int64()),
            "connector_time": pa.nulls(count, pa.int64()),
            "snapshot": texts,
            "snapshot_end": no,
            "snapshot_identity": texts,
            "moved_in": no,
            "moved_out": no,
            "key": struct,
            "old_key": no_key,
            "new_key": no_key,
            "unavailable": pa.nulls(count, pa.list_(pa.string())),
            "row": pa.nulls(count, row),
        }
    )
