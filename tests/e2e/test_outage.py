"""A topic is deleted while the service runs, then all of Kafka stops and comes back."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka import delete_topic
from tests.support.playback import Playback
from tests.support.recorded import Scenario
from tests.support.sent_again import halves

from distributary.demo.broker import Broker
from distributary.demo.process import free_ports

SCENARIO = Scenario("pg_json_schema")
TABLE, DELETED = (SCENARIO.tables[name] for name in ("lsn_race", "num_keys"))
MANY_RESTARTS = 7
"""Of the stream in vain: more than after which the checkpoint would be suspected of an error that is not Kafka's."""
MINUTES = float(os.environ.get("OUTAGE_MINUTES", "10"))
"""How long the long outage lasts."""


@pytest.mark.timeout(1800 + 60 * MINUTES)
@pytest.mark.parametrize(
    ("minutes", "restarts"),
    [
        pytest.param(0.0, 1, id="short"),
        pytest.param(0.0, MANY_RESTARTS, id="many restarts", marks=pytest.mark.slow),
        pytest.param(MINUTES, MANY_RESTARTS, id="long", marks=pytest.mark.slow),
    ],
)
def test_6_3_a_topic_that_goes_halts_its_table_and_a_kafka_that_goes_is_waited_for(
    tmp_path: Path, minutes: float, restarts: int
) -> None:
    kafka, (port, page) = tmp_path / "kafka", free_ports(2)
    broker = Broker.start(kafka, port=port)
    away = {"bootstrap.servers": broker.bootstrap, "default.api.timeout.ms": 3000, "request.timeout.ms": 2000}
    http = {"port": page}
    playback = Playback(broker.bootstrap, tmp_path, kafka=away, http=http, trigger={"interval": "500ms"})
    playback.configure({"match": f"{SCENARIO.name}.{table.topic_name}"} for table in (TABLE, DELETED))
    playback.may_halt = {f"{SCENARIO.name}.{DELETED.topic_name}"}
    first, second = halves(SCENARIO.topic(TABLE.schema, TABLE.name))
    playback.send(SCENARIO, [*first, *SCENARIO.topic(DELETED.schema, DELETED.name)])

    def status() -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/status", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    with playback.start() as running:
        running.wait_until(lambda: playback.table(SCENARIO.name, TABLE.topic_name) is not None)
        running.wait_until(lambda: not playback.difference(SCENARIO, DELETED))
        # A topic that goes without another record: nothing but a look at Kafka tells it.
        delete_topic(broker.bootstrap, f"{playback.prefix}.{SCENARIO.name}.{DELETED.topic_name}")
        running.wait_until(lambda: "topic-gone" in running.log.read_text("utf-8"))
        halted = status()["tables"][f"{SCENARIO.name}.{DELETED.topic_name}"]
        assert (halted["state"], halted["error"]["code"]) == ("halted", "topic-gone")
        assert not playback.difference(SCENARIO, DELETED)
        assert "stream" not in status()
        broker.kill()
        back_at = time.monotonic() + 60 * minutes
        running.wait_until(lambda: running.log.read_text("utf-8").count("the stream ended and is started") >= restarts)
        while time.monotonic() < back_at:
            assert running.process.poll() is None, running.log.read_text("utf-8")[-4000:]
            time.sleep(1)
        result = status()
        assert result["stream"]["code"] == "kafka-unreachable"
        assert result["time"] > result["stream"]["since"]
        assert result["seconds_since_beat"] < 30
        with Broker.start(kafka, port=port):
            playback.send(SCENARIO, second)
            running.wait_until(lambda: not playback.difference(SCENARIO, TABLE))
            running.wait_until(lambda: "stream" not in status())
            running.process.send_signal(signal.SIGTERM)
            assert running.ended(120).exit_code == 0
    assert "the checkpoint can't be used" not in playback.log(1)
