"""Two drivers, each a process with its own Spark, commit to one table on a disk at once: no batch is lost, none comes
twice. An object store has no lock that keeps them apart (docs/object-stores.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.changes import INT, TEXT, Topic, key, row
from tests.support.kafka import create_topic, produce
from tests.support.playback import Playback
from tests.support.waiting import wait_until

FEW, MANY = 60, 1000
"""Commits, of one record each."""
ONE_EACH = {"max_records": 1}
ROOT = Path(__file__).parents[2]


def drive_twice(playback: Playback, commits: int) -> list[int]:
    """Has two drivers take a topic of so many records, and compares the table with it. Gives the commits of each."""
    topic = Topic(f"{playback.prefix}.shop.items")
    create_topic(playback.bootstrap, topic.name)
    playback.configure([{"match": "shop.items", "mode": "append"}])
    for number in range(commits):
        op = "c" if number < 10 else "u"
        record = topic.change(op, key(number % 10), row(number % 10, f"value {number}"), at=number + 1)
        topic.with_schema(record, {"id": INT, "v": TEXT})
    produce(playback.bootstrap, topic.records)
    command = [sys.executable, "-m", "tests.support.driver", str(playback.config_file), "shop", "items", str(commits)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "service")))}
    logs = [playback.config_file.with_name(f"driver-{number}.log") for number in (1, 2)]
    with ExitStack() as files:
        drivers = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=files.enter_context(log.open("wb")),
            )
            for log in logs
        ]
        try:
            assert [driver.stdout.readline() for driver in drivers if driver.stdout] == [b"ready\n"] * 2, _ends(logs)
            first = playback.config_file.parent / "lake" / "shop" / "items" / "_delta_log" / f"{0:020d}.json"
            for driver in drivers:
                assert driver.stdin is not None
                driver.stdin.write(b"\n")
                driver.stdin.flush()
                wait_until(first.exists)  # one driver makes the table
            written = [driver.communicate()[0] for driver in drivers]
        finally:
            for driver in drivers:
                driver.kill()
    codes = [driver.returncode for driver in drivers]
    assert codes == [0, 0], _ends(logs)
    found = [json.loads(output.splitlines()[-1]) for output in written]
    table = playback.table("shop", "items")
    assert table is not None
    rows = sorted(zip(table["__offset"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert rows == [(number, f"value {number}") for number in range(commits)]
    assert sum(one["commits"] for one in found) == commits
    assert sum(one["refused"] for one in found) > 0, "they never met"
    return [one["commits"] for one in found]


def _ends(logs: Iterable[Path]) -> str:
    return "\n".join(log.read_text(encoding="utf-8")[-3000:] for log in logs)


def test_6_1_two_drivers_commit_each_batch_once(kafka: str, tmp_path: Path) -> None:
    drive_twice(Playback(kafka, tmp_path, trigger=ONE_EACH), FEW)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_6_1_two_drivers_commit_each_of_a_thousand_batches_once(kafka: str, tmp_path: Path) -> None:
    assert min(drive_twice(Playback(kafka, tmp_path, trigger=ONE_EACH), MANY)) > 0
