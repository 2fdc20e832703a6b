"""A real Kafka Connect with a real Debezium connector, from their jars."""

from __future__ import annotations

import json
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributary.demo.broker import JVM, KAFKA, LOGGING
from distributary.demo.process import ServerProcess, free_ports
from distributary.launch.bundle import Bundle
from distributary.launch.ivy import Artifact
from distributary.launch.java import java

DEBEZIUM = "3.6.1.Final"
CONNECT_JARS = Bundle(
    name=f"connect-{KAFKA}",
    artifacts=(
        Artifact("org.apache.kafka", "connect-runtime", KAFKA),
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    parts=("connect-runtime", "connect-json", "kafka-clients", "slf4j-simple"),
)
POSTGRES_CONNECTOR = Bundle(
    name=f"debezium-postgres-{DEBEZIUM}",
    artifacts=(Artifact("io.debezium", "debezium-connector-postgres", DEBEZIUM, type="tar.gz", classifier="plugin"),),
)
DEBEZIUM_MARIADB = "3.5.0.Final"
MARIADB_CONNECTOR = Bundle(
    name=f"debezium-mariadb-{DEBEZIUM_MARIADB}",
    artifacts=(
        Artifact("io.debezium", "debezium-connector-mariadb", DEBEZIUM_MARIADB, type="tar.gz", classifier="plugin"),
    ),
)
APICURIO = "2.5.11.Final"
AVRO_CONVERTER = Bundle(
    name=f"apicurio-converter-{APICURIO}",
    artifacts=(Artifact("io.apicurio", "apicurio-registry-distro-connect-converter", APICURIO, type="tar.gz"),),
)
"""Apicurio's: the one of Confluent is not in Maven Central."""

START_SECONDS = 120
RUNNING_SECONDS = 60


@dataclass(frozen=True)
class Connect:
    """A running worker; `url` is its REST API."""

    url: str

    def create_connector(self, name: str, config: Mapping[str, object]) -> None:
        """Make a connector and wait until it and its task run. Raises RuntimeError with Connect's answer if not."""
        body = {"name": name, "config": {key: str(value) for key, value in config.items()}}
        self._call("POST", "/connectors", body)
        deadline = time.monotonic() + RUNNING_SECONDS
        while True:
            status = self._call("GET", f"/connectors/{name}/status") or {}
            states = [part["state"] for part in (status.get("connector", {"state": ""}), *status.get("tasks", []))]
            if len(states) > 1 and set(states) == {"RUNNING"}:
                return
            if "FAILED" in states or time.monotonic() > deadline:
                raise RuntimeError(f"connector {name} does not run: {json.dumps(status, indent=1)}")
            time.sleep(0.2)

    def delete_connector(self, name: str) -> None:
        """End and forget a connector."""
        self._call("DELETE", f"/connectors/{name}")

    def answers(self) -> bool:
        """Whether the worker answers requests."""
        try:
            # The server listens, and answers 404 to all, before the API is in it.
            return self._call("GET", "/connectors") is not None
        except (OSError, RuntimeError):
            return False

    def _call(self, method: str, path: str, body: object = None) -> Any:
        """The API's answer; None if there is no such resource (yet)."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error


def avro_converter(registry: str) -> dict[str, str]:
    """A connector's settings for keys and values in Avro, as Confluent's clients read it; `registry` is Apicurio's."""
    settings = {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": f"{registry}/apis/registry/v2",
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
        ".apicurio.registry.dereference-schema": "true",
    }
    both = {f"{side}.converter{name}": value for side in ("key", "value") for name, value in settings.items()}
    # A key's id stands in front of its bytes, as Confluent's converter has it, a value's in Apicurio's header.
    return {**both, "key.converter.apicurio.registry.headers.enabled": "false"}


@contextmanager
def running_connect(bootstrap: str, directory: Path, *more: Bundle) -> Iterator[Connect]:
    """A worker with Debezium's PostgreSQL connector, and with more plugins, on the Kafka at `bootstrap`, its files in
    `directory`."""
    libraries, plugins = CONNECT_JARS.cached(), directory / "plugins"
    for bundle in (POSTGRES_CONNECTOR, *more):
        [archive] = bundle.cached().glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(plugins / bundle.name, filter="data")
    [port] = free_ports(1)
    settings = {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": plugins,
        # Not every converter lists itself for the quick search.
        "plugin.discovery": "hybrid_warn" if more else "service_load",
        "offset.storage.file.filename": directory / "offsets",
        "offset.flush.interval.ms": 1000,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    config = directory / "connect.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    command = [java(), *JVM, *LOGGING, "-cp", f"{libraries}/*"]
    command += ["org.apache.kafka.connect.cli.ConnectStandalone", str(config)]
    worker = ServerProcess("Kafka Connect", command, directory / "connect.log")
    try:
        connect = Connect(f"http://127.0.0.1:{port}")
        worker.wait_until(connect.answers, START_SECONDS)
        yield connect
    finally:
        worker.stop()
