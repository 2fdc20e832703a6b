"""spark-submit with the built wheel fills a Delta table from a topic."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from deltalake import DeltaTable
from tests.support.cluster import SECRET, running_cluster
from tests.support.kafka import Record, create_topic, produce
from tests.support.waiting import wait_until

from distributary.launch.jars import jars

ROOT = Path(__file__).parents[2]
ENTRY_POINT = ROOT / "deploy/spark-submit/main.py"
# Not the checkout's, so that the version tells which of the two packages ran.
WHEEL_VERSION = "9.9.9"
LOCAL = ["--master", "local[2]", "--driver-memory", "1g"]
TIMEOUT_SECONDS = 600  # minutes where other tests run on the same cores


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves files beside the sources, which the next build would pack again."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "service", source / "service", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    version = source / "service/distributary/__init__.py"
    version.write_text(re.sub(r'(?<=__version__ = ")[^"]+', WHEEL_VERSION, version.read_text()))
    target = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
    subprocess.run(build, check=True, timeout=TIMEOUT_SECONDS)
    [built] = target.glob("*.whl")
    return built


@pytest.fixture(params=["local", pytest.param("standalone", marks=pytest.mark.slow)])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """The options by which spark-submit chooses where tasks run: in the driver's process, or on executors in their
    own."""
    if request.param == "local":
        yield LOCAL
        return
    with running_cluster(tmp_path) as cluster:
        spark = {name: value for name, value in cluster.spark.items() if name != "spark.master"}
        spark["spark.authenticate.secret"] = SECRET
        yield ["--master", cluster.master, *(part for pair in spark.items() for part in ("--conf", "=".join(pair)))]


def submit(
    wheel: Path,
    directory: Path,
    *arguments: str,
    options: Sequence[str] = LOCAL,
    with_jars: bool = True,
    entry_point: Path = ENTRY_POINT,
) -> subprocess.CompletedProcess[str]:
    """Run the entry point with pyspark's own spark-submit in `directory`."""
    spark_home = Path(pyspark.__file__).parent
    command = [str(spark_home / "bin/spark-submit"), *options]
    if with_jars:
        command += ["--jars", ",".join(map(str, jars()))]
    command += ["--py-files", str(wheel), str(entry_point), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, number: int) -> bytes:
    """A change event of SQL Server's connector, the `number`th of its log."""
    source = {
        "version": "3.6.1.Final",
        "connector": "sqlserver",
        "name": "submit",
        "ts_ms": 1_780_000_000_000 + number,
        "snapshot": "false",
        "db": "shop",
        "schema": "dbo",
        "table": "customers",
        "change_lsn": f"0000002c:{number:08x}:0002",
        "commit_lsn": f"0000002c:{number:08x}:0005",
        "event_serial_no": 1,
    }
    return json.dumps({"before": before, "after": after, "op": op, "ts_ms": source["ts_ms"], "source": source}).encode()


def test_an_exit_code_comes_through(wheel: Path, tmp_path: Path) -> None:
    refused = submit(wheel, tmp_path, "run", "-c", "nowhere.yaml", with_jars=False)
    assert refused.returncode == 2
    assert "nowhere.yaml:1" in refused.stdout  # where spark-submit puts all that Python says


EXECUTOR_OPTIONS, TOKEN_URL = "spark.executor.extraJavaOptions", "https://idp.example.com/token"
GIVEN_TO_BOTH, GIVEN = "spark.databricks.delta.snapshotPartitions", "spark.sql.shuffle.partitions"
OWNED, DEFAULT = "spark.sql.caseSensitive", "spark.ui.retainedJobs"


@pytest.fixture(scope="module")
def properties(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a session has that the package opens under spark-submit: its Spark properties, and the system property
    `allowed.urls` of the driver's JVM; and the package's version."""
    folder = tmp_path_factory.mktemp("properties")
    probe = folder / "probe.py"
    probe.write_text(
        "import json\n"
        "from distributary import __version__\n"
        "from distributary.launch.session import open_session\n"
        f"session = open_session({{{GIVEN_TO_BOTH!r}: '3'}}, {{'allowed.urls': {TOKEN_URL!r}}})\n"
        f"found = {{name: session.conf.get(name) for name in {[GIVEN_TO_BOTH, GIVEN, OWNED, DEFAULT]!r}}}\n"
        f"found[{EXECUTOR_OPTIONS!r}] = session.sparkContext.getConf().get({EXECUTOR_OPTIONS!r})\n"
        "found['allowed.urls'] = session._jvm.java.lang.System.getProperty('allowed.urls')\n"
        "found['version'] = __version__\n"
        "print('found', json.dumps(found))\n"
    )
    given = {EXECUTOR_OPTIONS: "-Dgiven=1", GIVEN: "7", GIVEN_TO_BOTH: "7", OWNED: "false"}
    options = [*LOCAL, *(f"--conf={name}={value}" for name, value in given.items())]
    run = submit(wheel, folder, options=options, entry_point=probe)
    assert run.returncode == 0, run.stderr[-4000:]
    [line] = [line for line in run.stdout.splitlines() if line.startswith("found ")]
    found: dict[str, Any] = json.loads(line.removeprefix("found "))
    return found


def test_the_package_comes_from_the_wheel(properties: dict[str, Any]) -> None:
    assert properties["version"] == WHEEL_VERSION


def test_jvms_are_told_system_properties_beside_what_spark_submit_gives_them(properties: dict[str, Any]) -> None:
    """Kafka's client asks for tokens only at URLs in a property of its JVM: the driver's was started by
    spark-submit."""
    assert properties["allowed.urls"] == TOKEN_URL
    assert f" -Dgiven=1 -Dallowed.urls={TOKEN_URL}" in f" {properties[EXECUTOR_OPTIONS]}"


def test_what_spark_submit_is_given_counts_over_the_defaults_and_the_config_over_both(
    properties: dict[str, Any],
) -> None:
    assert [properties[name] for name in (GIVEN, DEFAULT, GIVEN_TO_BOTH, OWNED)] == ["7", "20", "3", "true"]


def test_a_signal_to_all_processes_ends_the_service_in_order(wheel: Path, kafka: str, tmp_path: Path) -> None:
    """Started as the image does it: Java, in which Python runs here, leaves the signal to it."""
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": f"submit{uuid.uuid4().hex[:8]}", "connector": "sqlserver"},
        "target": {"path": str(tmp_path / "lake")},
        "checkpoint": str(tmp_path / "checkpoint"),
        "http": {"enabled": False},
        "tables": [{"match": "*.*"}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    spark_home = Path(pyspark.__file__).parent
    words = [
        str(spark_home / "bin/spark-submit"),
        *LOCAL,
        "--jars",
        ",".join(map(str, jars())),
        "--py-files",
        str(wheel),
    ]
    words = ["bash", "-c", 'trap "" TERM; exec "$@"', "-", *words, str(ENTRY_POINT), "run", "-c", "config.yaml"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable}
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=file, stderr=file, start_new_session=True
        )
    try:
        lease = tmp_path / "lake/_distributary/driver"
        wait_until(lambda: lease.exists() and any(lease.iterdir()), 300, lambda: log.read_text()[-4000:])
        wait_until((tmp_path / "checkpoint/offsets").exists, 300, lambda: log.read_text()[-4000:])
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(120) == 0, log.read_text()[-4000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert "stopping after the batch in flight" in log.read_text()
    assert not any(lease.iterdir())


def test_run_once_takes_a_topic_into_a_delta_table(wheel: Path, kafka: str, tmp_path: Path, options: list[str]) -> None:
    prefix = f"submit{uuid.uuid4().hex[:8]}"
    topic = f"{prefix}.shop.dbo.customers"
    ada, bob, eve = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 2, "name": "Eve"}
    events = [
        (1, change("c", None, ada, 1)),
        (2, change("c", None, bob, 2)),
        (2, change("u", bob, eve, 3)),
        (1, change("d", ada, None, 4)),
        (1, None),
        (3, change("c", None, {"id": 3, "name": "Kim"}, 5)),
    ]
    create_topic(kafka, topic)
    produce(kafka, [Record(topic, key=json.dumps({"id": key}).encode(), value=value) for key, value in events])
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": prefix, "connector": "sqlserver"},
        "target": {"path": str(tmp_path / "lake")},
        "checkpoint": str(tmp_path / "checkpoint"),
        "tables": [{"match": "*.*"}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))

    run = submit(wheel, tmp_path, "run", "-c", "config.yaml", "--once", options=options)

    assert run.returncode == 0, run.stderr[-4000:]
    rows = DeltaTable(str(tmp_path / "lake/dbo/customers")).to_pyarrow_table(columns=["id", "name"]).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [eve, {"id": 3, "name": "Kim"}]
