"""A running service whose pages are on loopback can't be reached from other hosts."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.separate_process import processes
from tests.support.playback import Playback
from tests.support.recorded import Scenario
from tests.support.sockets import listening

from distributary.demo.process import free_ports

SCENARIO = Scenario("pg_json_schema")
TABLE = SCENARIO.tables["num_keys"]


def test_a_service_that_works_by_itself_listens_on_loopback_alone(kafka: str, tmp_path: Path) -> None:
    [page] = free_ports(1)
    # Spark's own page, which is off by default, must not be open to others either.
    spark = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.ui.enabled": "true"}
    playback = Playback(kafka, tmp_path, spark=spark, http={"port": page}, trigger={"interval": "500ms"})
    playback.configure([{"match": f"{SCENARIO.name}.{TABLE.topic_name}"}])
    playback.send(SCENARIO, SCENARIO.topic(TABLE.schema, TABLE.name))
    with playback.start() as running:
        running.wait_until(lambda: playback.table(SCENARIO.name, TABLE.topic_name) is not None)
        found = listening(processes(running.process.pid))
    assert page in found
    # The service's page, py4j, Spark's RPC, its block manager and its page.
    assert len(found) >= 5, found
    assert {address for addresses in found.values() for address in addresses} <= {"127.0.0.1", "::1"}, found
