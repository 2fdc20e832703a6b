"""The service with executors in separate processes on a standalone cluster, also when one is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.changes import Row, Topic
from tests.support.cluster import Cluster, running_cluster
from tests.support.kafka import create_topic, produce
from tests.support.playback import Playback, Running
from tests.support.waiting import wait_until

from distributary.demo.process import free_ports
from distributary.failpoints import VARIABLE
from distributary.storage.lake_files import newest_record

# Each new executor is a cold JVM, which takes tens of seconds to decode its first records on two cores.
pytestmark = pytest.mark.slow

BATCH = 21_000
"""Records, more than the driver decodes by itself."""
COLUMNS = {"id": "int", "v": "string", "paid": "decimal(10,2)"}
SECONDS = 600
"""So long a step may take where other tests run on the same cores."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers that all tests share: one after the other, as each takes all of them."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@dataclass
class Source:
    """A source table: its rows, and the records that made them."""

    topic: Topic
    rows: dict[int, Row] = field(default_factory=dict)
    sent: int = 0
    log: int = 0
    """How many changes the source's log has."""

    def change(self, keys: range, value: str | None) -> None:
        """Gives rows another value, or takes them away."""
        for key in keys:
            self.log += 1
            before = self.rows.pop(key, None)
            if value is None:
                self.topic.change("d", {"id": key}, before=before, at=self.log)
                self.topic.tombstone({"id": key})
                continue
            self.rows[key] = {"id": key, "v": f"{value} {key}", "paid": round(key + self.log % 100 / 100, 2)}
            self.topic.change("u" if before else "c", {"id": key}, self.rows[key], at=self.log)

    def send(self, kafka: str) -> None:
        """Produces what was not sent yet."""
        produce(kafka, self.topic.records[self.sent :])
        self.sent = len(self.topic.records)


class Service:
    """The service on the cluster, with one table."""

    def __init__(self, kafka: str, folder: Path, cluster: Cluster) -> None:
        (self._ui,) = free_ports(1)
        self._applications = f"http://127.0.0.1:{self._ui}/api/v1/applications"
        self._events = folder / "events"
        self._events.mkdir()
        log = {"enabled": "true", "dir": str(self._events), "compress": "false", "rolling.enabled": "false"}
        ui = {"enabled": "true", "port": str(self._ui), "liveUpdate.period": "0"}
        spark = {
            **cluster.spark,
            **{f"spark.eventLog.{name}": value for name, value in log.items()},
            **{f"spark.ui.{name}": value for name, value in ui.items()},
        }
        self.playback = Playback(kafka, folder, spark=spark, trigger={"interval": "1s", "max_records": BATCH})
        self.source = Source(Topic(f"{self.playback.prefix}.dbo.t"))
        create_topic(kafka, self.source.topic.name)
        self.playback.configure([{"match": "dbo.t", "columns": COLUMNS}])

    @property
    def table(self) -> Path:
        """Where the table lies."""
        return self.playback.lake / "dbo" / "t"

    def taken(self) -> int:
        """The number of applied records, by the table's progress record."""
        newest = newest_record(str(self.table))
        return sum(newest.progress.next.values()) if newest is not None else 0

    def rows(self) -> list[tuple[Any, ...]]:
        """The table's rows, by a reader that is not ours."""
        table = self.playback.table("dbo", "t")
        assert table is not None
        return sorted(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))

    def truth(self) -> list[tuple[Any, ...]]:
        """The source's rows."""
        return sorted((row["id"], row["v"], Decimal(f"{row['paid']:.2f}")) for row in self.source.rows.values())

    def commits(self) -> list[str]:
        """What each commit of the table was and by whom, the first one first."""
        history = DeltaTable(str(self.table)).history()
        return [f"{one['operation']} {re.split('[:/]', one.get('engineInfo', ''))[0]}" for one in reversed(history)]

    def tasks(self) -> dict[str, int]:
        """How many tasks run now, by executor; asked of the driver. Empty while it does not answer, or Spark starts."""
        try:
            found = _json(f"{self._applications}/{self.application()}/executors")
        except (OSError, json.JSONDecodeError):
            return {}
        return {one["id"]: one["activeTasks"] for one in found}

    def application(self) -> str:
        """The application's id in the cluster. Raises OSError while the driver does not answer."""
        [one] = _json(self._applications)
        return str(one["id"])

    def events_of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The events of that kind in Spark's event log, of a run that has ended."""
        [log] = self._events.iterdir()
        events = map(json.loads, log.read_text("utf-8").splitlines())
        return [event for event in events if event["Event"] == f"SparkListener{kind}"]


def _json(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def test_tables_equal_the_source_with_large_batches_decoded_on_executors(
    kafka: str, tmp_path: Path, cluster: Cluster
) -> None:
    service = Service(kafka, tmp_path, cluster)
    source = service.source
    source.change(range(BATCH), "made")
    source.change(range(BATCH - 2_000), "changed")
    source.change(range(100, 1_100), None)
    source.change(range(1_000, 1_200), "made again")
    source.send(kafka)

    run = service.playback.run()

    assert run.exit_code == 0, str(run)
    assert service.rows() == service.truth()
    # The last batch is small beside the files that have its keys: it needs deletion vectors.
    commits = ["CREATE TABLE", "STREAMING UPDATE", "STREAMING UPDATE", "SET TBLPROPERTIES", "STREAMING UPDATE"]
    assert service.commits() == [f"{commit} Apache-Spark" for commit in commits]
    done = Counter(end["Task Info"]["Executor ID"] for end in service.events_of_kind("TaskEnd"))
    assert set(done) == {"0", "1"}, done
    assert not any(end["Task Info"]["Failed"] for end in service.events_of_kind("TaskEnd"))


def kill_at_work(service: Service, cluster: Cluster) -> str:
    """Kills an executor in the middle of tasks that both have some of, as those of a large batch. Gives its id."""
    while True:
        wait_until(lambda: sum(map(bool, service.tasks().values())) > 1, SECONDS, "tasks on both executors", every=0.05)
        for executor, pid in cluster.executors().items():
            # What it has stopped doing it can't end before it is killed.
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)
            if service.tasks().get(executor):
                os.kill(pid, signal.SIGKILL)
                return executor
            os.kill(pid, signal.SIGCONT)


def stop_at_work(service: Service, cluster: Cluster, kafka: str) -> tuple[str, int]:
    """Stops an executor, sends what is new, and waits until the executor has a task of it. Gives its id and its
    process."""
    executor, pid = next(iter(cluster.executors().items()))
    os.kill(pid, signal.SIGSTOP)
    service.source.send(kafka)
    wait_until(lambda: bool(service.tasks().get(executor)), SECONDS, "a task on the executor that is stopped")
    return executor, pid


def follows(service: Service, running: Running, count: int) -> None:
    """Waits until so many records are applied."""

    def taken() -> bool:
        assert running.process.poll() is None, str(running.ended(0))
        assert '"table halted"' not in running.log.read_text("utf-8"), f"halted, see {running.log}"
        return service.taken() >= count

    wait_until(taken, SECONDS, f"{count} records applied, see {running.log}", every=0.5)


def check_after(service: Service, running: Running, killed: str) -> None:
    """All is applied by the process that saw the executor killed, and then it ends as it should."""
    follows(service, running, service.source.sent)
    running.process.send_signal(signal.SIGTERM)
    run = running.ended(120)
    assert run.exit_code == 0, str(run)
    assert not run.halts()
    assert service.rows() == service.truth()
    assert killed in {one["Executor ID"] for one in service.events_of_kind("ExecutorRemoved")}


def test_an_executor_killed_while_its_tasks_run_costs_a_retry_and_nothing_else(
    kafka: str, tmp_path: Path, cluster: Cluster
) -> None:
    service = Service(kafka, tmp_path, cluster)
    service.source.change(range(BATCH), "made")
    service.source.send(kafka)
    with service.playback.start(DISTRIBUTARY_LOG="debug") as running:
        follows(service, running, BATCH)
        service.source.change(range(BATCH // 2), "changed")
        service.source.change(range(100, 1_100), None)
        service.source.change(range(BATCH, BATCH + BATCH // 2), "made")
        killed, pid = stop_at_work(service, cluster, kafka)
        os.kill(pid, signal.SIGKILL)
        assert service.taken() < service.source.sent
        check_after(service, running, killed)
    lost = [
        one for one in service.events_of_kind("TaskEnd") if one["Task End Reason"]["Reason"] == "ExecutorLostFailure"
    ]
    assert {one["Task End Reason"]["Executor ID"] for one in lost} == {killed}


def test_an_executor_killed_while_tasks_write_rows_leaves_each_row_once(
    kafka: str, tmp_path: Path, cluster: Cluster
) -> None:
    service = Service(kafka, tmp_path, cluster)
    service.source.change(range(2 * BATCH), "made " * 200)  # each task has enough bytes for a file
    service.source.send(kafka)
    with service.playback.start(DISTRIBUTARY_LOG="debug") as running:
        killed = kill_at_work(service, cluster)
        assert service.taken() < service.source.sent
        check_after(service, running, killed)
    log = running.log.read_text("utf-8").splitlines()
    written = [json.loads(line) for line in log if '"files of tasks"' in line]
    assert written
    assert all(line["used"] == line["written"] > 0 for line in written)


def test_a_decoded_batch_is_committed_although_its_executors_are_gone(
    kafka: str, tmp_path: Path, cluster: Cluster
) -> None:
    service = Service(kafka, tmp_path, cluster)
    service.source.change(range(BATCH), "made")
    service.source.change(range(BATCH - 2_000), "changed")
    service.source.change(range(100, 1_100), None)
    service.source.send(kafka)
    with service.playback.start(DISTRIBUTARY_LOG="debug", **{VARIABLE: "before-commit=wait(6)@2"}) as running:
        wait_until(lambda: '"made to fail"' in running.log.read_text("utf-8"), SECONDS, "a batch that is decoded")
        for pid in cluster.executors().values():
            os.kill(pid, signal.SIGKILL)
        check_after(service, running, "0")
    assert '"a batch failed"' not in running.log.read_text("utf-8")
    assert {"0", "1"} <= {one["Executor ID"] for one in service.events_of_kind("ExecutorRemoved")}


def test_an_application_that_the_cluster_ends_ends_the_service_and_halts_no_table(
    kafka: str, tmp_path: Path, cluster: Cluster
) -> None:
    service = Service(kafka, tmp_path, cluster)
    service.source.change(range(BATCH), "made")
    service.source.send(kafka)
    with service.playback.start() as running:
        follows(service, running, BATCH)
        service.source.change(range(BATCH), "changed")
        stop_at_work(service, cluster, kafka)
        cluster.end(service.application())
        ended = running.ended(120)
    assert ended.exit_code == 2, str(ended)
    assert "[spark-gone] Spark has stopped" in ended.output
    assert "unexpected error" not in ended.output
    assert not ended.halts()
    assert service.playback.run().exit_code == 0
    assert service.rows() == service.truth()


def test_verify_compares_with_a_copy_that_executors_read(kafka: str, tmp_path: Path, cluster: Cluster) -> None:
    service = Service(kafka, tmp_path, cluster)
    service.source.change(range(3_000), "made")
    service.source.change(range(100, 200), None)
    service.source.send(kafka)
    assert service.playback.run().exit_code == 0

    command = [sys.executable, "-m", "distributary", "verify", "-c", str(tmp_path / "config.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "dbo.t: equal" in done.stdout
    assert list((service.playback.lake / "_distributary/verify").iterdir()) == []
