"""What a table of the service's own needs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from distributary.config.maintenance import Maintenance
from distributary.maintain import own_table
from distributary.maintain.own_table import OwnTableFiles
from distributary.maintain.schedule import MaintenanceSchedule, Task


class Stored:
    """The record, in memory."""

    def read(self) -> Any:
        return None

    def write(self, value: Any) -> None:
        """Not read again."""


def test_whoever_asks_while_another_thread_reads_the_log_gets_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run --once` ends if nothing is due, and the thread of maintenance may have just begun to look."""
    reading, go_on = threading.Event(), threading.Event()

    class SlowLog:
        def __init__(self, *_given: object) -> None:
            pass

        def version(self, _known: int | None) -> int:
            reading.set()
            assert go_on.wait(60)
            return 5

    monkeypatch.setattr(own_table, "DeltaLog", SlowLog)
    table = SimpleNamespace(path="q", lock=threading.Lock(), writes=5, time_column="at")
    session = SimpleNamespace(newSession=lambda: None)
    schedule = MaintenanceSchedule(Maintenance(compact_after=4), Stored())
    files = OwnTableFiles("q", session, table, schedule)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(files.due)
        assert reading.wait(60)
        second = pool.submit(files.due)
        assert not second.done()
        go_on.set()
        found = [asked.result(60) for asked in (first, second)]
    assert [due and due.task for due in found] == [Task.COMPACT, Task.COMPACT]
