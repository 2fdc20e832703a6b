"""When complete transactions are written for readers, and which."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from distributary.transactions.consistent_table import Complete, ConsistentTable
from distributary.transactions.frontier import Transaction


class Session:
    def newSession(self) -> Session:  # noqa: N802 - Spark's name
        return self


class Recording(ConsistentTable):
    """Keeps what would be written."""

    def __init__(self, every: float) -> None:
        self.now = 0.0
        self.appended: list[str] = []
        self.there: set[str] = set()
        self.faults: list[Exception] = []
        super().__init__(cast(SparkSession, Session()), "place", "p", every, lambda: self.now)

    def _has(self, complete: Complete) -> bool:
        return complete.transaction.id in self.there

    def _append(self, complete: Complete) -> None:
        if self.faults:
            raise self.faults.pop()
        self.appended.append(complete.transaction.id)


def complete(id_: str, *, exact: bool = True, **versions: int) -> Complete:
    return Complete(Transaction(id_, 1, 2), cast(Any, versions) or {"dbo.t": 1}, exact)


def test_3_9_the_newest_one_is_written_at_most_once_in_that_time() -> None:
    table = Recording(10)
    table.write()
    for number, now in enumerate((0, 1, 5, 10, 12)):
        table.now = now
        table.offer(complete(f"t{number}"))
        table.write()
    assert table.appended == ["t0", "t3"]
    table.write(at_once=True)  # the service ends
    assert table.appended == ["t0", "t3", "t4"]
    table.now = 100
    table.offer(complete("t4"))
    table.write()
    assert table.appended == ["t0", "t3", "t4"]


def test_3_9_what_an_earlier_process_wrote_is_not_written_again() -> None:
    table = Recording(10)
    table.there = {"first"}
    table.offer(complete("first", exact=False))
    table.write()
    table.now = 11
    table.offer(complete("second"))
    table.write()
    assert table.appended == ["second"]


def test_3_9_an_exact_one_is_not_lost_to_one_that_has_parts_of_later_transactions() -> None:
    table = Recording(10)
    table.offer(complete("first"))
    table.write()
    table.offer(complete("exact"))
    table.offer(complete("not exact", exact=False))
    table.now = 11
    table.write()
    assert table.appended == ["first", "exact"]
    table.offer(complete("not exact", exact=False))
    table.now = 22
    table.write()
    assert table.appended == ["first", "exact", "not exact"]


def test_3_9_a_storage_that_fails_is_reported_once_and_tried_again() -> None:
    table = Recording(10)
    table.offer(complete("t"))
    table.faults = [OSError("away"), OSError("away")]
    with capture_logs() as logs:
        for now in (0, 10, 20):
            table.now = now
            table.write()
    assert table.appended == ["t"]
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "complete transactions can't be written"
    ]


def test_3_9_tables_that_have_no_version_yet_are_not_written() -> None:
    table = Recording(10)
    table.offer(Complete(Transaction("t", None, 1), {}, exact=True))
    table.write(at_once=True)
    assert table.appended == []
