"""The command and the config pause a running service; no other service can take over meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.support.playback import Playback
from tests.support.recorded import Scenario
from tests.support.replay import halves

from distributary.demo.process import free_ports

SCENARIO = Scenario("pg_json_schema")
TABLE = SCENARIO.tables["lsn_race"]


def test_a_service_that_is_paused_takes_nothing_in_and_keeps_its_lease(kafka: str, tmp_path: Path) -> None:
    [page] = free_ports(1)
    spark = {"spark.master": "local[2]", "spark.driver.memory": "1g"}
    playback = Playback(kafka, tmp_path, spark=spark, http={"port": page}, trigger={"interval": "500ms"})
    rule = {"match": f"{SCENARIO.name}.{TABLE.topic_name}"}
    name = f"{SCENARIO.name}.{TABLE.topic_name}"
    playback.configure([{**rule, "paused": True}])
    first, second = halves(SCENARIO.topic(TABLE.schema, TABLE.name))
    playback.send(SCENARIO, first)

    def shown() -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/status", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)["tables"].get(name, {})
        except URLError:  # it does not listen yet
            return {}
        return found

    def command(*arguments: str) -> dict[str, Any]:
        words = [sys.executable, "-m", "distributary", *arguments, "-c", str(playback.config_file), "--output", "json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    with playback.start() as running:
        running.wait_until(lambda: shown().get("state") == "paused")
        running.wait_until(lambda: shown().get("lag_records") == len(first))
        assert playback.table(SCENARIO.name, TABLE.topic_name) is None
        with playback.start() as other:
            assert other.ended(120).exit_code == 3

        playback.configure([rule])
        running.wait_until(lambda: shown().get("state") == "running" and shown().get("lag_records") == 0)

        command("pause", "--reason", "a restore")
        running.wait_until(lambda: shown().get("state") == "paused")
        taken = shown()["next_offsets"]
        playback.send(SCENARIO, second)
        running.wait_until(lambda: shown().get("lag_records") == len(second))
        [told] = command("status")["tables"]
        assert (told["state"], told["lag_records"]) == ("paused", len(second))
        assert "a restore" in told["paused"]
        assert shown()["next_offsets"] == taken

        command("unpause")
        running.wait_until(lambda: shown().get("lag_records") == 0 and shown().get("state") == "running")
        assert not playback.difference(SCENARIO, TABLE)
