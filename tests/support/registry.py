"""A real schema registry with Confluent's API, Apicurio's, from its archive."""

from __future__ import annotations

import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.support.avro import AvroWriter
from tests.support.kafka import Record

from distributary.demo.process import ServerProcess, free_ports
from distributary.launch.bundle import Bundle
from distributary.launch.ivy import Artifact
from distributary.launch.java import java

# The newest that runs on Java 17 and whose description in Maven Central is whole.
APICURIO = "2.6.13.Final"
REGISTRY = Bundle(
    name=f"apicurio-registry-{APICURIO}",
    artifacts=(Artifact("io.apicurio", "apicurio-registry-app", APICURIO, type="tar.gz", classifier="all"),),
)
START_SECONDS = 120


@dataclass(frozen=True)
class RegistryAddress:
    """The address of a registry."""

    root: str

    @property
    def url(self) -> str:
        """The URL of Confluent's API."""
        return f"{self.root}/apis/ccompat/v7"


def in_avro(records: Iterable[Record], registry: RegistryAddress) -> list[Record]:
    """Records of JSON with schemas, as Avro; registers the schemas, under the names that the connectors use."""
    writer = AvroWriter(SchemaRegistryClient({"url": registry.url}))
    return [
        record._replace(
            key=writer.written(record.key, f"{record.topic}-key"),
            value=writer.written(record.value, f"{record.topic}-value"),
        )
        for record in records
    ]


class Registry:
    """A running registry, its files in `directory`. Its schemas are in memory, and lost when it stops."""

    def __init__(self, directory: Path) -> None:
        [self._port] = free_ports(1)
        self._directory = directory
        self._server: ServerProcess | None = None
        [archive] = REGISTRY.cached().glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")

    @property
    def root(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The URL of Confluent's API."""
        return RegistryAddress(self.root).url

    def start(self) -> None:
        """Returns when it answers."""
        command = [java(), "-Xmx384m", f"-Dquarkus.http.port={self._port}", "-Dquarkus.http.host=127.0.0.1"]
        command += ["-jar", str(self._directory / f"apicurio-registry-app-{APICURIO}-runner.jar")]
        self._server = ServerProcess("schema registry", command, self._directory / "registry.log")
        self._server.wait_until(self._answers, START_SECONDS)

    def stop(self) -> None:
        """Ends it; it can be started again."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running_registry(directory: Path) -> Iterator[str]:
    """A registry from its archive; returns its address."""
    registry = Registry(directory)
    try:
        registry.start()
        yield registry.root
    finally:
        registry.stop()
