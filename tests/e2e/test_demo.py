"""The demo as a user runs it: the public command in a separate process."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

PAGE = Path(__file__).parents[2] / "docs/start-demo.md"
START_SECONDS = 760  # two minutes alone; jars to fetch and other tests on the same cores make it many
STOP_SECONDS = 120
TABLES = {
    "public/customers": 470,
    "public/order_items": 19,
    "dbo/orders": 34,
    "DB2INST1/ACCOUNTS": 34,
}


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "distributary", "demo", "--keep", "--directory", str(tmp_path / "demo")]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    yield process
    if process.poll() is None:
        process.terminate()  # not kill: it must stop its broker and its service
        process.wait(STOP_SECONDS)


def test_the_demo_ends_with_equal_tables_and_leaves_nothing_running(
    demo: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    wait_until_kept(demo, tmp_path / "output")
    config = yaml.safe_load((tmp_path / "demo" / "distributary.yaml").read_text("utf-8"))
    http_port, broker_port = config["http"]["port"], int(config["kafka"]["bootstrap.servers"].rpartition(":")[2])

    tables = status(http_port)["tables"]
    assert {name.replace(".", "/", 1) for name in tables} == set(TABLES)
    assert {table["lag_records"] for table in tables.values()} == {0}
    assert listens(broker_port)

    check_page(tmp_path)

    demo.send_signal(signal.SIGINT)
    exit_code = demo.wait(STOP_SECONDS)
    text = (tmp_path / "output").read_text("utf-8")
    assert exit_code == 0, text
    assert f"All {len(TABLES)} tables are equal to their sources" in text
    for origin in ("recorded from a real PostgreSQL", "simulated SQL Server", "simulated Db2"):
        assert origin in text
    assert "not equal" not in text
    assert "One change on its way" in text
    assert "status -c" in text
    assert not listens(broker_port)
    assert not listens(http_port)

    for path, rows in TABLES.items():
        assert DeltaTable(str(tmp_path / "demo" / "lake" / path)).to_pyarrow_table().num_rows == rows


def check_page(folder: Path) -> None:
    """The commands of the page give, in this folder, what the page says."""
    page = PAGE.read_text("utf-8")
    [commands] = re.findall(r"<!-- of the running demo -->\n```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    here = {"distributary": f"{sys.executable} -m distributary", "python": sys.executable}
    commands = re.sub(r"^\.venv/bin/(\w+)", lambda program: here[program[1]], commands, flags=re.MULTILINE)
    # Not checked: the exit code of the last command, as Python may crash after it has printed the rows.
    done = subprocess.run(commands, shell=True, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.count('"state": "up_to_date"') == len(TABLES), done.stderr
    assert f"{len(TABLES)} tables, 0 would halt, 2 warnings" in done.stdout
    assert "4 tables: 4 equal" in done.stdout
    [rows] = re.findall(r"^```\n(\{'ID'.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert done.stdout.endswith(rows)
    shown = dict(re.findall(r"^\| `(\S+)` \| (\d+) \|$", page, re.MULTILINE))
    assert {name.replace(".", "/", 1): int(count) for name, count in shown.items()} == TABLES


def test_a_directory_that_is_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    command = [sys.executable, "-m", "distributary", "demo", "--directory", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert "demo-directory-in-use" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def wait_until_kept(demo: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while "Ctrl-C ends both" not in output.read_text("utf-8"):
        assert demo.poll() is None, output.read_text("utf-8")
        assert time.monotonic() < deadline, output.read_text("utf-8")
        time.sleep(0.5)


def status(port: int) -> dict[str, dict[str, dict[str, object]]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/status")
    answer: dict[str, dict[str, dict[str, object]]] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
