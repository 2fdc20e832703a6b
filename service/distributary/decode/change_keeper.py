"""Puts the changes of records into a batch, and checks that the fields of each change fit together."""

from __future__ import annotations

from typing import Any, NamedTuple

from distributary import reasons
from distributary.decode.envelope import KEPT_ROW, MESSAGE, OPERATIONS, TOMBSTONE, Change
from distributary.decode.options import DecodeOptions
from distributary.decode.position import BadPosition, position_of
from distributary.decode.source_block import (
    BY_OFFSET,
    SNAPSHOT_ENDS,
    SNAPSHOT_READS,
    Source,
    snapshot_identity,
    snapshot_text,
    source_table,
    source_time,
    source_topic,
    transaction_of,
)
from distributary.decode.source_order import position_by
from distributary.decode.wire_records import WireRecords
from distributary.rules.log_traits import log_traits

_LONGEST_ID = 1_000
"""Characters of a transaction's id: each commit of the table has the id of its newest change."""


class SourceNames(NamedTuple):
    """The fields of a source block that name the source table, its name as one text, and the snapshot field."""

    names: tuple[object, ...]
    table: str | None
    snapshot: str | None


class ChangeKeeper:
    """Puts changes into the batch, and checks their operation, source and row."""

    def __init__(self, batch: WireRecords, options: DecodeOptions) -> None:
        self._batch = batch
        self._options = options
        connector = options.connector
        self._position = position_by(options.order, connector) if options.order else position_of(connector)
        self._by_transaction = options.connector in ("sqlserver", "db2") or bool(options.order)
        self._epoch = f"{options.epoch:03d}:"
        self._family = options.family
        self._identifies_snapshot_rows = log_traits(connector).snapshot_rows_by_arrival
        self._reads_before = options.reads_before
        self._reads_transactions = options.reads_transactions
        self._last_names = SourceNames((), None, None)
        self.nothings: list[int] = []
        """The indexes of records without a value."""

    def nothing(self, index: int) -> None:
        """Adds a record without a value."""
        self.nothings.append(index)
        self._batch.operations[index] = MESSAGE if self._options.key_from_row else TOMBSTONE

    def change(self, index: int, reader: Any, change: Any) -> None:
        """Adds a change: an envelope as msgspec reads it, or an envelope.Change."""
        batch, op, source = self._batch, change.op, change.source
        if op is None and source is None:
            batch.faults.add(index, reasons.NOT_AN_ENVELOPE)
            return
        if op not in OPERATIONS:
            batch.faults.add(index, reasons.UNKNOWN_OPERATION)
            return
        if op == "c" and is_snapshot_row(source):
            op = "r"
        batch.operations[index] = op
        batch.connector_times[index] = change.ts_ms
        self._source(index, op, source or Source())
        after = change.after
        if after is not None:
            batch.after.put(index, reader, after)
        elif op in KEPT_ROW:
            batch.faults.add(index, reasons.NO_ROW)
        if self._reads_before and change.before is not None:
            batch.before.put(index, reader, change.before)
        if self._reads_transactions:
            block = batch.blocks[index] = change.transaction
            if block is not None and block.id is not None and len(block.id) > _LONGEST_ID:
                batch.faults.add(
                    index, reasons.BEYOND_LIMITS, f"a transaction id of more than {_LONGEST_ID} characters"
                )
        if type(change) is Change:
            self._with_care(index, change)

    def _with_care(self, index: int, change: Change) -> None:
        for side, bad, unavailable in (
            (self._batch.after, change.bad, change.unavailable),
            (self._batch.before, change.bad_before, change.unavailable_before),
        ):
            if bad:
                side.bad[index] = list(bad)
            if unavailable:
                side.unavailable[index] = list(unavailable)

    def _source(self, index: int, op: str, source: Source) -> None:
        batch, options = self._batch, self._options
        where = self._last_names
        names = (source.connector, source.db, source.schema, source.table, source.snapshot)
        if names != where.names:  # they hardly ever differ from those of the record before
            where = self._last_names = SourceNames(names, source_table(source), snapshot_text(source.snapshot))
        if op != MESSAGE:
            if source.connector is not None and source.connector not in self._family:
                batch.faults.add(index, reasons.OTHER_CONNECTOR)
            else:
                batch.source_tables[index] = where.table
                if op == "t":
                    batch.truncated[index] = source_topic(source)
                if where.table is None and options.source_in_key:
                    batch.faults.add(index, reasons.NO_SOURCE_TABLE)
        position = None
        try:
            position = self._position(source, op)
        except BadPosition:
            if op != MESSAGE:
                batch.faults.add(index, reasons.BAD_POSITION)
        batch.times[index] = source_time(source.ts_ms)
        if position is not None:
            batch.positions[index] = self._epoch + position
        elif op != MESSAGE and options.connector != BY_OFFSET:
            batch.faults.add(index, reasons.NO_POSITION)
        if self._by_transaction:
            batch.transactions[index] = None if position is None else self._epoch + position.partition("/")[0]
        else:
            batch.transactions[index] = transaction_of(options.connector, source)
        batch.snapshots[index] = where.snapshot
        if op == "r" and self._identifies_snapshot_rows:
            batch.identities[index] = snapshot_identity(source)


def is_snapshot_row(source: Source | None) -> bool:
    """Whether a snapshot read the row. `op` does not decide: some transforms and older connectors write creates."""
    if source is None or source.snapshot in (None, False, "false"):
        return False
    return snapshot_text(source.snapshot) in SNAPSHOT_READS


def is_snapshot_end(snapshot: str | None, operation: str | None) -> bool:
    """Whether a record is the last row of the table's snapshot."""
    return operation == "r" and snapshot in SNAPSHOT_ENDS
