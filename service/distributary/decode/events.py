"""Makes the events of a parsed batch: one typed row for each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.decode.change_keeper import is_snapshot_end
from distributary.decode.columns import Columns, Rows, make_columns, struct_array
from distributary.decode.envelope import KEPT_ROW, MESSAGE
from distributary.decode.key_match import fill_from_key, reject_other_keys
from distributary.decode.large_values import NO_LARGE_VALUES, LargeValues, Referenced, total_size
from distributary.decode.older_rows import fill_older_rows
from distributary.decode.options import DecodeOptions
from distributary.decode.placeholder import Placeholder
from distributary.decode.row_keys import RowKeys
from distributary.decode.source_block import LAST_MS, SOURCE_TABLE_COLUMN, source_time, truncated_column, whole_number
from distributary.decode.wire_records import WireRecords, WireRows
from distributary.types.record_schema import RecordSchema

_INDEX = "__index"


def make_events(
    step: pa.Table,
    batch: WireRecords,
    schema: RecordSchema,
    options: DecodeOptions,
    large: LargeValues = NO_LARGE_VALUES,
) -> tuple[pa.Table, pa.Table]:
    """Returns the events and the rejected records. The latter have the columns of events, as far as they could be read,
    and `reason` and `message`: why the record can't be applied.

    An event has partition, offset, timestamp; size (bytes of the value without its schema, with the large values that
    were fetched for it); operation (Debezium's letter, `x` for a tombstone), position, transaction, source_time and
    connector_time (milliseconds since 1970, when the source committed the change and when the connector processed it),
    snapshot (the text of the source block's field), snapshot_end, snapshot_identity (of a PostgreSQL snapshot row),
    moved_in, moved_out; key, old_key and new_key STRUCT of the key's columns (the key of a truncate has the source
    table's name alone); unavailable LIST of the names of columns that the source did not send; row STRUCT of the
    table's columns; and, if the options need them, before (as row) and transaction_id, transaction_order (among the
    transaction's changes of the table), transaction_total_order (among all of them). `large` are the large values that
    replace references.
    """
    placeholder = Placeholder(options.placeholder) if options.has_placeholders else None
    most = 8 * options.bounds.text_bytes + 2 * step.nbytes + 2 * total_size(large)
    after = _columns(batch.after, schema.row, batch.count, placeholder, most, large)
    before = _columns(batch.before, schema.row, batch.count, placeholder, most, large) if options.reads_before else None
    _add_sizes(batch, after, before)
    fill_older_rows(after, batch, options.defaults or {}, options.connector)
    _judge_values(batch, after, before, options)
    if options.key_from_row and before is not None:
        keys_of_rows = RowKeys(batch, after, before, options.key_from_row)
        columns = {
            **_common(step, batch, options),
            **keys_of_rows.columns(),
            **row_structs(batch, after, before, options),
        }
        return split_rejected(batch, pa.table(columns), keys_of_rows)
    if options.keyless and before is not None:
        _fill_deleted_rows(batch, before, schema, most)
    keys = _columns(batch.keys, schema.key, batch.count, None, most)
    _judge_keys(batch, keys, options)
    _add_source_tables(keys, batch, schema, options)
    reject_other_keys(batch, after, keys)
    for rows in filter(None, (after, before)):
        fill_from_key(rows, keys)
    columns = {
        **_common(step, batch, options),
        "moved_in": pa.array(batch.moved_in, pa.bool_()),
        "moved_out": pa.array(batch.moved_out, pa.bool_()),
        "key": key_struct(keys, _has_key(batch, schema), schema.key),
        **{
            name: _other_key(side, batch, schema, options, most)
            for name, side in (("old_key", batch.old_keys), ("new_key", batch.new_keys))
        },
        **row_structs(batch, after, before, options),
    }
    return split_rejected(batch, pa.table(columns))


def reject_all(
    step: pa.Table,
    batch: WireRecords,
    reason: reasons.Reason,
    detail: str,
    schema: RecordSchema,
    options: DecodeOptions,
) -> tuple[pa.Table, pa.Table]:
    """Rejects all records of the batch; its rows are not converted."""
    empty = WireRecords(batch.count)
    for index in range(batch.count):
        empty.faults.add(index, reason, detail)
    return make_events(step, empty, schema, options)


def split_rejected(batch: WireRecords, events: pa.Table, keys: RowKeys | None = None) -> tuple[pa.Table, pa.Table]:
    """Returns the events without those of rejected records, and the rejected records."""
    indexes = sorted(batch.faults.found)
    rejections = [batch.faults.found[index] for index in indexes]
    rejected = events.take(pa.array(indexes, pa.int64()))
    for name, texts in (
        ("reason", [reason.code for reason, _ in rejections]),
        ("message", [reason.message + detail for reason, detail in rejections]),
    ):
        rejected = rejected.append_column(name, pa.array(texts, pa.string()))
    if not indexes:
        return (events if keys is None else keys.split(events)), rejected
    keep = np.ones(batch.count, bool)
    keep[indexes] = False
    is_kept = pa.array(keep)
    if keys is None:
        return events.filter(is_kept), rejected
    split = keys.split(events.append_column(_INDEX, pa.array(np.arange(batch.count))))
    bad = pc.is_in(split[_INDEX], value_set=pa.array(indexes, pa.int64()))
    return split.filter(pc.invert(bad)).drop_columns([_INDEX]), rejected


def _columns(
    side: WireRows,
    wanted: Mapping[str, str],
    count: int,
    placeholder: Placeholder | None,
    most_bytes: int,
    large: LargeValues = NO_LARGE_VALUES,
) -> Columns:
    """The columns of one side. If all its rows have the same reader, a record without a row has a row of nulls."""
    readers = {id(reader): reader for reader in side.readers if reader is not None}
    if len(readers) == 1:
        (reader,) = readers.values()
        rows = [reader.empty if row is None else row for row in side.rows]
        groups = {id(reader): Rows(reader.types, reader.shape.lake, range(count), rows)}
    else:
        groups = {known: Rows(reader.types, reader.shape.lake, [], []) for known, reader in readers.items()}
        for index, (reader, row) in enumerate(zip(side.readers, side.rows, strict=True)):
            if reader is not None:
                groups[id(reader)].add(index, row)
    for index, columns in side.bad.items():
        groups[id(side.readers[index])].bad[index] = columns
    for index, columns in side.unavailable.items():
        groups[id(side.readers[index])].unavailable[index] = columns
    row_groups = list(groups.values())
    return make_columns(row_groups, wanted, count, placeholder, most_bytes, large)


def _other_key(
    side: WireRows, batch: WireRecords, schema: RecordSchema, options: DecodeOptions, most_bytes: int
) -> pa.Array:
    """The other key of each key change. It gets the source table of its record."""
    columns = _columns(side, schema.key, batch.count, None, most_bytes)
    _add_source_tables(columns, batch, schema, options)
    return key_struct(columns, [row is not None for row in side.rows], schema.key)


def _has_key(batch: WireRecords, schema: RecordSchema) -> list[bool]:
    """Whether each record has a key; a truncate has one if the name of its source table is part of the keys."""
    names_source = truncated_column(schema.key) is not None
    return [row is not None or (names_source and index in batch.truncated) for index, row in enumerate(batch.keys.rows)]


def _add_source_tables(keys: Columns, batch: WireRecords, schema: RecordSchema, options: DecodeOptions) -> None:
    if options.source_in_key and SOURCE_TABLE_COLUMN in schema.key:
        keys.arrays[SOURCE_TABLE_COLUMN] = pa.array(batch.source_tables, pa.string())
    elif batch.truncated and (column := truncated_column(schema.key)) in keys.arrays:
        truncated = pa.array([batch.truncated.get(index) for index in range(batch.count)], pa.string())
        keys.arrays[column] = pc.coalesce(truncated, keys.arrays[column])


def _fill_deleted_rows(batch: WireRecords, before: Columns, schema: RecordSchema, most_bytes: int) -> None:
    """In a table without a key: fills the row before a delete from the record's key, if the record has no such row.
    This happens if the source table got its key later."""
    indexes = [
        index
        for index, operation in enumerate(batch.operations)
        if operation == "d" and batch.before.rows[index] is None and batch.keys.rows[index] is not None
    ]
    if not indexes:
        return
    values = _columns(batch.keys, schema.row, batch.count, None, most_bytes)
    chosen = np.zeros(batch.count, bool)
    chosen[indexes] = True
    for name, array in values.arrays.items():
        before.arrays[name] = pc.if_else(pa.array(chosen), array, before.arrays[name])
    for index in indexes:
        batch.before.rows[index] = batch.keys.rows[index]


def _judge_values(batch: WireRecords, after: Columns, before: Columns | None, options: DecodeOptions) -> None:
    sides = [(after, KEPT_ROW), *([(before, ("d",))] if before is not None and options.before else [])]
    for columns, operations in sides:
        for index, names in columns.bad_names.items():
            if batch.operations[index] in operations:
                batch.faults.add(index, reasons.BAD_VALUE, names)
        for index, references in columns.referenced.items():
            if batch.operations[index] in operations:
                _judge_references(batch, index, references)


def _judge_references(batch: WireRecords, index: int, referenced: Sequence[Referenced]) -> None:
    if needed := {value.place for value in referenced if value.place is not None and not value.why}:
        batch.references[index] |= needed
    if unreadable := [f"{value.column}: {value.why}" for value in referenced if value.why]:
        batch.faults.add(index, reasons.LARGE_VALUE_UNREADABLE, "; ".join(unreadable))
    else:
        batch.faults.add(index, reasons.BY_REFERENCE, ", ".join(value.column for value in referenced))


def _add_sizes(batch: WireRecords, after: Columns, before: Columns | None) -> None:
    """Adds the bytes of large values to the sizes of their records."""
    for columns in filter(None, (after, before)):
        for index, size in columns.fetched.items():
            batch.sizes[index] += size


def _judge_keys(batch: WireRecords, keys: Columns, options: DecodeOptions) -> None:
    """Rejects keys with bad values, and keys that are all null: these identify no row, but unique keys allow them."""
    if options.keyless:
        return
    arrays = list(keys.arrays.values())
    if arrays:
        empty = np.ones(batch.count, bool)
        for array in arrays:
            if array.null_count != batch.count:
                empty &= np.asarray(array.is_null())
        nameless = set(np.flatnonzero(empty).tolist())
    else:
        nameless = set()
    for index in {*nameless, *keys.bad}:
        if batch.keys.rows[index] is not None and batch.operations[index] not in ("t", MESSAGE):
            batch.faults.add(index, reasons.BAD_KEY)


def _common(step: pa.Table, batch: WireRecords, options: DecodeOptions) -> dict[str, Any]:
    ends = [is_snapshot_end(snapshot, op) for snapshot, op in zip(batch.snapshots, batch.operations, strict=True)]
    columns = {
        "partition": step["partition"],
        "offset": step["offset"],
        "timestamp": step["timestamp"],
        "size": pa.array(batch.sizes, pa.int32()),
        "operation": pa.array(batch.operations, pa.string()),
        "position": pa.array(batch.positions, pa.string()),
        "transaction": pa.array(batch.transactions, pa.string()),
        "source_time": pa.array(batch.times, pa.int64()),
        "connector_time": _times(batch.connector_times),
        "snapshot": pa.array(batch.snapshots, pa.string()),
        "snapshot_end": pa.array(ends, pa.bool_()),
        "snapshot_identity": pa.array(batch.identities, pa.string()),
    }
    if options.reads_transactions:
        blocks = [block if block is not None and block.id is not None else None for block in batch.blocks]
        columns["transaction_id"] = pa.array([block and block.id for block in blocks], pa.string())
        for name, field in (("transaction_order", "data_collection_order"), ("transaction_total_order", "total_order")):
            orders = [None if block is None else whole_number(getattr(block, field)) for block in blocks]
            columns[name] = pa.array(orders, pa.int64())
    return columns


def _times(values: Sequence[int | str | None]) -> pa.Array:
    """Times as milliseconds since 1970; null where a value is no time (see source_time)."""
    try:
        times = pa.array(values, pa.int64())
    except (pa.ArrowException, OverflowError):
        times = pa.array(list(map(source_time, values)), pa.int64())
    is_time = pc.and_(pc.greater_equal(times, 0), pc.less_equal(times, LAST_MS))
    return pc.if_else(is_time, times, pa.scalar(None, pa.int64()))


def key_struct(columns: Columns, there: Sequence[bool], key: Mapping[str, str]) -> pa.Array:
    """STRUCT of the key's columns, null where there is no key."""
    return struct_array({name: columns.arrays[name] for name in key}, there)


def row_structs(
    batch: WireRecords, after: Columns, before: Columns | None, options: DecodeOptions
) -> dict[str, pa.Array]:
    """The columns unavailable, row and before."""
    absent = dict(after.unavailable)
    if before is not None:
        absent |= {index: names for index, names in before.unavailable.items() if batch.operations[index] == "d"}
    if absent:
        unavailable = pa.array([absent.get(index) for index in range(batch.count)], pa.list_(pa.string()))
    else:
        unavailable = pa.nulls(batch.count, pa.list_(pa.string()))
    columns = {
        "unavailable": unavailable,
        "row": struct_array(after.arrays, [row is not None for row in batch.after.rows]),
    }
    if options.before and before is not None:
        columns["before"] = struct_array(before.arrays, [row is not None for row in batch.before.rows])
    return columns
