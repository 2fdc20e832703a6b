"""Rows of the table, as the rules know them."""

from __future__ import annotations

import pyarrow as pa

from distributary.apply.origin_columns import row_of, with_origin
from distributary.rules.event import ADOPTED


def rows(*offsets: int | None) -> pa.Table:
    count = len(offsets)
    partition = pa.array([None if offset is None else 3 for offset in offsets], pa.int32())
    return pa.table(
        {
            "id": pa.array(range(count), pa.int32()),
            "__op": pa.array([None if offset is None else "u" for offset in offsets], pa.string()),
            "__position": pa.nulls(count, pa.string()),
            "__partition": partition,
            "__offset": pa.array(offsets, pa.int64()),
        }
    )


def test_each_adopted_row_has_a_place_of_its_own_which_is_the_same_each_time() -> None:
    keys = [f'{{"id":{number}}}' for number in range(1000)]
    found = with_origin(rows(*[None] * 999, 7), pa.array(keys))
    offsets = found["__offset"].to_pylist()
    assert len(set(offsets)) == 1000
    assert max(offsets[:-1]) < -1  # where Kafka has no record
    assert found["__partition"].to_pylist() == [*[ADOPTED] * 999, 3]
    assert found["__op"].to_pylist() == [*["c"] * 999, "u"]
    assert offsets[-1] == 7
    again = with_origin(rows(None), pa.array(keys[5:6]))
    assert again["__offset"].to_pylist() == offsets[5:6]
    [first] = again.to_pylist()
    row = row_of("sqlserver", first)
    assert (row.at, row.position, row.highest_position, row.ended) == ((ADOPTED, offsets[5]), None, None, "")
