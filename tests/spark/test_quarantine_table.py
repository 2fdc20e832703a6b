"""The quarantine table's own writes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.delta.commit import ConcurrentChange
from distributary.delta.writer import TableWriter
from distributary.quarantine.table import Quarantine


def bad(*offsets: int) -> pa.Table:
    count = len(offsets)
    return pa.table(
        {
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "reason": ["not-json"] * count,
            "message": ["no JSON"] * count,
        }
    )


def records(offsets: pa.Table) -> Iterator[pa.Table]:
    """In pieces of one record, some of them empty."""
    for offset in offsets["offset"].to_pylist():
        yield raw_table("p.dbo.t", [])
        yield raw_table("p.dbo.t", [SampledRecord(0, offset, b"{}", b"x" * offset, (("h", None),), 1_000 + offset)])


def stored(path: Path) -> list[tuple[int, int]]:
    """The offset of each record and the bytes of its value."""
    rows = DeltaTable(path).to_pyarrow_table()
    return sorted(zip(rows["offset"].to_pylist(), map(len, rows["value"].to_pylist()), strict=True))


def test_6_3_a_record_is_added_once_however_often_its_batch_is_repeated(session: SparkSession, tmp_path: Path) -> None:
    quarantine = Quarantine(session, str(tmp_path / "q"))
    assert quarantine.add("dbo.t", records, bad(3, 5)) == {"not-json": 2}
    for writer in (quarantine, Quarantine(session, str(tmp_path / "q"))):
        writer.add("dbo.t", records, bad(3, 5, 7))
        assert stored(tmp_path / "q") == [(3, 3), (5, 5), (7, 7)]
    assert DeltaTable(tmp_path / "q").version() == 3  # the table, and a commit for each piece with a new record


def test_6_3_other_writers_of_the_table_only_delay_a_record(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantine = Quarantine(session, str(tmp_path / "q"))
    others = iter(range(100, 107))
    quarantine.add("dbo.t", records, bad(3, *range(100, 107)))
    write, tries = TableWriter.write, []

    def late(writer: TableWriter, *given: Any, **named: Any) -> Any:
        tries.append(1)
        if len(tries) <= lost:
            DeltaTable(tmp_path / "q").delete(f"offset = {next(others)}")
        return write(writer, *given, **named)

    monkeypatch.setattr(TableWriter, "write", late)
    lost = 2
    quarantine.add("dbo.t", records, bad(5))
    assert len(tries) == 3
    lost, tries = 5, []
    with pytest.raises(ConcurrentChange, match="the quarantine table can't be written") as raised:
        quarantine.add("dbo.t", records, bad(7))
    assert "other job" in raised.value.fix
    assert stored(tmp_path / "q") == [(3, 3), (5, 5)]


def test_6_3_a_deleted_quarantine_table_is_made_anew(session: SparkSession, tmp_path: Path) -> None:
    quarantine = Quarantine(session, str(tmp_path / "q"))
    quarantine.add("dbo.t", records, bad(3))
    (tmp_path / "q").rename(tmp_path / "moved")
    quarantine.add("dbo.t", records, bad(5))
    assert stored(tmp_path / "q") == [(5, 5)]


def test_6_3_only_records_that_could_be_read_again_are_counted(session: SparkSession, tmp_path: Path) -> None:
    quarantine = Quarantine(session, str(tmp_path / "q"))

    def without_5(offsets: pa.Table) -> Iterator[pa.Table]:
        return records(offsets.filter(pc.not_equal(offsets["offset"], 5)))

    assert quarantine.add("dbo.t", without_5, bad(3, 5, 7)) == {"not-json": 2}
    assert stored(tmp_path / "q") == [(3, 3), (7, 7)]


def test_6_3_tables_add_records_at_the_same_time(session: SparkSession, tmp_path: Path) -> None:
    quarantine = Quarantine(session, str(tmp_path / "q"))
    quarantine.add("dbo.t", records, bad(99))
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda n: quarantine.add("dbo.t", records, bad(n, 8 + n)), range(8)))
    assert counts == [{"not-json": 2}] * 8
    assert [offset for offset, _size in stored(tmp_path / "q")] == [*range(16), 99]
