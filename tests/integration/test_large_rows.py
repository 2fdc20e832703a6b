"""A table's files are read in parts that fit into the driver's memory, however large their rows are."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from distributary.merge.table import UNKNOWN_ROW, rows_at_once

FILES, ROWS, TEXT = 9, 175, 1_000_000

_COMPACT = f"""
import sys
from distributary.launch.session import close_session, open_session
from distributary.merge.files import compact
from distributary.merge.table import UNKNOWN_ROW, LakeTable
session = open_session({{"spark.master": "local[2]", "spark.driver.memory": "1700m"}})
table = LakeTable(session, sys.argv[1], {{}})
table.suit({FILES * ROWS}, row_bytes=float(sys.argv[2]))
compact(table.session, table.path, 1 << 30)
close_session(session)
"""


@pytest.mark.parametrize(
    ("row_bytes", "rows"), [(0, 4096), (100, 4096), (16_384, 1024), (UNKNOWN_ROW, 64), (1e6, 16), (1e9, 1)]
)
def test_large_rows_are_read_in_smaller_parts(row_bytes: float, rows: int) -> None:
    assert rows_at_once(4096, row_bytes) == rows


def compacted(table: Path, row_bytes: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _COMPACT, str(table), str(row_bytes)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.slow
def test_files_of_large_rows_are_compacted_with_little_memory(tmp_path: Path) -> None:
    words = [str(random.random()) for _ in range(2_000)]
    for file in range(FILES):
        ids = range(file * ROWS, (file + 1) * ROWS)
        texts = ["".join(random.choices(words, k=TEXT // 18)) for _ in ids]
        write_deltalake(tmp_path, pa.table({"id": ids, "text": texts}), mode="append")
    # That it is the size of the rows: it does not go as for rows of any size.
    assert "OutOfMemoryError" in compacted(tmp_path, 0).stdout
    done = compacted(tmp_path, UNKNOWN_ROW)
    assert done.returncode == 0, done.stdout + done.stderr
    table = DeltaTable(str(tmp_path))
    assert next(commit["operation"] for commit in table.history()) == "OPTIMIZE"
    assert sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist()) == list(range(FILES * ROWS))
