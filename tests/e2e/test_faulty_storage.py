"""A running service whose object store fails: some requests, or all, for a while.

The client below the service tries a request again itself. Here it does so once only: what is looked at is what the
service makes of faults that last longer.
"""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.changes import Topic
from tests.support.faulty_store import Deed, Fault, FaultyStore
from tests.support.kafka import create_topic, produce
from tests.support.playback import Running
from tests.support.s3 import S3Playback, running_s3

from distributary.demo.process import free_ports

pytestmark = pytest.mark.slow

ROWS, LOG = "customers", "visits"
"""Two tables: one row for each key, and one for each change, where nothing hides that a change was applied twice."""
TABLES = {ROWS: {"match": f"shop.{ROWS}"}, LOG: {"match": f"shop.{LOG}", "mode": "append"}}
LITTLE_PATIENCE = {
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    "spark.hadoop.fs.s3a.retry.limit": "1",
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "1",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
}
RESTARTS = 7
"""Of the stream in vain: more than after which the checkpoint would be suspected of an error that is not its own."""
COMMIT = r"_delta_log/\d{20}\.json$"


@dataclass
class Table:
    """A table's topic, and what the table must be: for each key its value, and all values there ever were."""

    topic: Topic
    playback: S3Playback
    rows: dict[int, str] = field(default_factory=dict)
    changes: list[tuple[int, str]] = field(default_factory=list)
    sent: int = 0

    @property
    def name(self) -> str:
        return self.topic.name.rpartition(".")[2]

    def change(self, *ids: int, spoilt: bool = False) -> None:
        """Sends a change of each of these keys, an insert or an update; with `spoilt` also a record nobody can read."""
        for id_ in ids:
            at = len(self.topic.records) + 1
            value = f"{id_} at {at}"
            self.topic.change("u" if id_ in self.rows else "c", {"id": id_}, {"id": id_, "v": value}, at)
            self.rows[id_] = value
            self.changes.append((id_, value))
        if spoilt:
            self.topic.add({"id": 0}, b"no json")
        produce(self.playback.bootstrap, self.topic.records[self.sent :])
        self.sent = len(self.topic.records)

    def delete(self, id_: int) -> None:
        """Sends a delete."""
        del self.rows[id_]
        self.topic.change("d", {"id": id_}, None, len(self.topic.records) + 1)
        self.change()

    def found(self) -> list[tuple[int, str]]:
        """The table's rows, sorted."""
        table = self.playback.table("shop", self.name)
        return [] if table is None else sorted((row["id"], row["v"]) for row in table.to_pylist())

    def is_right(self) -> bool:
        """Whether it is what it must be."""
        return self.found() == sorted(self.changes if self.name == LOG else self.rows.items())

    def commits(self) -> int:
        """How many commits moved the table on."""
        history = self.playback.delta_table("shop", self.name).history()
        return sum("userMetadata" in commit for commit in history)


@dataclass
class Service:
    """The service, which runs, and the door to its store."""

    playback: S3Playback
    store: FaultyStore
    running: Running
    rows: Table
    changes: Table
    port: int

    def until_right(self, *tables: Table) -> None:
        """Until these tables, else both, are what they must be."""
        for table in tables or (self.rows, self.changes):
            self.running.wait_until(table.is_right)

    def status(self) -> dict[str, Any]:
        """The answer of the service's `/status`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=10) as answer:
            result: dict[str, Any] = json.load(answer)
            return result

    def retries(self) -> float:
        """How often work on a table was done again."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            result = re.findall(r"(?m)^distributary_table_retries_total{.*} (\S+)$", answer.read().decode())
        return sum(map(float, result))

    def waits(self, table: Table, for_: str) -> bool:
        """Whether the log has a retry of the table for that reason."""
        lines = [line for line in self.log().splitlines() if "table is tried again later" in line]
        result = [entry for entry in map(json.loads, lines) if entry["table"] == f"shop.{table.name}"]
        return any(entry["code"] == "storage-not-allowed" and for_ in entry["reason"] for entry in result)

    def place(self, table: Table) -> str:
        """A pattern of the table's directory."""
        return f"/{self.playback.config_file.parent.name}/shop/{table.name}/"

    def log(self) -> str:
        return self.running.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def service(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("faulty")
    [port] = free_ports(1)
    with running_s3(folder) as behind, FaultyStore(behind.endpoint).standing() as store:
        more: dict[str, Any] = {"http": {"port": port}, "trigger": {"interval": "500ms"}}
        playback = S3Playback(kafka, folder, behind, store.endpoint, LITTLE_PATIENCE, **more)
        playback.configure(TABLES.values())
        rows, changes = tables = [Table(Topic(f"{playback.prefix}.shop.{name}"), playback) for name in TABLES]
        for table in tables:
            create_topic(kafka, table.topic.name)
            table.change(1, 2, 3)
        with playback.start() as running:
            service = Service(playback, store, running, rows, changes, port)
            service.until_right()
            yield service
            running.process.send_signal(signal.SIGTERM)
            assert running.ended(120).exit_code == 0
        assert "table halted" not in playback.log(1)


def test_6_1_faults_that_pass_lose_no_change_and_double_none(service: Service) -> None:
    here = f"({service.place(service.rows)}|{service.place(service.changes)})"
    faults = [
        Fault(here, Deed.REFUSE, times=6, status=503),
        Fault(here, Deed.REFUSE, times=6, status=500),
        Fault(here, Deed.CUT, times=6),
        Fault(f"^PUT .*{here}", Deed.LOSE_REPLY, times=6),
        Fault(here, Deed.DELAY, times=6, seconds=0.5),
    ]
    with service.store.failing(*faults):
        service.rows.change(1, 4)
        service.changes.change(1, 4)
        service.until_right()
        service.rows.delete(2)
        service.rows.change(3, 5)
        service.until_right()
    assert [len(fault.met) for fault in faults] == [6, 6, 6, 6, 6]
    assert service.retries() > 0


def test_6_1_a_commit_whose_reply_is_lost_is_there_once(service: Service) -> None:
    tables = [service.rows, service.changes]
    before = [table.commits() for table in tables]
    # The client tries once more by itself: it loses that reply, too.
    faults = [Fault(f"^PUT .*{service.place(table)}{COMMIT}", Deed.LOSE_REPLY, times=2) for table in tables]
    with service.store.failing(*faults):
        for table in tables:
            table.change(1, 6)
        service.running.wait_until(lambda: all(len(fault.met) == 2 for fault in faults))
        service.until_right()
    for table in tables:
        table.change(1)
    service.until_right()
    assert [len(set(fault.met)) for fault in faults] == [1, 1]
    assert [table.commits() for table in tables] == [commits + 2 for commits in before]


def test_6_2_a_table_that_may_not_be_used_waits_alone_until_it_may(service: Service) -> None:
    closed, other = service.changes, service.rows
    with service.store.failing(Fault(service.place(closed), Deed.REFUSE, status=403)):
        closed.change(1, 7)
        service.running.wait_until(lambda: service.waits(closed, "the storage refuses access"))
        other.change(1, 7)
        service.until_right(other)
        assert not closed.is_right()
    service.until_right(closed)
    service.running.wait_until(lambda: service.status()["tables"][f"shop.{closed.name}"]["error"] is None)


def test_6_3_a_batch_whose_bad_records_cant_be_put_into_quarantine_is_not_committed(service: Service) -> None:
    spoilt, other = service.rows, service.changes
    before = spoilt.found()
    with service.store.failing(Fault("/_quarantine/", Deed.REFUSE, status=403)):
        spoilt.change(8, spoilt=True)
        service.running.wait_until(lambda: service.waits(spoilt, "the quarantine table can't be written: the storage"))
        other.change(8)
        service.until_right(other)
        assert spoilt.found() == before
        assert not service.playback.quarantined()
    service.until_right(spoilt)
    quarantined = [(row["topic"], row["value"]) for row in service.playback.quarantined()]
    assert quarantined == [(spoilt.topic.name, b"no json")]


def test_6_1_a_storage_that_is_away_is_waited_for(service: Service) -> None:
    with service.store.failing(Fault("", Deed.CUT)):
        service.rows.change(1, 9)
        service.changes.change(1, 9)
        service.running.wait_until(lambda: service.log().count("the stream ended and is started") >= RESTARTS)
        assert service.status()["stream"]["code"] == "storage-or-network"
    service.until_right()
    service.running.wait_until(lambda: "stream" not in service.status())
