"""How many bytes are written for a byte that changes, at the commits of small batches and with the upkeep behind them.
Run by hand; the writer alone, without Spark and Kafka:

    PYTHONPATH=.:service python -m tests.benchmarks.written_bytes --rows 400000 --batches 1000

A changed row counts with the bytes that it has in the first file of the table, which is compressed and has only rows.
Data files, deletion vectors and the log's commits count as written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.support.delta_log import HandCommitter, HandMadeTable, field

from distributary.config.maintenance import Maintenance
from distributary.delta.commit import CommitPayload
from distributary.delta.compaction import next_file_group
from distributary.delta.index_cache import IndexCache
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.maintain.schedule import REWRITTEN_FILE

CHANGES = 200
NEW = 50
"""Of the changes of a batch those that insert a row; the others update rows all over the table."""
_TEXTS = {"name": 20, "mail": 20, "note": 30}
"""Columns of random bytes in hexadecimal, which hardly compress."""
_AFTER = Maintenance().compact_after
_RECORD = "x" * 1000
"""A progress record has about this size."""


def rows_of(ids: Sequence[int], random: Random, batch: int) -> pa.Table:
    """Rows as the service writes them."""
    texts = {name: [random.randbytes(size).hex() for _ in ids] for name, size in _TEXTS.items()}
    positions = [f"000:{batch:020d}/{index}" for index in range(len(ids))]
    return pa.table({"id": pa.array(ids, pa.int64()), **texts, "__op": ["u"] * len(ids), "__position": positions})


def bytes_in(table: Path) -> int:
    """The bytes of all files that were ever written for the table."""
    return sum(file.stat().st_size for file in table.rglob("*") if file.is_file())


def measure(folder: Path, rows: int, batches: int) -> None:
    """Prints both ratios after each tenth of the batches."""
    random, path = Random(1), folder / "table"
    columns = [field("id", "long"), *(field(name, "string") for name in (*_TEXTS, "__op", "__position"))]
    table = HandMadeTable(path).create(*columns)
    writer = TableWriter(
        TableFiles(str(path)), ["id"], HandCommitter(table), IndexCache(folder / "index", 2**29, 2**33)
    )
    count = 0

    def record() -> CommitPayload:
        nonlocal count
        count += 1
        return CommitPayload(_RECORD, "distributary", count)

    writer.sync()
    writer.write(rows_of(range(rows), random, 0), None, record())
    row_bytes = sum(file.stat().st_size for file in path.glob("*.parquet")) / rows
    at_commits = upkeep = since = 0
    for batch in range(1, batches + 1):
        ids = [*random.sample(range(rows), CHANGES - NEW), *range(rows + NEW * batch, rows + NEW * (batch + 1))]
        before = bytes_in(path)
        writer.write(rows_of(ids, random, batch), None, record())
        at_commits += bytes_in(path) - before
        since += 1
        if since == _AFTER or writer.snapshot.needs_compaction:
            since, before = 0, bytes_in(path)
            while piece := next_file_group(writer.snapshot.files.values(), REWRITTEN_FILE):
                writer.compact(piece, record())
            upkeep += bytes_in(path) - before
        if batch % max(1, batches // 10) == 0:
            changed = batch * CHANGES * row_bytes
            sys.stdout.write(
                f"{batch:6d} batches: {at_commits / changed:5.2f} bytes written for a changed one,"
                f" {(at_commits + upkeep) / changed:5.2f} with upkeep, {len(writer.snapshot.files)} files\n"
            )
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--batches", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.rows, options.batches)


if __name__ == "__main__":
    main()
