"""Files with large rows are read in parts that fit into the driver's memory."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.changes import Topic
from tests.support.spark import Bench

from distributary.lake.reader_batch import ROWS_AT_ONCE, rows_at_once
from distributary.maintain.schedule import Task

FILES, ROWS, TEXT = 9, 175, 1_000_000

_COMPACT = """
import sys
from distributary.launch.session import close_session, open_session
from distributary.lake import optimize
session = open_session({"spark.master": "local[2]", "spark.driver.memory": "900m"})
if sys.argv[2] == "as it comes":
    optimize.read_few_rows_at_once = lambda *_: None
optimize.compact(session, sys.argv[1], 1 << 30)
close_session(session)
"""


def test_few_rows_are_read_at_once_while_files_of_a_clustered_table_are_compacted(bench: Bench) -> None:
    bench.rule = {"cluster_by": ["id"]}
    topic = Topic(bench.create().topic)
    topic.change("c", {"id": 1}, {"id": 1, "text": "x"}, at=1)
    worker = bench.take(topic.records)
    worker.maintain(Task.COMPACT)
    assert rows_at_once(worker.lake.session) == ROWS_AT_ONCE
    assert bench.rows("id", "text") == [(1, "x")]


def compacted(table: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _COMPACT, str(table), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.slow
def test_files_of_large_rows_are_compacted_with_little_memory(tmp_path: Path) -> None:
    words = [str(random.random()) for _ in range(2_000)]
    for file in range(FILES):
        ids = range(file * ROWS, (file + 1) * ROWS)
        texts = ["".join(random.choices(words, k=TEXT // 18)) for _ in ids]
        write_deltalake(tmp_path, pa.table({"id": ids, "text": texts}), mode="append")
    # As Spark does it by itself it does not go.
    assert "OutOfMemoryError" in compacted(tmp_path, "as it comes").stdout
    done = compacted(tmp_path, "in parts")
    assert done.returncode == 0, done.stdout + done.stderr
    table = DeltaTable(str(tmp_path))
    assert next(commit["operation"] for commit in table.history()) == "OPTIMIZE"
    assert sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist()) == list(range(FILES * ROWS))
