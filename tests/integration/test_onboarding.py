"""Tables are added, changed and removed while the service runs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.changes import Topic
from tests.support.kafka import create_topic, produce
from tests.support.spark import rows_of
from tests.support.waiting import wait_until

from distributary.demo.process import free_ports

WAIT = 400  # seconds; Spark's start is among them, on a machine that others use too


class Running:
    """`distributary run` as a process of its own."""

    def __init__(self, folder: Path, kafka: str) -> None:
        self.folder = folder
        self.prefix = f"onboard{random.randrange(10**9)}"
        [self.port] = free_ports(1)
        (folder / "tables").mkdir()
        (folder / "config.yaml").write_text(
            f"version: 1\nkafka: {{bootstrap.servers: '{kafka}'}}\nsource: {{topic_prefix: {self.prefix}}}\n"
            "target: {path: lake}\ncheckpoint: checkpoints\ntrigger: {interval: 1s}\n"
            f"http: {{port: {self.port}}}\nspark: {{spark.driver.memory: 1g, spark.master: 'local[2]'}}\n"
            "tables: [{match: dbo.first}]\ninclude: ['tables/*.yaml']\n"
        )
        self.log = (folder / "log").open("wb")
        command = [sys.executable, "-m", "distributary", "run", "-c", str(folder / "config.yaml")]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env={**os.environ})

    def onboard(self, name: str, text: str) -> None:
        """Writes a file of tables."""
        (self.folder / "tables" / name).write_text(text)

    def status(self) -> dict[str, Any]:
        """The answer of `/status`; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=10) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except OSError:
            return {}

    def wait_for(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The answer of `/status` once the condition holds."""
        found: dict[str, Any] = {}

        def is_reached() -> bool:
            found.clear()
            found.update(self.status())
            return bool(found) and reached(found)

        def described() -> str:
            return f"{found}\n{(self.folder / 'log').read_text()[-3000:]}"

        wait_until(is_reached, WAIT, described, every=0.2, alive=lambda: self.process.poll() is None)
        return found

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table in the lake."""
        return rows_of(self.folder / "lake" / "dbo" / table)


@pytest.fixture
def running(kafka: str, tmp_path: Path) -> Iterator[Running]:
    service = Running(tmp_path, kafka)
    yield service
    if service.process.poll() is None:
        service.process.send_signal(signal.SIGKILL)
    service.process.wait()
    service.log.close()


def applied(name: str, records: int) -> Callable[[dict[str, Any]], bool]:
    """Whether the table has applied so many records."""
    return lambda status: status["tables"].get(f"dbo.{name}", {}).get("records_applied") == records


def test_tables_come_change_and_go_while_the_service_runs(running: Running, kafka: str) -> None:
    topics = {name: Topic(f"{running.prefix}.dbo.{name}") for name in ("first", "second", "third")}
    for topic in topics.values():
        create_topic(kafka, topic.name)
        produce(kafka, [topic.change("c", {"id": 1}, {"id": 1, "v": "a"}, at=1)])
    before = running.wait_for(applied("first", 1))
    assert set(before["tables"]) == {"dbo.first"}
    assert "config" not in before

    # A bad file is told, a good one beside it is taken, from the start of its topic.
    running.onboard("bad.yaml", "tables: [{match: dbo.third, mode: upset}]")
    running.onboard("second.yaml", "tables: [{match: dbo.second}]")
    after = running.wait_for(applied("second", 1))
    assert set(after["tables"]) == {"dbo.first", "dbo.second"}
    assert [fault["code"] for fault in after["config"]["faults"]] == ["bad-value"]
    assert running.rows("second") == [(1, "a")]
    assert after["tables"]["dbo.first"]["last_commit_at"] == before["tables"]["dbo.first"]["last_commit_at"]

    # The file is mended, and the stream goes on for those that were there before.
    running.onboard("bad.yaml", "tables: [{match: dbo.third, mode: append}]")
    mended = running.wait_for(applied("third", 1))
    assert "config" not in mended
    for topic in topics.values():
        produce(kafka, [topic.change("u", {"id": 1}, {"id": 1, "v": "b"}, at=2)])
    for name in topics:
        running.wait_for(applied(name, 2))
    assert (running.rows("first"), running.rows("third")) == ([(1, "b")], [(1, "a"), (1, "b")])

    # Settings that don't fit the table halt it alone, and the way back needs no restart.
    running.onboard("second.yaml", "tables: [{match: dbo.second, mode: history}]")
    produce(kafka, [topics["second"].change("u", {"id": 1}, {"id": 1, "v": "c"}, at=3)])
    halted = running.wait_for(lambda status: status["tables"].get("dbo.second", {}).get("state") == "halted")
    assert halted["tables"]["dbo.second"]["error"]["code"] == "mode-changed"
    assert halted["tables"]["dbo.first"]["state"] == "up_to_date"
    running.onboard("second.yaml", "tables: [{match: dbo.second}]")
    running.wait_for(applied("second", 3))
    assert running.rows("second") == [(1, "c")]

    # A table that is taken out stays as it is.
    (running.folder / "tables" / "bad.yaml").unlink()
    running.wait_for(lambda status: "dbo.third" not in status["tables"])
    for name in ("third", "first"):
        produce(kafka, [topics[name].change("u", {"id": 1}, {"id": 1, "v": "d"}, at=4)])
    running.wait_for(applied("first", 3))
    assert running.rows("third") == [(1, "a"), (1, "b")]

    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=120) == 0
    assert not (running.folder / "lake" / "_distributary" / "halted").joinpath(f"{running.prefix}.json").exists()
