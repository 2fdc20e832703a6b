"""A running service: its ports can't be reached from other hosts, the command and the config pause it, and no other
service can take over meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError

import pytest
from tests.benchmarks.separate_process import processes
from tests.support.playback import Playback, Running
from tests.support.recorded import Scenario
from tests.support.sent_again import halves
from tests.support.sockets import listening

from distributary.demo.process import free_ports

SCENARIO = Scenario("pg_json_schema")
TABLE = SCENARIO.tables["lsn_race"]
NAME = f"{SCENARIO.name}.{TABLE.topic_name}"


@dataclass(frozen=True)
class Service:
    """A service with a paused table, the first half of whose records is in Kafka."""

    playback: Playback
    running: Running
    page: int
    """The port of its page."""

    def shown(self) -> dict[str, Any]:
        """The table's entry in `/status`; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/status", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)["tables"].get(NAME, {})
        except URLError:  # it does not listen yet
            return {}
        return found

    def wait_for(self, **values: object) -> None:
        """Waits until `/status` has these values of the table."""
        self.running.wait_until(lambda: values.items() <= self.shown().items())

    def command(self, *arguments: str) -> dict[str, Any]:
        """What a command answers."""
        config = str(self.playback.config_file)
        words = [sys.executable, "-m", "distributary", *arguments, "-c", config, "--output", "json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def service(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    [page] = free_ports(1)
    # Spark's own page, which is off by default, must not be open to others either.
    spark = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.ui.enabled": "true"}
    folder = tmp_path_factory.mktemp("service")
    playback = Playback(kafka, folder, spark=spark, http={"port": page}, trigger={"interval": "500ms"})
    playback.configure([{"match": NAME, "paused": True}])
    first, _ = halves(SCENARIO.topic(TABLE.schema, TABLE.name))
    playback.send(SCENARIO, first)
    with playback.start() as running:
        yield Service(playback, running, page)


def test_a_service_that_is_paused_takes_nothing_in_and_keeps_its_lease(service: Service) -> None:
    playback = service.playback
    first, second = halves(SCENARIO.topic(TABLE.schema, TABLE.name))
    service.wait_for(state="paused", lag_records=len(first))
    assert playback.table(SCENARIO.name, TABLE.topic_name) is None
    with playback.start() as other:
        assert other.ended(120).exit_code == 3

    playback.configure([{"match": NAME}])
    service.wait_for(state="up_to_date", lag_records=0)

    service.command("pause", "--reason", "a restore")
    service.wait_for(state="paused")
    taken = service.shown()["next_offsets"]
    playback.send(SCENARIO, second)
    service.wait_for(lag_records=len(second))
    [result] = service.command("status")["tables"]
    assert (result["state"], result["lag_records"]) == ("paused", len(second))
    assert "a restore" in result["paused"]
    assert service.shown()["next_offsets"] == taken

    service.command("unpause")
    service.wait_for(state="up_to_date", lag_records=0)
    assert not playback.difference(SCENARIO, TABLE)


def test_a_service_that_works_by_itself_listens_on_loopback_alone(service: Service) -> None:
    service.running.wait_until(service.shown)
    found = listening(processes(service.running.process.pid))
    assert service.page in found
    # The service's page, py4j, Spark's RPC, its block manager and its page.
    assert len(found) >= 5, found
    assert {address for addresses in found.values() for address in addresses} <= {"127.0.0.1", "::1"}, found
