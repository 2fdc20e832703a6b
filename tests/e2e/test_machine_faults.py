"""Faults of the machine: full disks, too little memory, a killed JVM."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.changes import Topic
from tests.support.disks import Disks, small_disks
from tests.support.kafka import LARGEST_MESSAGE, Record, create_topic, produce
from tests.support.kills import children
from tests.support.lake import read_table
from tests.support.playback import Playback, Running

from distributary.demo.process import free_ports

ROOM = 96
"""Megabytes of a disk that gets full."""
LEFT = 100_000
"""Bytes that are left when it is: less than a batch of these tests takes, so that files are begun."""
LARGE_BATCH = "Spark's tasks decode them"
"""What the log says of a batch that is more than the driver processes by itself."""
RESTARTS = 6
"""Of the stream in vain: more than after which the checkpoint would be suspected."""


class Tables:
    """Tables that get the same rows, of random text; one keeps every event, so that a record applied twice shows."""

    def __init__(self, playback: Playback, *names: str) -> None:
        self.rows: dict[int, str] = {}
        self._playback = playback
        self._topics = {name: Topic(f"{playback.prefix}.{name}") for name in names}
        self._random = random.Random(5)
        for topic in self._topics.values():
            create_topic(playback.bootstrap, topic.name)

    def send(self, rows: int = 300, size: int = 2000) -> None:
        """So many new rows, of so many bytes each."""
        new = {len(self.rows) + n: self._random.randbytes(size // 2).hex() for n in range(rows)}
        self.rows |= new
        records: list[Record] = []
        for topic in self._topics.values():
            records += [topic.change("c", {"id": n}, {"id": n, "v": text}, at=n) for n, text in new.items()]
        produce(self._playback.bootstrap, records)

    def is_right(self, name: str, disks: Disks | None = None) -> bool:
        """Whether the table has each row once and nothing else."""
        return self.found(name, disks) == sorted(self.rows.items())

    def found(self, name: str, disks: Disks | None = None) -> list[tuple[int, str]]:
        """The table's rows. One on a disk of this test's is read from a copy: readers get there by no path."""
        place = self._playback.lake / name.replace(".", "/")
        if disks is not None:
            place = _copied(disks.seen(place), self._playback.lake.parent / "copy")
        table = read_table(place)
        return [] if table is None else sorted((row["id"], row["v"]) for row in table.select(["id", "v"]).to_pylist())


def _copied(table: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    if (table / "_delta_log").exists():
        # The log first: whatever it names is there by then.
        shutil.copytree(table / "_delta_log", to / "_delta_log", ignore=shutil.ignore_patterns(".*", "*.tmp"))
        for file in table.glob("*.parquet"):
            with suppress(FileNotFoundError):  # of a batch that was not committed
                shutil.copy(file, to)
    return to


class OnSmallDisks:
    """A service with two tables on a disk of their own, one elsewhere, and small disks for what Spark needs."""

    elsewhere = "large.rows"
    on_it = ("small.events", "small.rows")

    def __init__(self, kafka: str, folder: Path) -> None:
        self.small, self.local, [self._page] = folder / "lake" / "small", folder / "local", free_ports(1)
        spark = {"spark.driver.memory": "1g", "spark.master": "local[2]", "spark.local.dir": str(self.local)}
        self.playback = Playback(kafka, folder, spark=spark, trigger={"interval": "500ms"}, http={"port": self._page})
        self.playback.configure([{"match": "small.events", "mode": "append"}, {"match": "*.*"}])
        self.tables = Tables(self.playback, *self.on_it, self.elsewhere)

    @contextmanager
    def started(self) -> Iterator[tuple[Disks, Running]]:
        """The service, once it has applied the first rows."""
        with small_disks(ROOM, self.small, self.local, self.playback.checkpoint) as disks:
            self.playback.before = disks.inside
            self.tables.send()
            with self.playback.start() as running:
                running.wait_until(lambda: self.all_right(disks))
                yield disks, running

    def all_right(self, disks: Disks) -> bool:
        """Whether every table has each row once and nothing else."""
        return self.tables.is_right(self.elsewhere) and all(self.tables.is_right(name, disks) for name in self.on_it)

    def status(self) -> dict[str, Any]:
        """The answer of the service's `/status`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/status", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def waiting(self, running: Running) -> set[str]:
        """The tables that were put off because a disk is full."""
        result = r'"table": "([^"]+)", "code": "disk-full".*"table is tried again later"'
        return set(re.findall(result, running.log.read_text("utf-8")))

    def put_off(self, running: Running) -> int:
        """How many times a table was put off."""
        return running.log.read_text("utf-8").count('"table is tried again later"')


def test_tables_on_a_volume_that_is_gone_wait_for_it(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path, spark={"spark.master": "local[2]"}, trigger={"interval": "500ms"})
    playback.configure([{"match": "dbo.events", "mode": "append"}, {"match": "*.*"}])
    names = ("dbo.events", "dbo.rows")
    tables, away = Tables(playback, *names), tmp_path / "away"
    tables.send()
    with playback.start() as running:
        running.wait_until(lambda: all(map(tables.is_right, names)))
        time.sleep(3)  # what follows a commit may still write
        playback.lake.rename(away)
        playback.lake.mkdir()  # where the volume was mounted
        tables.send()
        put_off = r'"table": "([^"]+)", "code": "lake-missing".*"table is tried again later"'
        running.wait_until(lambda: set(re.findall(put_off, running.log.read_text("utf-8"))) == set(names))
        assert not [place for place in playback.lake.rglob("*") if "dbo" in place.parts]
        shutil.rmtree(playback.lake)
        away.rename(playback.lake)
        running.wait_until(lambda: all(map(tables.is_right, names)))


def test_a_full_disk_stops_its_tables_alone_until_there_is_room(kafka: str, tmp_path: Path) -> None:
    service = OnSmallDisks(kafka, tmp_path)
    tables = service.tables
    with service.started() as (disks, running):
        before = sorted(tables.rows.items())
        disks.fill(service.small, LEFT)
        tables.send()
        running.wait_until(lambda: service.waiting(running) == set(service.on_it))
        running.wait_until(lambda: tables.is_right(service.elsewhere))
        assert [tables.found(name, disks) for name in service.on_it] == [before] * 2
        # However often it is tried: no try says that the table is all right.
        tries, result, end = service.put_off(running), set(), time.monotonic() + 300
        while service.put_off(running) < tries + 2:
            assert time.monotonic() < end, running.log.read_text("utf-8")[-4000:]
            found = service.status()["tables"]
            result |= {(found[name]["state"], (found[name]["error"] or {}).get("code")) for name in service.on_it}
            time.sleep(0.05)
        assert result == {("retrying", "disk-full")}
        disks.empty(service.small)
        running.wait_until(lambda: service.all_right(disks))
        assert "table halted" not in running.log.read_text("utf-8")

        # At last the JVM alone, as the kernel kills it where the machine has too little memory for all.
        [java] = children(running.process.pid)
        os.kill(java, signal.SIGKILL)
        ended = running.ended(60)
        assert ended.exit_code == 2, str(ended)
        assert "[spark-gone] Spark's JVM ended, by SIGKILL" in ended.output
        assert service.all_right(disks)


@pytest.mark.slow
def test_without_room_for_spark_tables_continue_and_without_any_for_the_checkpoint_they_wait(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRIBUTARY_LOG", "debug")
    service = OnSmallDisks(kafka, tmp_path)
    tables = service.tables
    with service.started() as (disks, running):

        def all_right_and_no_room() -> bool:
            disks.fill(service.local, 0)  # what Spark has no more use for it gives back after some time
            return service.all_right(disks)

        disks.fill(service.local, 0)
        tables.send()
        running.wait_until(all_right_and_no_room)
        assert LARGE_BATCH not in running.log.read_text("utf-8")
        tables.send(40_000, 40)
        running.wait_until(all_right_and_no_room)
        assert LARGE_BATCH in running.log.read_text("utf-8")
        disks.empty(service.local)

        # No table is told what is new. It is not the checkpoint's fault.
        disks.fill(service.playback.checkpoint, 0)
        tables.send()
        running.wait_until(lambda: running.log.read_text("utf-8").count("the stream ended and is started") >= RESTARTS)
        assert service.status()["stream"]["code"] == "disk-full"
        disks.empty(service.playback.checkpoint)
        running.wait_until(lambda: service.all_right(disks))
        running.process.send_signal(signal.SIGTERM)
        assert running.ended(120).exit_code == 0
        log = running.log.read_text("utf-8")
        assert "the checkpoint can't be used" not in log
        assert "table halted" not in log


@pytest.mark.slow
def test_large_records_fit_into_little_memory_and_a_service_without_any_ends_and_says_so(
    kafka: str, tmp_path: Path
) -> None:
    little = {"spark.driver.memory": "512m"}
    playback = Playback(kafka, tmp_path, spark=little, trigger={"interval": "1s"})
    playback.configure([{"match": "dbo.t"}])
    topic = Topic(f"{playback.prefix}.dbo.t")
    create_topic(kafka, topic.name, config={"max.message.bytes": str(LARGEST_MESSAGE)})
    rows: dict[int, str] = {}

    def send(new: dict[int, str]) -> None:
        at = len(topic.records)
        produce(kafka, [topic.change("c", {"id": n}, {"id": n, "v": v}, at=at + n) for n, v in new.items()])
        rows.update(new)

    def found() -> dict[int, str]:
        table = playback.table("dbo", "t")
        return {} if table is None else dict(zip(*(table.column(c).to_pylist() for c in ("id", "v")), strict=True))

    def run(spark: dict[str, str]) -> AbstractContextManager[Running]:
        config = yaml.safe_load(playback.config_file.read_text("utf-8"))
        playback.config_file.write_text(yaml.safe_dump({**config, "spark": {**config["spark"], **spark}}), "utf-8")
        return playback.start()

    send({n: f"text {n}" for n in range(1000)})
    with run({}) as running:
        running.wait_until(lambda: found() == rows)
        send({1000 + n: f"text {n}" for n in range(500)} | {2000 + n: f"{n} large text" * 1_600_000 for n in range(3)})
        running.wait_until(lambda: found() == rows)
        running.process.send_signal(signal.SIGTERM)
        assert running.ended(120).exit_code == 0

    before = dict(rows)
    send({3000 + n: f"text {n}" for n in range(40_000)})
    with run({"spark.broadcast.blockSize": "600m"}) as running:  # more than the memory, for each of Spark's jobs
        ended = running.ended(300)
    assert ended.exit_code == 2, str(ended)
    assert "[out-of-memory] Spark's JVM ended" in ended.output
    assert "raise spark.driver.memory" in ended.output
    assert found() == before

    with run({"spark.broadcast.blockSize": "4m"}) as running:
        running.wait_until(lambda: found() == rows)
        running.process.send_signal(signal.SIGTERM)
        assert running.ended(120).exit_code == 0
