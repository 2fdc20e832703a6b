"""Old records are deleted from a quarantine table that Spark created, by the command and by the service."""

from __future__ import annotations

import time
from typing import cast

from tests.support.changes import Topic
from tests.support.spark import Bench, rows_of

from distributary.maintain.own_table import OwnTableFiles
from distributary.maintain.schedule import MaintenanceSchedule, StoredValue, Task
from distributary.quarantine.purge import purge


class Nowhere:
    """A value that is stored nowhere."""

    def read(self) -> None:
        return None

    def write(self, _value: object) -> None:
        return None


def test_records_go_and_others_come(bench: Bench) -> None:
    bench.create()
    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1}, at=1)
    topic.add({"id": 1}, b"no json")
    worker = bench.take(topic.records)
    assert len(rows_of(bench.quarantine, "offset")) == 1
    assert purge(bench.config(), 3600) == 0
    assert purge(bench.config(), 0) == 1
    assert rows_of(bench.quarantine, "offset") == []

    topic.add({"id": 1}, b"no json either")
    bench.take(topic.records[-1:], worker)
    assert rows_of(bench.quarantine, "offset") == [(2,)]

    schedule = MaintenanceSchedule(worker.settings.maintenance, cast(StoredValue, Nowhere()))
    clock = time.time
    files = OwnTableFiles(
        "_quarantine", bench.session, worker.context.quarantine, schedule, 3600.0, lambda: clock() + 60
    )
    files.due()
    files.maintain(Task.VACUUM)
    assert rows_of(bench.quarantine, "offset") == [(2,)]
    files = OwnTableFiles(
        "_quarantine", bench.session, worker.context.quarantine, schedule, 3600.0, lambda: clock() + 7200
    )
    files.due()
    files.maintain(Task.VACUUM)
    assert rows_of(bench.quarantine, "offset") == []
