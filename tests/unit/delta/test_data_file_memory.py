"""What writing a data file takes of memory beside its rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from distributary.delta.data_file import batch_rows

WRITE = """
import resource, sys
import pyarrow as pa
from distributary.delta.data_file import FileOptions, write_parquet
from distributary.delta.storage import TableFiles

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

rows = pa.table({"id": range(7), "text": [f"{n} " + "large " * 3_400_000 for n in range(7)]})
before = peak()
write_parquet(TableFiles(sys.argv[1]), "part.parquet", rows, FileOptions())
print(peak() - before)
"""


@pytest.mark.thorough
def test_huge_values_are_not_copied_all_at_once(tmp_path: Path) -> None:
    """The texts have 140 MB."""
    done = subprocess.run([sys.executable, "-c", WRITE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


@pytest.mark.parametrize(
    ("values", "rows"), [(["x"] * 10_000, 1_024), ([], 1_024), (["x" * 2**20] * 4, 1), (["x" * 2**16] * 64, 15)]
)
def test_rows_at_once_follow_their_bytes(values: list[str], rows: int) -> None:
    assert batch_rows(pa.table({"text": pa.array(values, pa.string())})) == rows
