"""What a small write by location costs, on tables of several sizes. Run by hand:

    PYTHONPATH=.:service python -m tests.benchmarks.delta_writer --rows 400000 5000000

For each size Spark makes a table; the first write, which has to index all of its files, is told by itself. Then come
writes of 200 changes: random keys, 17 of 20 upserts, a tenth of those new, the rest deletes. CPU time is this process's
and the JVM's together.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from distributary.delta.commit import CommitPayload
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.launch.session import open_session

TABLE_COLUMNS = (
    "id * 3 AS id",
    "concat('name ', id) AS name",
    "concat('e', id, '@example.org') AS email",
    "CAST(id % 100000 / 100 AS DECIMAL(12, 2)) AS amount",
    "'open' AS status",
    "timestamp_micros(1700000000000000 + id) AS updated_at",
    "concat('note ', id % 1000) AS note",
    "id % 2 = 0 AS active",
)
_TICKS = os.sysconf("SC_CLK_TCK")


class Clock:
    """Wall and CPU seconds of what runs in `measure`."""

    def __init__(self, session: SparkSession) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._java = int(jvm.java.lang.ProcessHandle.current().pid())
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def _cpu(self) -> float:
        own = resource.getrusage(resource.RUSAGE_SELF)
        fields = Path(f"/proc/{self._java}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return own.ru_utime + own.ru_stime + (int(fields[11]) + int(fields[12])) / _TICKS

    @contextmanager
    def measure(self) -> Iterator[None]:
        cpu, wall = self._cpu(), time.perf_counter()
        yield
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(self._cpu() - cpu)

    def summary(self, skipped: int = 0) -> str:
        """The numbers, without the first ones."""
        wall, cpu = np.array(self.wall[skipped:]) * 1e3, np.array(self.cpu[skipped:]) * 1e3
        return (
            f"p50 {np.percentile(wall, 50):.0f} ms, p90 {np.percentile(wall, 90):.0f} ms,"
            f" most {wall.max():.0f} ms, CPU {cpu.mean():.0f} ms in the mean"
        )


def changes(random: np.random.Generator, rows: int, count: int, number: int) -> tuple[pa.Table, pa.Table]:
    """Upserts and deletes of random keys."""
    keys: npt.NDArray[np.int64] = np.unique(random.integers(0, rows, count)) * 3
    random.shuffle(keys)
    upserted = len(keys) * 17 // 20
    upserts = keys[:upserted].copy()
    upserts[: upserted // 10] += 1  # keys that the table does not have
    texts = [f"changed {number} {key}" for key in upserts.tolist()]
    times = pa.array(np.full(upserted, 1_800_000_000_000_000 + number)).view(pa.timestamp("us", "UTC"))
    amounts = pa.array(np.full(upserted, number)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2))
    columns = {"id": upserts, "name": texts, "email": texts, "amount": amounts, "status": ["changed"] * upserted}
    rest = {"updated_at": times, "note": texts, "active": [True] * upserted}
    return pa.table(columns | rest), pa.table({"id": keys[upserted:]})


def bench(session: SparkSession, folder: Path, rows: int, count: int, commits: int) -> None:
    """Prints what writes and reads of `count` keys cost on a table of so many rows."""
    path = folder / f"t{rows}"
    made = session.range(rows, numPartitions=max(2, rows // 1_250_000))
    made.createOrReplaceTempView("made")
    session.sql(
        f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        f" AS SELECT {', '.join(TABLE_COLUMNS)} FROM made"
    )
    files = TableFiles(str(path))
    cache = IndexCache(folder / "cache", 2**29, 2**33)
    committer = DeltaCommitter(session, str(path), files)
    writer = TableWriter(files, ["id"], committer, cache, layout=RemovalLayout.VECTORS)
    random = np.random.default_rng(7)
    first, others, reads = Clock(session), Clock(session), Clock(session)
    for number in range(commits + 1):
        upserts, deletes = changes(random, rows, count, number)
        with (first if number == 0 else others).measure():
            writer.write(upserts, deletes, CommitPayload("x" * 1000, "bench", number))
        with reads.measure():
            writer.read_rows(upserts.select(["id"]), ["note"])
    sys.stdout.write(
        f"{rows} rows, {len(writer.snapshot.files)} files at the end\n"
        f"  first write: {first.summary()}\n"
        f"  {commits} writes of {count}: {others.summary(min(5, commits // 2))}\n"
        f"  reads of one column of the rows just written: {reads.summary(min(5, commits // 2))}\n"
    )
    kept = session.read.format("delta").load(str(path))
    found = kept.selectExpr("count(*) AS rows", "count(DISTINCT id) AS keys").first()
    assert found is not None
    assert found["rows"] == found["keys"]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[400_000])
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--commits", type=int, default=60)
    asked = parser.parse_args()
    session = open_session({"spark.master": "local[2]", "spark.driver.memory": "3g"})
    with tempfile.TemporaryDirectory() as folder:
        for rows in asked.rows:
            bench(session, Path(folder), rows, asked.changes, asked.commits)
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
