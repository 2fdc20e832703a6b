"""The JVM that the service starts, as other users of the machine see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

_PROGRAM = """
import json, sys
from pathlib import Path
from distributary.launch.session import close_session, open_session
session = open_session(json.loads(sys.argv[1]))
java = session.sparkContext._gateway.proc.pid
shown = Path(f"/proc/{java}/cmdline").read_text() + Path(f"/proc/{java}/environ").read_text()
hadoop = session.sparkContext._jsc.hadoopConfiguration()
redacted = {row["key"]: row["value"] for row in session.sql("SET").collect()}
read = [hadoop.get(name) for name in json.loads(sys.argv[2])]
print(json.dumps({"shown": shown, "redacted": redacted, "read": read}))
close_session(session)
"""
_SIGNALLED = """
import os, signal, time
from distributary.launch.session import close_session, open_session
got = []
signal.signal(signal.SIGTERM, lambda *_: got.append("SIGTERM"))
session = open_session({"spark.master": "local[1]", "spark.driver.memory": "512m"})
os.killpg(0, signal.SIGTERM)
time.sleep(2)
print(got, session.range(3).count())
java = session.sparkContext._gateway.proc
close_session(session)
java.stdin.close()
print(java.wait(60))
"""
_GRANTED = """
import pyarrow
from distributary.launch.session import close_session, open_session
session = open_session({"spark.driver.memory": "512m"})
java = session._jvm.java.lang.Runtime.getRuntime().availableProcessors()
print(session.sparkContext.master, session.sparkContext.defaultParallelism, java, pyarrow.cpu_count())
close_session(session)
"""
_LOGS = """
from distributary.launch.session import close_session, open_session
session = open_session({"spark.master": "local[1]", "spark.driver.memory": "512m"})
session._jvm.org.apache.logging.log4j.LogManager.getLogger("org.example").error('a "line"\\nand another')
close_session(session)
"""
_SECRETS = {
    "fs.s3a.secret.key": "secret-of-s3",
    "fs.azure.account.key.box.dfs.core.windows.net": "secret-of-azure",
    "fs.azure.sas.fixed.token.box.dfs.core.windows.net": "secret-of-sas",
    "some.proxy": "http://me:secret-of-proxy@proxy:3128",
}


def test_a_signal_to_all_processes_leaves_the_batch_in_flight_its_spark() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _SIGNALLED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["['SIGTERM'] 3", "0"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_jvm_logs_as_the_service_does(form: str) -> None:
    """Its standard error is read by the same tools."""
    environment = {**os.environ, "DISTRIBUTARY_LOG_FORMAT": form}
    ran = subprocess.run(
        [sys.executable, "-c", _LOGS], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    if form == "text":
        assert '[error    ] a "line"\\nand another' in ran.stderr
        return
    lines = ran.stderr.splitlines()
    # What Java itself says before anything is set up.
    assert [line for line in lines if not line.startswith(("{", "WARNING: ", "Picked up "))] == []
    told = [json.loads(line) for line in lines if line.startswith("{")]
    [line] = [one for one in told if one["logger"] == "org.example"]
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": 'a "line"\nand another', "level": "error", "logger": "org.example"}


def test_all_threads_follow_the_cores_that_are_granted() -> None:
    environment = {**os.environ, "DISTRIBUTARY_CORES": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", _GRANTED], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "local[1] 1 1 1"


def test_secrets_stand_neither_on_the_command_line_nor_where_spark_shows_its_settings() -> None:
    properties = {f"spark.hadoop.{name}": value for name, value in _SECRETS.items()}
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "spark.hadoop.fs.s3a.endpoint": "an-endpoint",
    }
    command = [sys.executable, "-c", _PROGRAM, json.dumps({**settings, **properties}), json.dumps([*_SECRETS])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["read"] == [*_SECRETS.values()]
    assert "an-endpoint" in told["shown"]
    assert "secret-of" not in told["shown"]
    assert {f"spark.hadoop.{name}" for name in _SECRETS} <= told["redacted"].keys()
    assert not [value for name, value in told["redacted"].items() if "secret-of" in value]
