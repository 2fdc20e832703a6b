"""The JVM that the service starts, as other users of the machine see it."""

from __future__ import annotations

import json
import subprocess
import sys

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
