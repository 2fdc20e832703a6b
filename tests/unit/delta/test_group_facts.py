"""What is derived from a row group is right, and each row group is read once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.hand_made_lake import HandMadeLake

from distributary.delta.data_reader import DataReader
from distributary.delta.group_facts import GroupFact
from distributary.delta.writer import TableWriter
from distributary.errors import TableHalt

TEXTS = GroupFact(("v",), lambda group: frozenset(group["v"].to_pylist()))


def texts_beside(writer: TableWriter, *keys: int) -> list[frozenset[str | None]]:
    """The values of `v` in the row groups of these keys' rows. Four rows are a row group."""
    return sorted(writer.facts(TEXTS, writer.locate(pa.table({"id": pa.array(keys, pa.int64())}))), key=repr)


@pytest.fixture
def lake(tmp_path: Path) -> HandMadeLake:
    """Rows 0 to 11 in three row groups."""
    made = HandMadeLake(tmp_path)
    made.write({number: f"group {number // 4}" for number in range(12)})
    return made


def test_each_row_group_is_read_once(lake: HandMadeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    groups = DataReader.groups

    def counted(reader: DataReader, file: object, numbers: list[int], names: object) -> object:
        read.extend(numbers)
        return groups(reader, file, numbers, names)  # type: ignore[arg-type]

    monkeypatch.setattr(DataReader, "groups", counted)
    assert texts_beside(lake.writer, 3, 4, 5) == [{"group 0"}, {"group 1"}]
    assert read == [0, 1]
    assert texts_beside(lake.writer, 0, 7, 11, 99) == [{"group 0"}, {"group 1"}, {"group 2"}]
    assert read == [0, 1, 2]
    assert texts_beside(lake.writer) == []


def test_rows_that_moved_to_another_file_are_found_there(lake: HandMadeLake) -> None:
    assert texts_beside(lake.writer, 3, 4) == [{"group 0"}, {"group 1"}]
    lake.write({4: "new"})
    assert texts_beside(lake.writer, 3, 4) == [{"group 0"}, {"new"}]
    lake.write(dict.fromkeys(range(12), "all new"))
    assert texts_beside(lake.writer, 3, 4) == [{"all new"}] * 2
    assert {path for path, *_ in lake.writer._facts._facts} == set(lake.writer.snapshot.files), "others are forgotten"


def test_a_table_that_was_made_anew_may_have_other_files_under_the_names_of_old_ones(tmp_path: Path) -> None:
    lake, other = HandMadeLake(tmp_path / "lake"), HandMadeLake(tmp_path / "other")
    lake.write({number: f"old {number // 4}" for number in range(12)})
    assert texts_beside(lake.writer, 1) == [{"old 0"}]
    other.write({number: f"new {number // 4}" for number in range(40)})
    [old], [new] = lake.path.glob("*.parquet"), other.path.glob("*.parquet")
    shutil.rmtree(lake.path)
    shutil.copytree(other.path, lake.path)
    (lake.path / new.name).rename(lake.path / old.name)
    for log in (lake.path / "_delta_log").glob("*.json"):
        log.write_text(log.read_text("utf-8").replace(new.name, old.name), "utf-8")
    another = HandMadeLake(tmp_path / "lake").writer
    another._facts = lake.writer._facts
    another.sync()
    assert texts_beside(another, 1, 30) == [{"new 0"}, {"new 7"}]


def test_a_file_without_the_rows_that_the_log_names_is_damaged(lake: HandMadeLake) -> None:
    keys = pa.table({"id": pa.array([1], pa.int64())})
    found = lake.writer.locate(keys)
    [file] = lake.path.glob("*.parquet")
    with pq.ParquetWriter(file, pq.read_schema(file)):
        pass
    with pytest.raises(TableHalt, match="damaged"):
        lake.writer.read_found(found, ["v"])
    with pytest.raises(TableHalt, match="damaged"):
        list(lake.writer.facts(TEXTS, found))


@pytest.mark.parametrize(
    ("error", "is_damage"),
    [
        (OSError("AWS Error SLOW_DOWN during GetObject operation"), False),
        (pa.ArrowMemoryError("malloc failed"), False),
        (OSError("Corrupt snappy compressed data."), True),
        (pa.ArrowInvalid("a wrong page"), True),
    ],
    ids=str,
)
def test_a_store_that_fails_and_a_lack_of_memory_are_no_damage(
    lake: HandMadeLake, monkeypatch: pytest.MonkeyPatch, error: Exception, is_damage: bool
) -> None:
    found = lake.writer.locate(pa.table({"id": pa.array([1], pa.int64())}))

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", fails)
    with pytest.raises(TableHalt if is_damage else type(error), match="damaged" if is_damage else str(error)):
        lake.writer.read_found(found, ["v"])
