"""Counts and positions of a decoded batch (see progress/batch_stats.py). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.decode.decoder import Decoded
from distributary.decode.envelope import MESSAGE, TOMBSTONE
from distributary.ingest.oldest_change import STREAMED, oldest_change_times
from distributary.ingest.stray_records import last_strays
from distributary.progress.batch_stats import BatchStats, PartitionStats
from distributary.progress.record import InTransaction
from distributary.reasons import NOT_A_ROW, NOT_AN_ENVELOPE
from distributary.rules.columns import one_array
from distributary.rules.position_columns import highest_position, lowest_position
from distributary.rules.position_text import highest_of, lowest_of

_CHANGES = pa.array(["c", "u", "d"])
_OTHER_FORM = pa.array([NOT_AN_ENVELOPE.code, NOT_A_ROW.code])
_UNCLEAR = "?"
_COUNTED = {
    *("partition", "operation", "position", "source_time", "snapshot_end", "size"),
    *("transaction_id", "transaction_order"),
}
"""The columns of the events that are read for each partition."""


def count_batch(decoded: Decoded, connector: str) -> BatchStats:
    """The statistics of a batch. `connector` compares positions."""
    partitions = sorted(_partitions(decoded))
    # Most of a batch are its rows, of which nothing is counted: they are not copied.
    counted = decoded.events.select([name for name in decoded.events.column_names if name in _COUNTED])
    parts = [
        _PartitionCounts(_of(counted, partition), _of(decoded.rejected, partition), partition, connector)
        for partition in partitions
    ]
    lowest = lowest_of(connector, (part.lowest for part in parts))
    lowest_snapshot_row = lowest_of(connector, (part.lowest_snapshot_row for part in parts))
    return BatchStats(
        connector=connector,
        records=sum(part.records for part in parts),
        applied=sum(part.applied for part in parts),
        bad=sum(part.bad for part in parts),
        snapshot_rows=sum(part.snapshot_rows for part in parts),
        changes=sum(part.changes for part in parts),
        deletes=sum(part.deletes + part.tombstones for part in parts),
        truncated=highest_of(connector, (part.truncated for part in parts)),
        newest_ts_ms=_largest(part.newest_ts_ms for part in parts),
        snapshot_ts_ms=_largest(part.snapshot_ts_ms for part in parts),
        partitions={part.partition: part.stats for part in parts},
        snapshot=highest_of(connector, (part.snapshot for part in parts)),
        lowest=lowest_of(connector, (lowest, lowest_snapshot_row)),
        snapshot_row=highest_of(connector, (part.snapshot_row for part in parts)),
        bad_snapshot_rows=sum(part.bad_snapshot_rows for part in parts),
        payload=sum(part.payload for part in parts),
        creates=sum(part.creates for part in parts),
        tombstones=sum(part.tombstones for part in parts),
        oldest_change=oldest_change_times(decoded.events),
        strays=last_strays(decoded.rejected),
        other_form={part.partition: part.other_form for part in parts if part.other_form is not None},
    )


def _partitions(decoded: Decoded) -> set[int]:
    return {p for table in (decoded.events, decoded.rejected) for p in pc.unique(table["partition"]).to_pylist()}


def _of(records: pa.Table, partition: int) -> pa.Table:
    is_of = pc.equal(records["partition"], partition)
    return records if pc.all(is_of).as_py() else records.filter(is_of)


class _PartitionCounts:
    """One partition of a batch."""

    def __init__(self, events: pa.Table, rejected: pa.Table, partition: int, connector: str) -> None:
        self.partition = partition
        kinds = one_array(events["operation"])
        position, time = one_array(events["position"]), one_array(events["source_time"])
        streamed, snapshot_rows = pc.is_in(kinds, STREAMED), pc.equal(kinds, "r")
        self.bad = rejected.num_rows
        self.records = events.num_rows + self.bad
        self.applied = events.num_rows - _count(pc.equal(kinds, MESSAGE))
        self.snapshot_rows, self.changes = _count(snapshot_rows), _count(pc.is_in(kinds, _CHANGES))
        self.creates, self.deletes = _count(pc.equal(kinds, "c")), _count(pc.equal(kinds, "d"))
        self.tombstones = _count(pc.equal(kinds, TOMBSTONE))
        self.truncated = highest_position(connector, position.filter(pc.equal(kinds, "t")))
        self.lowest = lowest_position(connector, position.filter(streamed))
        self.lowest_snapshot_row = lowest_position(connector, position.filter(snapshot_rows))
        self.newest_ts_ms, self.snapshot_ts_ms = _most(time), _most(time.filter(snapshot_rows))
        self.snapshot = highest_position(connector, position.filter(one_array(events["snapshot_end"])))
        rejected_kinds = one_array(rejected["operation"])
        bad_rows = one_array(rejected["position"]).filter(pc.equal(rejected_kinds, "r"))
        self.snapshot_row = highest_of(
            connector,
            (highest_position(connector, position.filter(snapshot_rows)), highest_position(connector, bad_rows)),
        )
        are_known = pc.is_in(rejected_kinds, pa.array([*STREAMED.to_pylist(), TOMBSTONE]))
        self.bad_snapshot_rows = self.bad - _count(are_known)
        self.payload = int((pc.sum(events["size"]).as_py() or 0) + (pc.sum(rejected["size"]).as_py() or 0))
        other = one_array(rejected["offset"]).filter(pc.is_in(one_array(rejected["reason"]), _OTHER_FORM))
        self.other_form = _least(other)
        self.stats = PartitionStats(
            self.records,
            highest_position(connector, position.filter(streamed)),
            _most(time.filter(streamed)),
            _transaction(connector, events),
        )


def _transaction(connector: str, events: pa.Table) -> InTransaction | None:
    if "transaction_id" not in events.column_names:
        return None
    clear = pc.invert(pc.fill_null(pc.match_substring(events["position"], _UNCLEAR), True))
    streamed = events.filter(
        pc.and_(pc.and_(pc.is_in(events["operation"], STREAMED), clear), pc.is_valid(events["transaction_id"]))
    )
    highest = highest_position(connector, one_array(streamed["position"]))
    if highest is None:
        return None
    rows = streamed.filter(pc.equal(streamed["position"], highest))
    rows = rows.select(["position", "transaction_order", "transaction_id"]).to_pylist()
    best = max(rows, key=lambda row: (row["transaction_order"] or -1, row["transaction_id"]))
    return InTransaction(position=best["position"], id=best["transaction_id"], order=best["transaction_order"])


def _count(mask: pa.Array) -> int:
    return int(pc.sum(pc.fill_null(mask, False)).as_py() or 0)


def _most(array: pa.Array) -> Any:
    return pc.max(array).as_py()


def _least(array: pa.Array) -> Any:
    return pc.min(array).as_py()


def _largest(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)
