"""The rows of `mode: append`: one for each change, as it came."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.values import TRANSACTION_COLUMNS, source_timestamps, transactions_of
from distributary.rules.columns import Ints, one_array

UNAVAILABLE = "__unavailable"


def appended_rows(
    events: pa.Table, places: Ints, row: pa.StructType, topic: str, *, with_transactions: bool
) -> pa.Table:
    """The rows of the decoded events at those places.

    A delete leaves the row before it, as far as the source sent it, else its key. `__unavailable` has the names of
    columns that were not sent.
    """
    appended = events.take(pa.array(places))
    operation = one_array(appended["operation"])
    values = one_array(appended["row"])
    if "before" in appended.column_names:
        values = pc.if_else(pc.equal(operation, "d"), one_array(appended["before"]), values)
    key = one_array(appended["key"])
    columns = {}
    for field, array in zip(row, values.flatten(), strict=True):
        place = key.type.get_field_index(field.name)
        if place >= 0:
            # A record without a row has at least its key.
            array = pc.if_else(values.is_valid(), array, key.flatten()[place].cast(field.type))
        columns[field.name] = array
    return pa.table(
        {
            **columns,
            "__op": operation,
            "__source_ts": source_timestamps(one_array(appended["source_time"])),
            "__position": appended["position"],
            "__topic": pa.repeat(topic, len(appended)),
            "__partition": appended["partition"],
            "__offset": appended["offset"],
            UNAVAILABLE: appended["unavailable"],
            **(_transactions(appended) if with_transactions else {}),
        }
    )


def _transactions(events: pa.Table) -> dict[str, pa.Array]:
    return {TRANSACTION_COLUMNS[name]: array for name, array in transactions_of(events).items()}
