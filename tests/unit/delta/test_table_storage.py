"""The file system of a table for pyarrow."""

from __future__ import annotations

import pytest
from pyarrow import fs

from distributary.delta.storage import TableFiles, in_file_system


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3a://bucket/cdc/dbo/t", "bucket/cdc/dbo/t"),
        ("gs://bucket/cdc/dbo/t", "bucket/cdc/dbo/t"),
        ("abfss://container@account.dfs.core.windows.net/cdc/dbo/t", "container/cdc/dbo/t"),
        ("hdfs://namenode:8020/cdc/dbo/t", "/cdc/dbo/t"),
        ("file:///cdc/dbo/t", "/cdc/dbo/t"),
    ],
)
def test_a_uri_has_its_place_in_the_file_system(uri: str, expected: str) -> None:
    assert in_file_system(uri) == expected
    if not uri.startswith(("s3a", "hdfs")):  # a scheme that pyarrow does not have, and one that needs Hadoop's library
        assert fs.FileSystem.from_uri(uri)[1] == expected


def test_paths_of_the_log_are_relative_or_whole() -> None:
    files = TableFiles("container/cdc/dbo/t")
    assert files.filesystem_path("a%20b.parquet") == "container/cdc/dbo/t/a b.parquet"
    assert (
        files.filesystem_path("abfss://container@account.dfs.core.windows.net/x/a%20b.parquet")
        == "container/x/a b.parquet"
    )
