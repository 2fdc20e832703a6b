"""The cache has no indexes of files that the table has no more: each small commit adds a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from tests.support.hand_made_lake import RECORD, HandMadeLake

from distributary.delta.plan_write import RemovalLayout


def indexes(lake: HandMadeLake) -> int:
    return len(list(lake.cache.glob("*.keys")))


def test_the_index_of_a_file_goes_with_the_file(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.REWRITE)
    for number in range(20):
        lake.write({1: f"text {number}", 2: f"text {number}"})
        assert len(lake.writer.snapshot.files) == indexes(lake) == 1
    assert lake.rows() == {1: "text 19", 2: "text 19"}


def test_files_that_another_writer_removes_have_none_and_a_new_one_is_made_where_they_come_back(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path)
    lake.write({1: "a"})
    lake.write({2: "b"})
    assert indexes(lake) == 2
    other = lake.new_writer()
    other.write(pa.table({"id": [1, 2], "v": ["c", "c"]}), pa.table({"id": pa.array([], pa.int64())}), RECORD)
    lake.writer.sync()
    assert indexes(lake) == len(lake.writer.snapshot.files)
    lake.write({1: "d", 2: "d"})
    assert lake.rows() == {1: "d", 2: "d"}
