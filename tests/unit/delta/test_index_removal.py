"""The cache has no indexes of files that the table has no more: each small commit adds a file."""

from __future__ import annotations

from pathlib import Path

from tests.support.hand_made_lake import HandMadeLake

from distributary.delta.plan_write import RemovalLayout


def indexes(lake: HandMadeLake) -> int:
    return len(list(lake.cache.glob("*.keys")))


def test_the_index_of_a_file_goes_with_the_file(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.REWRITE)
    for number in range(20):
        lake.write({1: f"text {number}", 2: f"text {number}"})
        assert len(lake.writer.snapshot.files) == indexes(lake) == 1
    assert lake.rows() == {1: "text 19", 2: "text 19"}


def test_an_index_that_went_with_its_file_is_made_anew_where_the_file_comes_back(tmp_path: Path) -> None:
    lake = HandMadeLake(tmp_path, RemovalLayout.REWRITE)
    lake.write({1: "a", 2: "b"})
    [old] = lake.writer.snapshot.files.values()
    lake.write({1: "c", 2: "d"})
    [new] = lake.writer.snapshot.files.values()
    removed = {"path": new.path, "dataChange": True}
    lake.table.commit({"remove": removed}, {"add": dict(old.action)})  # as RESTORE does
    lake.writer.sync()
    assert indexes(lake) == 0
    lake.write({2: "e"})
    assert lake.rows() == {1: "a", 2: "e"}
    assert indexes(lake) == len(lake.writer.snapshot.files)
