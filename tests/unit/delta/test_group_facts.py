"""What is derived from a row group is right, and each row group is read once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.hand_made_lake import HandMadeLake

from distributary.delta.data_reader import DataReader
from distributary.delta.group_facts import GroupFact
from distributary.delta.writer import TableWriter

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
    assert set(lake.writer._facts._facts) == set(lake.writer.snapshot.files), "files that are gone are forgotten"
