"""A driver without a lease, for tests in which two of them have one table.

`python -m tests.support.driver CONFIG SCHEMA TABLE END` writes a line when its Spark runs, waits for a line, and
applies the table's topic up to an offset of its one partition. Its last line is JSON: the number of batches that it
committed, and of those that were refused because the other driver was faster.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from distributary.config import load
from distributary.config.clients import spark_options
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.source import KafkaRecords
from distributary.consume.topics import TableId
from distributary.error_mapping import classify
from distributary.errors import TransientError
from distributary.ingest.tables import lake_path
from distributary.launch.session import close_session, open_session, stdout_kept_for_results
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine.table import Quarantine
from distributary.workers.context import WorkerContext
from distributary.workers.table_worker import TableWorker


class CountingRecorder(Recorder):
    """Counts the batches that were committed."""

    commits = 0

    def committed(self, *given: Any, **named: Any) -> None:
        self.commits += 1
        super().committed(*given, **named)


def drive(config_file: str, table: TableId, end: int) -> dict[str, int]:
    """Applies the table's topic up to that offset."""
    config = load(Path(config_file))
    settings = config.settings_for(table.schema, table.table)
    assert settings is not None
    with stdout_kept_for_results():
        session = open_session(config.spark_properties())
    recorder = CountingRecorder(ServiceStatus())
    properties = config.kafka_properties()
    context = WorkerContext(
        config=config,
        session=session,
        kafka=KafkaClient(properties),
        options=spark_options(properties),
        records=KafkaRecords(properties),
        quarantine=Quarantine(session, config.quarantine_path()),
        recorder=recorder,
        stopping=threading.Event(),
    )
    topic = f"{config.source.topic_prefix}.{table}"
    worker = TableWorker(context, table, topic, settings, lake_path(config, table))
    worker.set_target({0: end})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    refused = 0
    while worker.lag():
        refused += not step(worker)
    close_session(session)
    return {"commits": recorder.commits, "refused": refused}


def step(worker: TableWorker) -> bool:
    """Applies a batch; False if another driver was faster."""
    try:
        worker.step()
    except Exception as error:  # as the service does: Spark's own conflicts too
        if not isinstance(classify(error), TransientError):
            raise
        return False
    return True


if __name__ == "__main__":
    file, schema, name, until = sys.argv[1:]
    sys.stdout.write(json.dumps(drive(file, TableId(schema, name), int(until))) + "\n")
