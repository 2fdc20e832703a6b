"""Helm as a library (helm-java): no program to install, and a pinned version."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from py4j import java_gateway
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value

from distributary.launch.bundle import Bundle
from distributary.launch.ivy import Artifact, pyspark_jars
from distributary.launch.java import java

# Helm 3.21.0.
HELM_JAVA = "0.0.21"
_GROUP = "com.marcnuri.helm-java"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

Manifest = dict[str, Any]


class HelmError(Exception):
    """Helm's message when it refuses."""


class Helm:
    """A running Helm that knows the chart in the directory `chart`."""

    def __init__(self, jvm: Any, chart: Path) -> None:
        self._jvm = jvm
        self._chart = chart

    def version(self) -> str:
        return str(self._jvm.com.marcnuri.helm.Helm.version().call())

    def lint(self) -> tuple[bool, list[str]]:
        """Whether `helm lint --strict` passes with the chart's own values, and its output."""
        result = self._command().lint().strict().call()
        return not result.isFailed(), [str(message) for message in result.getMessages()]

    def template(
        self,
        *values: Path,
        release: str = "distributary",
        namespace: str = "default",
        set_: dict[str, Any] | None = None,
    ) -> str:
        """The output of `helm template`, with files of values and single values. Raises HelmError."""
        command = self._command().template().withName(release).withNamespace(namespace)
        for file in values:
            command = command.withValuesFile(self._path(file))
        for key, value in (set_ or {}).items():
            command = command.set(key, value)
        return str(_called(command))

    def notes(self, *values: Path, release: str = "distributary") -> str:
        """The notes that a user reads after the installation. Raises HelmError."""
        command = self._command().install().withName(release).clientOnly().dryRun()
        for file in values:
            command = command.withValuesFile(self._path(file))
        return str(_called(command).getOutput()).partition("NOTES:\n")[2]

    def _command(self) -> Any:
        return self._jvm.com.marcnuri.helm.Helm(self._path(self._chart))

    def _path(self, file: Path) -> Any:
        return self._jvm.java.io.File(str(file)).toPath()


def _called(command: Any) -> Any:
    try:
        # PySpark's own, which it puts there with its first session, would look into Spark's JVM for Helm's exceptions.
        with mock.patch.object(java_gateway, "get_return_value", get_return_value):
            return command.call()
    except Py4JJavaError as error:
        raise HelmError(str(error.java_exception.getMessage())) from error


def read(rendered: str) -> list[Manifest]:
    """The objects in the output of `template`."""
    return [manifest for manifest in yaml.safe_load_all(rendered) if manifest]


@contextmanager
def running_helm(chart: Path) -> Iterator[Helm]:
    """Helm in a Java process of its own; the first time its jars are fetched into the cache."""
    [py4j] = pyspark_jars().glob("py4j-*.jar")
    options = {"jarpath": str(py4j), "classpath": f"{_jars()}/*", "java_path": java(), "javaopts": ["-Xmx256m"]}
    port = launch_gateway(die_on_exit=True, **options)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield Helm(gateway.jvm, chart)
    finally:
        gateway.shutdown()


def _jars() -> Path:
    machine = platform.machine()
    native = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    artifacts = tuple(Artifact(_GROUP, name, HELM_JAVA) for name in ("helm-java", native))
    return Bundle(
        f"helm-java-{HELM_JAVA}-{native}", artifacts, parts=("helm-java", native, "lib-api", "jna-jpms")
    ).cached()
