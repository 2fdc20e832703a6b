"""Values that are kept beside a table, when it has got other columns."""

from __future__ import annotations

import pyarrow as pa

from distributary.apply.values import SERVICE, values_type, with_columns
from distributary.types.column_default import ColumnDefault

OLD, NEW = pa.struct([("id", pa.int64())]), pa.struct([("id", pa.int64()), ("c", pa.int64())])
FIRST = "000:00000000000000000009/00000000000000000005/0000000000/1/a/00000000000000000007"
TOOK_OVER = "000:00000000000000000001/00000000000000000004/0000000000/2/a/00000000000000000020"
LATER = "000:00000000000000000001/00000000000000000900/0000000000/2/a/00000000000000000021"


def filled(positions: list[str | None], before: str) -> list[int | None]:
    """What the new column has in kept rows with these positions."""
    columns = {name: pa.nulls(len(positions), kind) for name, kind in SERVICE.items()}
    rows = pa.array([{"id": number} for number in range(len(positions))], OLD)
    values = pa.table({**columns, "position": pa.array(positions, pa.string()), "row": rows}, values_type(OLD))
    found = with_columns(values, NEW, {"c": ColumnDefault("5", before)}, "mysql")
    return [row["c"] for row in found["row"].to_pylist()]


def test_5_1_rows_of_a_server_that_another_one_took_over_from_get_the_default_of_its_column() -> None:
    assert filled([FIRST, TOOK_OVER, LATER], TOOK_OVER) == [5, None, None]


def test_5_1_rows_that_were_in_the_table_before_the_service_had_it_get_what_the_table_gives_them() -> None:
    assert filled([None], TOOK_OVER) == [5]


def test_5_1_a_place_of_kafka_s_tells_nothing_of_the_log() -> None:
    assert filled(["000:@000000000000001/0000000000/00000000000000000001"], TOOK_OVER) == [None]
