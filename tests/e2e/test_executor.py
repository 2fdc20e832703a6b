"""The image's entry point as an executor: it joins a driver that knows nothing of it, and runs the driver's tasks.

What Kubernetes does in between is left out: here the test says what the driver would have the pod told. A master
without workers takes the place of the cluster, so that no other executor can run the tasks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cluster import running_master

from distributary.demo.process import free_ports
from distributary.launch.jars import jar_directory

ENTRY_POINT = Path(__file__).parents[2] / "deploy/docker/entrypoint.sh"
TIMEOUT_SECONDS = 600  # minutes where other tests run on the same cores
# Prints what the tasks see of a property that the entry point was told, and how many rows they made.
DRIVER = """
import subprocess, sys
from pyspark.sql import SparkSession

master, port, entry_point = sys.argv[1:]
session = (
    SparkSession.builder.master(master)
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.port", port)
    .config("spark.driver.memory", "600m").config("spark.ui.enabled", "false")
    .getOrCreate()
)
import os
told = {
    "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
    "SPARK_APPLICATION_ID": session.sparkContext.applicationId,
    "SPARK_EXECUTOR_ID": "1", "SPARK_EXECUTOR_CORES": "1", "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1", "SPARK_EXECUTOR_POD_NAME": "exec-1", "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_0": "-Da.told=two words",
}
environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
executor = subprocess.Popen([entry_point, "executor"], env=environment | told)
try:
    seen = session.range(1000).selectExpr("java_method('java.lang.System', 'getProperty', 'a.told') AS told")
    print([tuple(row) for row in seen.groupBy("told").count().collect()])
finally:
    session.stop()
    print("ended with", executor.wait(60))
"""


@pytest.mark.slow
def test_an_executor_joins_the_driver_and_runs_its_tasks(tmp_path: Path) -> None:
    (driver_port,) = free_ports(1)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment["DISTRIBUTARY_JARS"] = str(jar_directory())
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    (tmp_path / "driver.py").write_text(DRIVER)
    with running_master(tmp_path) as cluster:
        done = subprocess.run(
            [sys.executable, "driver.py", cluster.master, str(driver_port), ENTRY_POINT],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    assert done.stdout.splitlines()[-2:] == ["[('two words', 1000)]", "ended with 0"], done.stderr[-2000:]
