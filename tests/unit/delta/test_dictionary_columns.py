"""Values that repeat are stored once in a file, and others without a dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distributary.delta.data_file import FileOptions, write_parquet
from distributary.delta.dictionary_columns import dictionary_columns
from distributary.delta.storage import TableFiles

ROWS = 6_000


def with_dictionary(folder: Path, rows: pa.Table) -> set[str]:
    """The columns that have a dictionary in a file with these rows."""
    write_parquet(TableFiles(str(folder)), "a.parquet", rows, FileOptions())
    with pq.ParquetFile(folder / "a.parquet") as file:
        assert file.read().equals(rows)
        chunks = [file.metadata.row_group(0).column(index) for index in range(file.metadata.num_columns)]
        return {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}


@pytest.mark.parametrize(
    ("values", "repeats"),
    [
        ([f"text {number}" for number in range(ROWS)], False),
        ([f"text {number // 2}" for number in range(ROWS)], True),
        ([f"text {number % 100}" for number in range(ROWS)], True),
        ([*range(ROWS)], False),
        ([number // 3 for number in range(ROWS)], True),
        ([None if number % 3 else number for number in range(ROWS)], False),
        ([1.5] * ROWS, True),
        ([b"x%d" % number for number in range(ROWS)], False),
    ],
)
def test_only_values_that_repeat_have_a_dictionary(tmp_path: Path, values: list[Any], repeats: bool) -> None:
    assert with_dictionary(tmp_path, pa.table({"v": values})) == ({"v"} if repeats else set())


def test_columns_within_others_have_their_names_in_the_file(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "plain": [*range(ROWS)],
            "with.dot": ["same"] * ROWS,
            "a": [{"b": "same", "c": [{"d": 1}]}] * ROWS,
            "list": [[1, 1]] * ROWS,
            "map": pa.array([[("key", "value")]] * ROWS, pa.map_(pa.string(), pa.string())),
        }
    )
    nested = {"a.b", "a.c.list.element.d", "list.list.element", "map.key_value.key", "map.key_value.value"}
    assert with_dictionary(tmp_path, rows) == {"with.dot", *nested}


def test_large_values_are_not_copied_to_be_counted() -> None:
    large = pa.table({"v": ["x" * 2**21] * 8, "n": [1] * 8})
    before = pa.default_memory_pool().max_memory()
    assert dictionary_columns(large) == ["n"]
    assert pa.default_memory_pool().max_memory() - before < 2**20


@pytest.mark.parametrize("kind", [pa.null(), pa.int64(), pa.string(), pa.list_(pa.int64())])
def test_columns_without_values_are_no_fault(tmp_path: Path, kind: pa.DataType) -> None:
    rows = pa.table({"v": pa.nulls(3, kind), "id": [1, 2, 3]})
    assert dictionary_columns(rows.slice(0, 0)) is not None
    with_dictionary(tmp_path, rows)
