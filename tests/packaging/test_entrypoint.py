"""The image's entry point: Spark on Kubernetes' arguments and environment reach the right program.

The programs are stood in for by one that prints its command line. tests/e2e/test_executor.py has a real executor.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy/docker/entrypoint.sh"
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("java", "python", "spark-submit"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nbasename "$0"\nprintf "%s\\n" "$@"\n')
        program.chmod(0o755)
    (tmp_path / "find_spark_home.py").write_text("#!/bin/sh\necho /spark\n")
    (tmp_path / "find_spark_home.py").chmod(0o755)
    return tmp_path


def run(programs: Path, *arguments: str, **environment: str) -> list[str]:
    """The program that was run and its arguments."""
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "DISTRIBUTARY_JARS": "/jars"} | environment
    done = subprocess.run([SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_anything_else_is_a_command_of_distributary(programs: Path) -> None:
    assert run(programs, "run") == ["python", "-m", "distributary", "run"]
    assert run(programs, "status", "--output", "json") == [
        "python",
        "-m",
        "distributary",
        "status",
        "--output",
        "json",
    ]


def test_driver_is_submitted_in_client_mode_with_the_jars(programs: Path) -> None:
    assert run(
        programs, "driver", "--properties-file", "/p", "local:///main.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1"
    ) == [
        "spark-submit",
        *("--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.1", "--driver-class-path", "/jars/*"),
        *("--properties-file", "/p", "local:///main.py"),
    ]


def test_java_leaves_sigterm_to_the_driver_in_it(programs: Path) -> None:
    (programs / "spark-submit").write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    [line] = run(programs, "driver", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1")
    assert int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def test_executor_is_started_with_what_the_driver_says(programs: Path) -> None:
    java = run(
        programs, "executor", **EXECUTOR, SPARK_JAVA_OPT_0="-Da=b c", SPARK_JAVA_OPT_1="-Dd=", SPARK_CONF_DIR="/conf"
    )
    assert java[:5] == ["java", "-Da=b c", "-Dd=", "-Xms2048m", "-Xmx2048m"]
    assert java[5:7] == ["-cp", "/conf:/spark/jars/*:/jars/*"]
    assert java[7] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert dict(zip(java[8::2], java[9::2], strict=True)) == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "orders-exec-3",
    }


def test_an_executor_that_was_told_too_little_fails(programs: Path) -> None:
    found = {name: value for name, value in EXECUTOR.items() if name != "SPARK_DRIVER_URL"}
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(programs, "executor", **found)
    assert "SPARK_DRIVER_URL" in failed.value.stderr
