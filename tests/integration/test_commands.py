"""`distributary status` and `distributary resume`, as an operator runs them."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.changes import Topic
from tests.support.kafka import create_topic, produce
from tests.support.spark import Bench

from distributary.cli import main
from distributary.control.halts import Halts, read_halts
from distributary.errors import TableHalt

_PATIENCE = 120  # seconds until a terminal has to show something


@pytest.fixture
def snapshot_bench(kafka_bench: Bench) -> Bench:
    """A table that an interrupted snapshot left two rows in, and a topic beside it whose table does not exist yet."""
    bench = kafka_bench.create()
    bench.options = {
        "tables": [{"match": "dbo.t"}, {"match": "dbo.later"}, {"match": "dbo.log", "mode": "append"}],
        "spark": {"spark.driver.memory": "1g", "spark.master": "local[2]"},
    }
    create_topic(bench.kafka, f"{bench.prefix}.dbo.later")
    create_topic(bench.kafka, f"{bench.prefix}.dbo.log")
    topic = Topic(bench.topic)
    for number, mark in ((1, "first"), (2, "true"), (3, "true")):
        topic.change("r", {"id": number}, {"id": number, "a name": "old"}, at=10, snapshot=mark)
    topic.change("r", {"id": 1}, {"id": 1, "a name": "new"}, at=20, snapshot="last")
    bench.take(topic.records)
    return bench


def status(config: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the tables by name."""
    result = CliRunner().invoke(main, ["status", "-c", config, "--output", "json"])
    return result.exit_code, {table["table"]: table for table in json.loads(result.stdout)["tables"]}


def test_3_10_status_shows_what_resume_reconcile_removes(snapshot_bench: Bench) -> None:
    config = str(snapshot_bench.folder / "config.yaml")
    code, tables = status(config)
    assert code == 0
    assert {name: table["state"] for name, table in tables.items()} == {
        "dbo.later": "new",
        "dbo.log": "new",
        "dbo.t": "up_to_date",
    }
    table = tables["dbo.t"]
    assert (table["orphaned_rows"], table["lag_records"], table["records_applied"]) == (2, 0, 4)
    assert table["last_commit_at"] > 1_700_000_000
    shown = CliRunner().invoke(main, ["status", "-c", config])
    assert f"distributary resume -c {config} dbo.t --reconcile" in shown.stdout
    # Somebody else's commit lies over the service's last one: the record is found below it.
    snapshot_bench.session.sql(f"OPTIMIZE delta.`{snapshot_bench.table}`")
    assert status(config)[1]["dbo.t"]["orphaned_rows"] == 2

    command = [sys.executable, "-m", "distributary", "resume", "-c", config, "dbo.t", "--reconcile", "--output", "json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"table": "dbo.t", "removed": 2}
    assert snapshot_bench.rows() == [(1, "new")]
    assert status(config)[1]["dbo.t"]["orphaned_rows"] == 0

    # What is halted is told as well, and by the exit code.
    halt = {"code": "topic-gone", "message": "…", "fix": "create it"}
    halts = Halts(snapshot_bench.session, snapshot_bench.config())
    halts.add(snapshot_bench.topic, "dbo.t", TableHalt(**halt))
    code, tables = status(config)
    assert (code, tables["dbo.t"]["state"], tables["dbo.t"]["error"]) == (1, "halted", halt)
    halts.clear()
    assert read_halts(snapshot_bench.config()) == {}

    for arguments, reason in (
        (["dbo.none", "--reconcile"], "unknown-table"),
        (["dbo.log", "--reconcile"], "not-for-this-mode"),
    ):
        refused = CliRunner().invoke(main, ["resume", "-c", config, *arguments])
        assert refused.exit_code == 2
        assert f"[{reason}]" in refused.stderr


def test_status_watch_follows_the_tables_until_ctrl_c(snapshot_bench: Bench) -> None:
    config = str(snapshot_bench.folder / "config.yaml")
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "distributary", "status", "-c", config, "--watch", "--every", "0.3"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "30"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        seen_on(ours, "3 tables: 2 new, 1 up to date")
        seen_on(ours, "records/s")
        more = Topic(snapshot_bench.topic)
        more.change("u", {"id": 2}, {"id": 2, "a name": "newer"}, at=30)
        produce(snapshot_bench.kafka, more.records)
        seen_on(ours, "3 tables: 1 behind, 2 new")
        process.send_signal(signal.SIGINT)
        last = seen_on(ours, None)
        assert process.wait(30) == 0
    os.close(ours)
    *lines, way_out, further = last.rstrip().splitlines()  # what stays on the terminal is the usual status
    assert f"resume -c {config} dbo.t --reconcile" in way_out
    assert f"next: distributary status -c {config} --watch" in further
    assert any("dbo.t" in line and "behind" in line for line in lines)


def seen_on(terminal: int, text: str | None) -> str:
    """What a terminal shows until the text comes, or until its program ends. A read may end in the middle of a view."""
    shown = ""
    while text is None or text not in shown:
        assert select.select([terminal], [], [], _PATIENCE)[0], shown
        try:
            read = os.read(terminal, 65536)
        except OSError:  # Linux: nothing has the other end open
            read = b""
        if not read:
            assert text is None, shown
            return shown
        shown += read.decode(errors="replace")
    return shown


@pytest.mark.parametrize("options", [["--watch"], ["--watch", "--output", "json"]])
def test_status_watch_wants_a_terminal(tmp_path: Path, options: list[str]) -> None:
    result = CliRunner().invoke(main, ["status", "-c", str(tmp_path / "config.yaml"), *options])
    assert result.exit_code == 2
    assert "[watch-needs-terminal]" in result.stderr
