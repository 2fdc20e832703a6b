"""Counts and positions of a decoded batch (see progress/batch_stats.py). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.decode.decoder import Decoded
from distributary.decode.envelope import MESSAGE, TOMBSTONE
from distributary.ingest.passage import STREAMED, passage_of
from distributary.progress.batch_stats import BatchStats, PartitionStats
from distributary.progress.record import InTransaction, Progress
from distributary.reasons import NOT_A_ROW, NOT_AN_ENVELOPE
from distributary.rules.columns import one_array
from distributary.rules.position_columns import highest_position, lowest_position
from distributary.rules.position_text import highest_of, lowest_of, position_order

_CHANGES = pa.array(["c", "u", "d"])
_OTHER_FORM = pa.array([NOT_AN_ENVELOPE.code, NOT_A_ROW.code])
_UNCLEAR = "?"


def facts_of(decoded: Decoded, progress: Progress) -> BatchStats:
    """The facts about a batch against what the table has applied before."""
    connector = progress.connector
    parts = [_Part(decoded, partition, connector) for partition in sorted(_partitions(decoded))]
    known = highest_of(connector, (progress.position, progress.snapshot.position if progress.snapshot else None))
    lowest = lowest_of(connector, (part.lowest for part in parts))
    lowest_read = lowest_of(connector, (part.lowest_read for part in parts))
    order = position_order(connector)
    return BatchStats(
        connector=connector,
        records=sum(part.records for part in parts),
        applied=sum(part.applied for part in parts),
        bad=sum(part.bad for part in parts),
        reads=sum(part.reads for part in parts),
        changes=sum(part.changes for part in parts),
        deletes=sum(part.deletes + part.tombstones for part in parts),
        moved=sum(part.moved for part in parts),
        lone=any(part.tombstones > part.deletes for part in parts),
        truncated=highest_of(connector, (part.truncated for part in parts)),
        late=lowest is not None and known is not None and order(lowest) <= order(known),
        placeholders=sum(part.placeholders for part in parts),
        filled=progress.filled,
        suspect=False,
        newest_ts_ms=_largest(part.newest_ts_ms for part in parts),
        read_ts_ms=_largest(part.read_ts_ms for part in parts),
        partitions={part.partition: part.facts for part in parts},
        snapshot=highest_of(connector, (part.snapshot for part in parts)),
        lowest=lowest_of(connector, (lowest, lowest_read)),
        read=highest_of(connector, (part.read for part in parts)),
        unread=sum(part.unread for part in parts),
        payload=sum(part.payload for part in parts),
        creates=sum(part.creates for part in parts),
        tombstones=sum(part.tombstones for part in parts),
        passage=passage_of(decoded.events),
        other_form={part.partition: part.other_form for part in parts if part.other_form is not None},
    )


def _partitions(decoded: Decoded) -> set[int]:
    return {p for table in (decoded.events, decoded.rejected) for p in pc.unique(table["partition"]).to_pylist()}


class _Part:
    """One partition of a batch."""

    def __init__(self, decoded: Decoded, partition: int, connector: str) -> None:
        self.partition = partition
        events = decoded.events.filter(pc.equal(decoded.events["partition"], partition))
        rejected = decoded.rejected.filter(pc.equal(decoded.rejected["partition"], partition))
        kinds = one_array(events["operation"])
        position, time = one_array(events["position"]), one_array(events["source_time"])
        streamed, reads = pc.is_in(kinds, STREAMED), pc.equal(kinds, "r")
        self.bad = rejected.num_rows
        self.records = events.num_rows + self.bad
        self.applied = events.num_rows - _count(pc.equal(kinds, MESSAGE))
        self.reads, self.changes = _count(reads), _count(pc.is_in(kinds, _CHANGES))
        self.creates, self.deletes = _count(pc.equal(kinds, "c")), _count(pc.equal(kinds, "d"))
        self.tombstones = _count(pc.equal(kinds, TOMBSTONE))
        self.moved = _count(pc.or_(one_array(events["moved_in"]), one_array(events["moved_out"])))
        self.placeholders = _count(one_array(events["unavailable"]).is_valid())
        self.truncated = highest_position(connector, position.filter(pc.equal(kinds, "t")))
        self.lowest = lowest_position(connector, position.filter(streamed))
        self.lowest_read = lowest_position(connector, position.filter(reads))
        self.newest_ts_ms, self.read_ts_ms = _most(time), _most(time.filter(reads))
        self.snapshot = highest_position(connector, position.filter(one_array(events["snapshot_end"])))
        rejected_kinds = one_array(rejected["operation"])
        bad_reads = one_array(rejected["position"]).filter(pc.equal(rejected_kinds, "r"))
        self.read = highest_of(
            connector, (highest_position(connector, position.filter(reads)), highest_position(connector, bad_reads))
        )
        are_known = pc.is_in(rejected_kinds, pa.array([*STREAMED.to_pylist(), TOMBSTONE]))
        self.unread = self.bad - _count(are_known)
        self.payload = int((pc.sum(events["size"]).as_py() or 0) + (pc.sum(rejected["size"]).as_py() or 0))
        other = one_array(rejected["offset"]).filter(pc.is_in(one_array(rejected["reason"]), _OTHER_FORM))
        self.other_form = _least(other)
        self.facts = PartitionStats(
            self.records,
            highest_position(connector, position.filter(streamed)),
            _most(time.filter(streamed)),
            None,
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
