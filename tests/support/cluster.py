"""A standalone Spark cluster on this machine: a master, workers, and executors in separate processes."""

from __future__ import annotations

import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyspark

from distributary.demo.process import ServerProcess, free_ports, listens

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 120
"""Seconds that a JVM may take to start while other tests run on the same cores."""
_EXECUTOR_MEMORY = "900m"
SECRET = "secret-of-the-cluster"
_AUTHENTICATED = f"-Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} -Dspark.network.crypto.enabled=true"


@dataclass(frozen=True)
class Cluster:
    """Its master's address and that of its page, its workers, and a file with the secret that all of them share, if
    they have one."""

    master: str
    page: str
    workers: tuple[ServerProcess, ...] = ()
    secret: Path | None = None

    @property
    def spark(self) -> dict[str, str]:
        """Properties of a driver that works on it, with an executor on each worker."""
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": _EXECUTOR_MEMORY,
            "spark.authenticate.secret": f"${{file:{self.secret}}}",
        }

    def end(self, application: str) -> None:
        """Ends an application by its id, as the button of the master's page does."""
        form = urllib.parse.urlencode({"id": application, "terminate": "true"}).encode("ascii")
        urllib.request.urlopen(f"{self.page}/app/kill/", form, timeout=30).close()

    def executors(self) -> dict[str, int]:
        """The process ids of the executors that run now, by Spark's ids of them."""
        found = {}
        for worker in self.workers:
            for pid, arguments in _children(worker.pid):
                if "--executor-id" in arguments:
                    found[arguments[arguments.index("--executor-id") + 1]] = pid
        return found


@contextmanager
def running_master(folder: Path, options: str = "") -> Iterator[Cluster]:
    """A master without workers, until the end; `options` are its JVM's."""
    port, web_port = free_ports(2)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web_port)]
    main = "org.apache.spark.deploy.master.Master"
    master = _started("master", folder, main, arguments, SPARK_DAEMON_JAVA_OPTS=options)
    try:
        master.wait_until(lambda: listens(port), START_SECONDS)
        yield Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web_port}")
    finally:
        master.stop()


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each, until the end."""
    secret = folder / "secret"
    secret.write_text(SECRET, encoding="utf-8")
    with running_master(folder, _AUTHENTICATED) as cluster, ExitStack() as ending:
        started = []
        for number in range(workers):
            place = folder / f"worker-{number}"
            place.mkdir()
            arguments = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", _EXECUTOR_MEMORY]
            arguments += ["--work-dir", str(place), cluster.master]
            main = "org.apache.spark.deploy.worker.Worker"
            environment = {"SPARK_LOCAL_DIRS": str(place), "SPARK_DAEMON_JAVA_OPTS": _AUTHENTICATED}
            worker = _started(place.name, folder, main, arguments, **environment)
            ending.callback(worker.stop)
            started.append(worker)
        for worker in started:
            worker.wait_until(partial(_is_registered, worker), START_SECONDS)
        yield replace(cluster, workers=tuple(started), secret=secret)


def _started(name: str, folder: Path, main: str, arguments: list[str], **environment: str) -> ServerProcess:
    beside = {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m", **environment}
    command = [str(SPARK_HOME / "bin/spark-class"), main, *arguments]
    return ServerProcess(f"Spark's {name}", command, folder / f"{name}.log", environment=beside)


def _is_registered(worker: ServerProcess) -> bool:
    return "registered with master" in worker.log.read_text("utf-8")


def _children(pid: int) -> Iterator[tuple[int, list[str]]]:
    result = subprocess.run(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True)
    for line in result.stdout.splitlines():
        number, _, arguments = line.strip().partition(" ")
        yield int(number), arguments.split()
