"""Row values by the record that holds them: from the batch, from the table's rows, or from its memory.

The rules name values by pointers (partition, offset). A table of values has

| column | type | content |
| --- | --- | --- |
| partition, offset | int32, int64 | the record |
| op, position | string | its operation and its place in the source's log |
| source_time | int64 | milliseconds since 1970 |
| start, moved_from | string | of a version (`mode: history`): where it started, and the key that its row had before |
| transaction_id, transaction_order | string, int64 | the record's transaction, and its place among all its changes |
| row | struct | the columns of the table |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import key_json
from distributary.rules.columns import Ints, one_array
from distributary.rules.event import Pointer
from distributary.rules.position_columns import precede
from distributary.rules.state import Origin
from distributary.types.column_default import ColumnDefault, array_of_text

SERVICE = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "op": pa.string(),
    "position": pa.string(),
    "source_time": pa.int64(),
    "start": pa.string(),
    "moved_from": pa.string(),
    "transaction_id": pa.string(),
    "transaction_order": pa.int64(),
}
_EVENTS_OWN_ID = "^([0-9]+):[0-9]+$"
"""PostgreSQL's connector puts the place of the single event behind the transaction's number."""


TRANSACTION_COLUMNS = {"transaction_id": "__transaction_id", "transaction_order": "__transaction_order"}
"""The columns that tables may have of transactions, by those of values."""


def values_type(row: pa.StructType) -> pa.Schema:
    """The columns of a table of values whose rows have that type."""
    return pa.schema([*SERVICE.items(), ("row", row)])


def no_values(row: pa.StructType) -> pa.Table:
    """A table of values without any."""
    return values_type(row).empty_table()


def values_of_events(events: pa.Table) -> pa.Table:
    """The values that decoded events hold, in their order."""
    old_key = one_array(events["old_key"])
    moved_from = key_json(old_key) if old_key.type.num_fields else pa.nulls(len(old_key), pa.string())
    columns = {
        **{name: events[name] for name in ("partition", "offset", "position", "source_time", "row")},
        "op": events["operation"],
        "start": events["position"],
        "moved_from": moved_from,
        **transactions_of(events),
    }
    return pa.table({name: columns[name] for name in (*SERVICE, "row")})


def transactions_of(events: pa.Table) -> dict[str, pa.Array]:
    """The transaction of each event, by an id that all its events share, and the event's place among all changes of the
    transaction; null if the events do not have them."""
    names = {"transaction_id": "transaction_id", "transaction_order": "transaction_total_order"}
    columns = {
        name: one_array(events[column]) if column in events.column_names else pa.nulls(events.num_rows, SERVICE[name])
        for name, column in names.items()
    }
    return {**columns, "transaction_id": pc.replace_substring_regex(columns["transaction_id"], _EVENTS_OWN_ID, r"\1")}


def values_of_rows(rows: pa.Table, row: pa.StructType) -> pa.Table:
    """The values of rows of the table, in their order."""
    arrays = [one_array(rows[field.name]).cast(field.type) for field in row]
    time = one_array(rows["__source_ts"]).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = {
        "partition": rows["__partition"],
        "offset": rows["__offset"],
        "op": rows["__op"],
        "position": rows["__position"],
        "source_time": pc.divide(time, 1000),
        **{
            name: rows[column] if column in rows.column_names else pa.nulls(rows.num_rows, SERVICE[name])
            for name, column in (
                ("start", "__start_at"),
                ("moved_from", "__moved_from"),
                *TRANSACTION_COLUMNS.items(),
            )
        },
        "row": pa.StructArray.from_arrays(arrays, fields=list(row)),
    }
    return pa.table(columns).cast(values_type(row))


def with_columns(
    values: pa.Table, row: pa.StructType, defaults: Mapping[str, ColumnDefault], connector: str
) -> pa.Table:
    """The values when the table has got other columns: types are widened, new columns have their default in rows of
    before them, by the connector's positions, and are null elsewhere."""
    for index, (name, kind) in enumerate(SERVICE.items()):
        if name not in values.column_names:  # kept by a version that did not know of it
            values = values.add_column(index, name, pa.nulls(values.num_rows, kind))
    if values.schema.field("row").type == row:
        return values
    old = one_array(values["row"])
    known = {field.name: part for field, part in zip(old.type, old.flatten(), strict=True)}
    arrays = [
        known[field.name].cast(field.type)
        if field.name in known
        else _older(values["position"], field.type, defaults.get(field.name), connector)
        for field in row
    ]
    struct = pa.StructArray.from_arrays(arrays, fields=list(row), mask=old.is_null())
    return values.set_column(values.schema.get_field_index("row"), "row", struct)


def _older(position: pa.ChunkedArray, kind: pa.DataType, default: ColumnDefault | None, connector: str) -> pa.Array:
    """A new column of rows with these positions. A row without a position is adopted, and older than the column: it
    gets the default."""
    nothing = pa.nulls(len(position), kind)
    if default is None:
        return nothing
    positions = one_array(position)
    is_older = pc.or_(positions.is_null(), pa.array(precede(connector, positions, default.before)))
    return pc.if_else(is_older, array_of_text(default.value, kind)[0], nothing)


def source_timestamps(milliseconds: pa.Array) -> pa.Array:
    """`__source_ts` of times in milliseconds since 1970."""
    return milliseconds.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))


class ValueSources:
    """Tables of values. If several have a record, the latest of them counts."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        every = list(tables)
        # Joining a batch's events with an empty table would copy them.
        self.table = pa.concat_tables([piece for piece in every if piece.num_rows] or every[:1]).combine_chunks()

    @cached_property
    def _sorted(self) -> _Sorted:
        """The records, sorted at the first lookup: most batches never look up a record."""
        partitions = np.asarray(one_array(self.table["partition"])).astype(np.int64)
        offsets = np.asarray(one_array(self.table["offset"])).astype(np.int64)
        order = np.lexsort((np.arange(len(offsets)), offsets, partitions))
        starts = {
            int(p): (int(np.searchsorted(partitions[order], p)), int(np.searchsorted(partitions[order], p, "right")))
            for p in np.unique(partitions)
        }
        return _Sorted(order, offsets[order], starts)

    def place(self, pointer: Pointer) -> int | None:
        """The row of the table that has a record's values."""
        partition, offset = pointer
        known = self._sorted
        start, end = known.starts.get(partition, (0, 0))
        index = start + int(np.searchsorted(known.offsets[start:end], offset, "right")) - 1
        if index < start or known.offsets[index] != offset:
            return None
        return int(known.order[index])

    def place_of(self, origin: Origin) -> int:
        """As `place`, of a record that must be there. Raises KeyError if it is not."""
        assert origin is not None
        partition, offset = origin
        known_place = None if isinstance(partition, str) or isinstance(offset, str) else self.place((partition, offset))
        if known_place is None:
            raise KeyError(f"the values of the record at partition {partition}, offset {offset} were not kept")
        return known_place

    def place_of_value(self, origin: Origin) -> int | None:
        """Where a value is; None if no record has it, or it is in a row that is not located yet. Raises KeyError if its
        record is in no table."""
        return None if origin is None or isinstance(origin[0], str) else self.place_of(origin)


@dataclass(frozen=True)
class _Sorted:
    """The rows of a table of values by record: their places and offsets, and from where to where a partition's are."""

    order: Ints
    offsets: Ints
    starts: Mapping[int, tuple[int, int]]
