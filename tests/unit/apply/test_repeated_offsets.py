"""Rows of the table and new records that name the same place of the topic."""

from __future__ import annotations

import pyarrow as pa
import pytest

from distributary.apply.repeated_offsets import check_offsets
from distributary.errors import TableHalt


def events(*records: tuple[int, int, int | None]) -> pa.Table:
    """Partition, offset and key of each."""
    keys = [None if key is None else {"id": key} for *_, key in records]
    return pa.table(
        {
            "partition": pa.array([partition for partition, *_ in records], pa.int32()),
            "offset": pa.array([offset for _, offset, _ in records], pa.int64()),
            "key": pa.array(keys, pa.struct([("id", pa.int64())])),
        }
    )


ROWS = pa.table({"__partition": pa.array([0, 1, None], pa.int32()), "__offset": pa.array([5, 7, None], pa.int64())})
KEYS = pa.array(["1", "2", "3"])


@pytest.mark.parametrize(
    "batch",
    [
        events(),
        events((0, 6, 9), (1, 5, 9), (0, 7, 9)),
        pytest.param(events((0, 5, 1), (1, 7, 2)), id="the same records"),
        pytest.param(events((0, 5, None)), id="a truncate"),
    ],
)
def test_other_places_and_the_same_records_are_all_right(batch: pa.Table) -> None:
    check_offsets(ROWS, KEYS, [batch])


def test_the_record_of_another_key_halts_the_table() -> None:
    with pytest.raises(TableHalt, match="partition 1, offset 7") as caught:
        check_offsets(ROWS, KEYS, [events((0, 5, 1)), events((1, 7, 9))])
    assert caught.value.code == "offsets-repeat"
    assert "--rebuild" in caught.value.fix
