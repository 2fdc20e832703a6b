"""A driver that writes rows to a table in a bucket, a commit each, beside others that do the same.

    python -m tests.support.s3_writer FOLDER NAME COUNT

It waits until FOLDER has a file `start`; its own file NAME shows that it is ready, and at the end has, as JSON, how
often another driver was faster.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
from tests.support.s3 import BUCKET, Store, spark_properties

from distributary.delta.checkpoint import LogCheckpointer
from distributary.delta.commit import CommitPayload, ConcurrentChange
from distributary.delta.index_cache import IndexCache
from distributary.delta.table_storage import table_files
from distributary.delta.transaction import DeltaCommitter
from distributary.delta.writer import TableWriter
from distributary.launch.session import open_session

TABLE = f"s3a://{BUCKET}/t"
STORE_VARIABLE = "TEST_S3_ENDPOINT"
START = "start"


def main(folder: Path, name: str, count: int) -> None:
    store = Store(os.environ[STORE_VARIABLE])
    session = open_session({"spark.master": "local[1]", "spark.driver.memory": "1g", **spark_properties(store)})
    files = table_files(session, TABLE)
    writer = TableWriter(
        files, ["id"], DeltaCommitter(session, TABLE, files), IndexCache(folder / f"cache-{name}", 2**20, 2**20)
    )
    keeper = LogCheckpointer(session, TABLE, files)
    answer = folder / name
    answer.touch()
    while not (folder / START).exists():
        time.sleep(0.01)
    lost = 0
    for number in range(count):
        rows = pa.table({"id": [f"{name}-{number}"], "v": pa.array([number], pa.int64())})
        while True:
            writer.sync()
            try:
                writer.write(rows, None, CommitPayload("", name, number))
            except ConcurrentChange:
                lost += 1
            else:
                break
        if keeper.is_due(writer.snapshot):
            keeper.checkpoint(writer.snapshot)
    answer.write_text(json.dumps(lost))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
