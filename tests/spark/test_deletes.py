"""The memory of deleted rows: many small files become one of each day, with the same in it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from distributary.merge.deletes import RememberedDeletes

KEY = {"id": "bigint", "name": "string"}
DAYS = date(2026, 5, 1), date(2026, 5, 2)


def gone(number: int) -> pa.Table:
    """A deleted row as the service's own process remembers it."""
    columns = {"k0": [number], "k1": [None], "position": [f"{number:08}"], "reads": ["r" if number % 2 else None]}
    types = {"k0": pa.int64(), "k1": pa.string(), "position": pa.string(), "reads": pa.string()}
    return pa.table(columns, schema=pa.schema(types))


def test_files_are_gathered_day_by_day_and_hold_the_same(session: SparkSession, tmp_path: Path) -> None:
    memory = RememberedDeletes(session, str(tmp_path / "deleted"))
    memory.gather(KEY, of_changes=False)  # nothing is remembered yet
    for number in range(15):
        memory.remember_rows(gone(number), DAYS[0])
    for number in range(15, 18):
        memory.remember_rows(gone(number), DAYS[1])

    def files() -> dict[str, int]:
        found = {day.name: list(day.glob("part-*.parquet")) for day in (tmp_path / "deleted").glob("deleted_on=*")}
        return {name: len(parts) for name, parts in sorted(found.items())}

    def held() -> list[tuple[object, ...]]:
        frame = memory._read(KEY)
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    before = held()
    assert len(before) == 18
    memory.gather(KEY, of_changes=False)
    assert files() == {"deleted_on=2026-05-01": 1, "deleted_on=2026-05-02": 3}
    assert held() == before
    memory.gather(KEY, of_changes=False)
    assert files() == {"deleted_on=2026-05-01": 1, "deleted_on=2026-05-02": 3}
    memory.forget_old(date(2026, 6, 1))
    assert files() == {"deleted_on=2026-05-02": 3}
