"""The same small writes to a table on the local disk and on an S3 API of this machine (moto, whose time counts)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from tests.benchmarks.delta_writer import TABLE_COLUMNS, changes
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, cpu_seconds
from tests.support.s3 import BUCKET, jars_with_connector, running_s3, spark_properties

from distributary.delta.commit import CommitPayload
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.launch.jars import DIRECTORY_VARIABLE
from distributary.launch.session import open_session

_NOT_COUNTED = 5


def stores(_kafka: str, folder: Path, *, rows: int = 400_000, of_batch: int = 200, batches: int = 30) -> Rounds:
    """Batches of upserts and deletes of scattered rows, in turns; the first few are not counted."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[DIRECTORY_VARIABLE] = str(jars_with_connector(folder / "jars"))
    with running_s3(folder) as store:
        session = open_session({"spark.master": "local[2]", "spark.driver.memory": "3g", **spark_properties(store)})
        try:
            return _in_turns(session, folder, rows, of_batch, batches)
        finally:
            session.stop()
            del os.environ[DIRECTORY_VARIABLE]


def _in_turns(session: SparkSession, folder: Path, rows: int, of_batch: int, batches: int) -> Rounds:
    places = {"local": str(folder / "t"), "s3": f"s3a://{BUCKET}/t"}
    writers = {name: _table(session, folder / name, path, rows) for name, path in places.items()}
    random = np.random.default_rng(7)
    made = [changes(random, rows, of_batch, number) for number in range(batches + _NOT_COUNTED)]

    def write(name: str, number: int) -> Cost:
        cpu, wall = cpu_seconds(os.getpid()), time.monotonic()
        writers[name].write(*made[number], CommitPayload("x" * 1000, "bench", number))
        return Cost(time.monotonic() - wall, cpu_seconds(os.getpid()) - cpu, 0)

    for number in range(_NOT_COUNTED):
        for name in writers:
            write(name, number)
    found = in_turns("stores", list(writers), batches, lambda name, number: write(name, number + _NOT_COUNTED))
    held = {name: session.read.format("delta").load(path) for name, path in places.items()}
    assert held["local"].count() == held["s3"].count()
    assert held["local"].exceptAll(held["s3"]).isEmpty()
    return found


def _table(session: SparkSession, cache: Path, path: str, rows: int) -> TableWriter:
    session.range(rows, numPartitions=2).selectExpr(*TABLE_COLUMNS).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(path)
    files = table_files(session, path)
    committer = DeltaCommitter(session, path, files)
    return TableWriter(files, ["id"], committer, IndexCache(cache, 2**29, 2**33), layout=RemovalLayout.VECTORS)
