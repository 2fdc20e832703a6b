"""The service for a long time, with all of its tables changing all the time: what it holds does not grow.

    SOAK_MINUTES=120 SOAK_RESULTS=soak.json pytest -m slow -s tests/e2e/test_soak.py

Everything is as a user has it by default, but that tables are compacted sooner: it is to come about in these minutes.
The lake, the checkpoint and the temporary files lie in places of their own, so that their files can be counted.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import signal
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.jvm import LONG_LIVED
from tests.support.kafka import Record, create_topic, produce
from tests.support.playback import Playback, Running
from tests.support.vitals import Heap, Series, files_in, heap, java_of, metaspace, of_process

from distributary.demo import record as demo
from distributary.demo.comparison import compare
from distributary.demo.connect import BOOLEAN, DATE, INT32, INT64, STRING, TIMESTAMP, Column, decimal
from distributary.demo.process import free_ports
from distributary.demo.sqlserver import SqlServerTable

MINUTES = float(os.environ.get("SOAK_MINUTES", "20"))
TABLES = int(os.environ.get("SOAK_TABLES", "50"))
CHANGES = 100  # a second, of all tables together
COMPACTED_AFTER = 5  # commits
ROWS = 300  # of each table at the start; about as many are deleted as inserted
EVERY = min(30.0, 60 * MINUTES / 24)  # seconds between two samples
HEAP_EVERY = 4  # samples: a full collection frees what would else lie there for longer, files too
PATIENCE = 900  # seconds until all tables must be there at first, and until they must equal the source at the end
SHARE = 0.15  # by which nothing may be more in the last quarter than in the second
JUDGED = {
    # What of a growth is within what comes and goes.
    "heap MB": 15,
    "metaspace MB": 15,
    "java threads": 5,
    "java descriptors": 15,
    "python threads": 2,
    "python descriptors": 5,
    "python RSS MB": 40,
    # Block files of Spark lie there until Java's next collection, or half an hour.
    "temporary files": 100,
    # Spark keeps its last 100 batches: an offset and a commit of each, with their checksums.
    "checkpoint files": 420,
    # One for each batch with deletes, until the table is compacted: the machine must leave time for that.
    "service's files": (COMPACTED_AFTER + 1) * TABLES,
}

COLUMNS = (
    Column("id", INT32),
    Column("customer", STRING),
    Column("amount", decimal(12, 2), optional=True),
    Column("quantity", INT64),
    Column("placed_at", TIMESTAMP),
    Column("ship_by", DATE, optional=True),
    Column("paid", BOOLEAN),
    Column("note", STRING, optional=True),
)


class Trickle:
    """One table of the source, and what happens in it."""

    def __init__(self, prefix: str, number: int) -> None:
        self._random = Random(number)
        self.table = SqlServerTable(prefix, "shop", "dbo", f"t{number:03d}", COLUMNS, ["id"])
        self._keys = list(range(ROWS))
        self._next = ROWS

    def snapshot(self) -> list[Record]:
        """The rows that are there at the start."""
        self.table.load({"id": key, **self._values()} for key in self._keys)
        return _records(self.table.snapshot())

    def change(self) -> list[Record]:
        """One transaction of one change: 40 % updates, 25 % inserts, 25 % deletes, 10 % other keys."""
        transaction, what = self.table.begin(), self._random.random()
        if what < 0.25 or not self._keys:
            transaction.insert({"id": self._new(), **self._values()})
        elif what < 0.5:
            transaction.delete(self._keys.pop(self._random.randrange(len(self._keys))))
        elif what < 0.6:
            old = self._keys.pop(self._random.randrange(len(self._keys)))
            transaction.update(old, id=self._new(), **self._values())
        else:
            transaction.update(self._random.choice(self._keys), **self._values())
        return _records(transaction.commit())

    def _new(self) -> int:
        self._next += 1
        self._keys.append(self._next)
        return self._next

    def _values(self) -> dict[str, Any]:
        some = self._random
        return {
            "customer": f"customer {some.randrange(10**6)}",
            "amount": Decimal(some.randrange(10**9)).scaleb(-2) if some.random() < 0.9 else None,
            "quantity": some.randrange(2**40),
            "placed_at": dt.datetime(2026, 1, 1) + dt.timedelta(seconds=some.randrange(10**7)),  # noqa: DTZ001
            "ship_by": dt.date(2026, 1, 1) + dt.timedelta(days=some.randrange(300)),
            "paid": some.random() < 0.5,
            "note": "note " * some.randrange(20),
        }


def _records(simulated: Iterable[demo.Record]) -> list[Record]:
    return [Record(one.topic, one.partition, one.key, one.value, one.headers) for one in simulated]


@contextmanager
def changing(bootstrap: str, tables: Sequence[Trickle]) -> Iterator[threading.Event]:
    """All tables change, CHANGES times a second in all, until the block ends; every record is in Kafka then."""
    ended, failed = threading.Event(), list[Exception]()

    def send() -> None:
        number, began = 0, time.monotonic()
        try:
            while not ended.wait(max(0.0, began + number - time.monotonic())):
                number += 1
                picked = [tables[(number * CHANGES + i) % len(tables)] for i in range(CHANGES)]
                produce(bootstrap, [record for table in picked for record in table.change()])
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield ended
    finally:
        ended.set()
        thread.join()
    assert not failed, failed


class Watch:
    """Samples the service: `series` are all its values, `heaps` what lived in Java's heap and when."""

    def __init__(self, playback: Playback, folder: Path, running: Running, page: str) -> None:
        self.series = Series()
        self.heaps: list[Heap] = []
        self._playback, self._folder, self._running, self._page = playback, folder, running, page
        self._java = java_of(running.process.pid)
        self._samples = 0

    def look_for(self, seconds: float) -> None:
        """Takes samples for so long."""
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            assert self._running.process.poll() is None, self._running.log.read_text("utf-8")[-4000:]
            self._look()
            time.sleep(max(0.0, min(began + EVERY, end) - time.monotonic()))

    def _look(self) -> None:
        """Takes a sample, of the heap once in a while."""
        lake = self._playback.lake
        tables = list((lake / "dbo").iterdir())
        commits = sum(len(list((table / "_delta_log").glob("*.json"))) for table in tables)
        of_tables = files_in(*tables)
        values = {
            **{f"java {name}": value for name, value in of_process(self._java).items()},
            **{f"python {name}": value for name, value in of_process(self._running.process.pid).items()},
            "metaspace MB": metaspace(self._java),
            "temporary files": files_in(self._folder / "tmp", self._folder / "spark"),
            "checkpoint files": files_in(self._folder / "checkpoint"),
            "service's files": files_in(lake) - of_tables,
            "tables' files": of_tables,
            "tables' live files": sum(len(DeltaTable(str(table)).file_uris()) for table in tables),
            "log kB": self._running.log.stat().st_size / 1024,
            "commits": commits,
            "lag records": sum(table["lag_records"] for table in self._status().values()),
        }
        if self._samples % HEAP_EVERY == 0:
            self.heaps.append(heap(self._java))
            values["heap MB"] = self.heaps[-1].megabytes
        self._samples += 1
        self.series.add(time.monotonic(), values)

    def _status(self) -> dict[str, dict[str, Any]]:
        # Metrics, too: whoever has a service for long has them read all the time.
        with urllib.request.urlopen(f"{self._page}/metrics", timeout=60) as answer:
            assert answer.read()
        with urllib.request.urlopen(f"{self._page}/status", timeout=60) as answer:
            found: dict[str, dict[str, Any]] = json.load(answer)["tables"]
            return found


def until_equal(running: Running, lake: Path, tables: Sequence[Trickle]) -> None:
    """Until every table is what its source is."""
    deadline, left = time.monotonic() + PATIENCE, list(tables)
    while left := [one for one in left if not compare(one.table.truth(), lake).equal]:
        assert running.process.poll() is None, running.log.read_text("utf-8")[-4000:]
        assert time.monotonic() < deadline, f"{len(left)} tables differ: {[one.table.topic for one in left[:5]]}"
        time.sleep(2)


def until_checkpointed(running: Running, lake: Path) -> None:
    """Until the log of every table has a checkpoint: what writes them has threads and memory that stay."""
    deadline = time.monotonic() + PATIENCE
    while not all((table / "_delta_log" / "_last_checkpoint").exists() for table in (lake / "dbo").iterdir()):
        assert running.process.poll() is None, running.log.read_text("utf-8")[-4000:]
        assert time.monotonic() < deadline, "not every table's log has a checkpoint"
        time.sleep(2)


@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 3 * PATIENCE + 600)
def test_what_a_service_holds_does_not_grow(kafka: str, tmp_path: Path) -> None:
    [port] = free_ports(1)
    maintenance = {"maintenance": {"compact_after": COMPACTED_AFTER}}
    playback = Playback(kafka, tmp_path, http={"port": port}, defaults=maintenance)
    playback.configure([{"match": "dbo.*"}])
    tables = [Trickle(playback.prefix, number) for number in range(TABLES)]
    for one in tables:
        create_topic(kafka, one.table.topic)
        produce(kafka, one.snapshot())
    for name in ("tmp", "spark"):
        (tmp_path / name).mkdir()
    options = f"{LONG_LIVED['JAVA_TOOL_OPTIONS']} -Djava.io.tmpdir={tmp_path / 'tmp'}"
    places = {"TMPDIR": str(tmp_path / "tmp"), "SPARK_LOCAL_DIRS": str(tmp_path / "spark")}
    with playback.start(**places, JAVA_TOOL_OPTIONS=options) as running:
        until_equal(running, playback.lake, tables)
        watch = Watch(playback, tmp_path, running, f"http://127.0.0.1:{port}")
        with changing(kafka, tables):
            until_checkpointed(running, playback.lake)
            try:
                watch.look_for(60 * MINUTES)
            finally:
                tell(watch)
        until_equal(running, playback.lake, tables)
        running.process.send_signal(signal.SIGTERM)
        assert running.ended(120).exit_code == 0
    assert not playback.quarantined()
    assert not files_in(tmp_path / "spark"), "Spark's local files are there after the end"
    found = [watch.series.growth(name, SHARE, allowance) for name, allowance in JUDGED.items()]
    grown = "\n".join(one for one in found if one)
    assert not grown, f"{grown}\n\n{watch.heaps[-1].grown_since(watch.heaps[len(watch.heaps) // 3])}"


def tell(watch: Watch) -> None:
    """Prints what came out, and writes it to the path in SOAK_RESULTS."""
    print(f"\n{TABLES} tables, {CHANGES} changes a second, {MINUTES:g} minutes\n{watch.series}")  # noqa: T201
    print(f"\n{watch.heaps[-1].grown_since(watch.heaps[len(watch.heaps) // 3])}")  # noqa: T201
    if not (place := os.environ.get("SOAK_RESULTS")):
        return
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    result = {
        "workload": "soak",
        "when": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "memory_gb": memory, "python": platform.python_version()},
        "tables": TABLES,
        "changes_per_second": CHANGES,
        "minutes": MINUTES,
        "series": watch.series.as_dict(),
    }
    Path(place).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
