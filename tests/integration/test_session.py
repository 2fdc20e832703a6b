"""The JVM that the service starts, as other users of the machine see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_SHOWN = """
import json, sys
from pathlib import Path
import pyarrow
from distributary.launch.session import close_session, open_session
session = open_session(json.loads(sys.argv[1]))
java = session.sparkContext._gateway.proc.pid
hadoop = session.sparkContext._jsc.hadoopConfiguration()
processors = session._jvm.java.lang.Runtime.getRuntime().availableProcessors()
found = {
    "shown": Path(f"/proc/{java}/cmdline").read_text() + Path(f"/proc/{java}/environ").read_text(),
    "redacted": {row["key"]: row["value"] for row in session.sql("SET").collect()},
    "read": [hadoop.get(name) for name in json.loads(sys.argv[2])],
    "cores": [session.sparkContext.master, session.sparkContext.defaultParallelism, processors, pyarrow.cpu_count()],
}
session._jvm.org.apache.logging.log4j.LogManager.getLogger("org.example").error('a "line"\\nand another')
print(json.dumps(found))
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


def shown(settings: Mapping[str, str], **environment: str) -> tuple[dict[str, Any], str]:
    """What a process with a session of its own found out, and all that it wrote on standard error."""
    ran = subprocess.run(
        [sys.executable, "-c", _SHOWN, json.dumps(settings), json.dumps([*_SECRETS])],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found, ran.stderr


def test_secrets_are_shown_nowhere_and_the_jvm_logs_json_as_the_service_does() -> None:
    """Its command line and Spark's settings can be seen by others, its standard error is read by the same tools."""
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "spark.hadoop.fs.s3a.endpoint": "an-endpoint",
        **{f"spark.hadoop.{name}": value for name, value in _SECRETS.items()},
    }
    found, error = shown(settings, DISTRIBUTARY_LOG_FORMAT="json")
    assert found["read"] == [*_SECRETS.values()]
    assert "an-endpoint" in found["shown"]
    assert "secret-of" not in found["shown"]
    assert {f"spark.hadoop.{name}" for name in _SECRETS} <= found["redacted"].keys()
    assert not [value for name, value in found["redacted"].items() if "secret-of" in value]
    lines = error.splitlines()
    # What Java itself says before anything is set up.
    assert [line for line in lines if not line.startswith(("{", "WARNING: ", "Picked up "))] == []
    result = [json.loads(line) for line in lines if line.startswith("{")]
    [line] = [one for one in result if one["logger"] == "org.example"]
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": 'a "line"\nand another', "level": "error", "logger": "org.example"}


def test_all_threads_follow_the_cores_that_are_granted_and_the_jvm_logs_text_as_the_service_does() -> None:
    found, error = shown({"spark.driver.memory": "512m"}, DISTRIBUTARY_CORES="1", DISTRIBUTARY_LOG_FORMAT="text")
    assert found["cores"] == ["local[1]", 1, 1, 1]
    assert '[error    ] a "line"\\nand another' in error
