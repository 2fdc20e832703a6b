"""A Kafka broker from its jars: one node that is its own controller, on this machine's loopback address only."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from distributary.demo.process import ServerProcess, free_ports, listens
from distributary.errors import SetupError
from distributary.launch.bundle import Bundle, read_hashes
from distributary.launch.ivy import Artifact
from distributary.launch.java import java

KAFKA = "4.3.1"
JARS = Bundle(
    name=f"kafka-{KAFKA}",
    artifacts=(
        Artifact("org.apache.kafka", "kafka_2.13", KAFKA),
        # Kafka's libraries leave it to whoever runs them to choose where logs go.
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    parts=("kafka_2.13", "kafka-clients", "kafka-server", "slf4j-simple"),
    hashes=read_hashes("distributary.demo", "kafka.sha256"),
)
START_SECONDS = 90
MEMORY = "-Xmx512m"
# The first tier of compilation only: the broker lives for minutes, on machines with few cores.
JVM = (MEMORY, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class Broker:
    """A running broker. As a context manager it is stopped at the end; it never outlives this process either way.

    `bootstrap` is the address for clients (PLAINTEXT).
    """

    def __init__(self, process: ServerProcess, bootstrap: str) -> None:
        self._process = process
        self.bootstrap = bootstrap
        self.log = process.log

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> Broker:
        """Start a broker that keeps data, configuration and log in `directory`, and wait until it answers.

        A directory that an earlier broker used is gone on with. `port`: a free one if None. `properties` go over the
        broker's own, `java_options` to its JVM. Topics are never made by themselves. Raises SetupError:
        `jars-unresolved` and Java's when the jars can't be had, `server-not-ready` with the end of the log when the
        broker does not come up.
        """
        libraries = JARS.cached()
        directory.mkdir(parents=True, exist_ok=True)
        own, controller = free_ports(2)
        bootstrap = f"127.0.0.1:{port or own}"
        config = directory / "server.properties"
        settings = {**_settings(directory, bootstrap, f"127.0.0.1:{controller}"), **(properties or {})}
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")

        java_command = [java(), *JVM, *LOGGING, *java_options, "-cp", f"{libraries}/*"]
        if not (directory / "data" / "meta.properties").exists():
            _format([*java_command, "kafka.tools.StorageTool"], config)
        process = ServerProcess(
            "the Kafka broker", [*java_command, "kafka.Kafka", str(config)], directory / "broker.log"
        )
        process.wait_until(lambda: _answers(bootstrap), START_SECONDS)
        return cls(process, bootstrap)

    def stop(self) -> None:
        """Stop the broker; it writes all its data to disk first."""
        self._process.stop()

    def kill(self) -> None:
        """End the broker as a crash would."""
        self._process.kill()

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _settings(directory: Path, bootstrap: str, controller: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{bootstrap},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{bootstrap}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{controller}",
        "log.dirs": str(directory / "data"),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        # Inner topics as small as one broker needs them.
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # A quarter of the memory otherwise.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        # Recorded events are as old as their recording: a time limit would remove them while they are read.
        "log.retention.ms": "-1",
    }


def _format(storage_tool: list[str], config: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # An id that begins with a dash would be read as an option.
    arguments = ["format", "--config", str(config), "--cluster-id", f"d{cluster[1:]}"]
    run = subprocess.run([*storage_tool, *arguments], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SetupError(
            "server-not-ready",
            f"Kafka's storage could not be prepared: {run.stdout.strip()}\n{run.stderr.strip()}",
            "check that there is room on the disk, then start it again",
        )


def _answers(bootstrap: str) -> bool:
    # Clients log every refused connection, so no client is made before the port is open.
    if not listens(int(bootstrap.rpartition(":")[2])):
        return False
    try:
        return bool(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=2).brokers)
    except KafkaException:
        return False
