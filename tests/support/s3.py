"""A real S3 API on this machine (moto's server), Spark's jars for it, and playbacks with a lake there."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from tests.support.playback import Playback, Run, Running

from distributary.demo.process import ServerProcess, free_ports
from distributary.launch.bundle import Bundle
from distributary.launch.ivy import Artifact, artifact_name, pyspark_jars
from distributary.launch.jars import DIRECTORY_VARIABLE, jars

ROOT = Path(__file__).parents[2]
HADOOP, SDK = "3.5.0", "2.35.4"
"""PySpark's Hadoop, and the AWS SDK that its connector was made with."""
BUCKET, REGION = "lake", "eu-central-1"
START_SECONDS = 60
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key-of-the-test", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}
"""Any value works: moto does not check signatures."""


def connector() -> Bundle:
    """hadoop-aws with those parts of the AWS SDK that it uses: a fiftieth of the bundle with all of them."""
    parts = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    return Bundle(
        name=f"hadoop-aws-{HADOOP}",
        artifacts=(
            Artifact("org.apache.hadoop", "hadoop-aws", HADOOP),
            *(Artifact("software.amazon.awssdk", part, SDK) for part in parts),
        ),
        without=frozenset(artifact_name(file) for file in pyspark_jars().glob("*.jar"))
        | {"bundle", "amazon-s3-encryption-client-java"},
        parts=("hadoop-aws", *parts),
    )


def jars_with_connector(directory: Path) -> Path:
    """The service's own jars with the connector beside them, as docs/object-stores.md has it."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in (*jars(), *connector().cached().glob("*.jar")):
        (directory / file.name).symlink_to(file)
    return directory


@dataclass(frozen=True)
class Store:
    """The address of an S3 API."""

    endpoint: str

    def environment(self) -> dict[str, str]:
        """The environment that commands without Spark need to reach the store."""
        more = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true"}
        return {**CREDENTIALS, **more}

    def make_bucket(self) -> None:
        """Makes the bucket of the tests."""
        place = (
            f"<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>"
        )
        request = urllib.request.Request(f"{self.endpoint}/{BUCKET}", data=place.encode(), method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def answers(self) -> bool:
        """Whether the server answers."""
        try:
            with urllib.request.urlopen(self.endpoint, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running_s3(directory: Path, commit_seconds: float = 0) -> Iterator[Store]:
    """An S3 with an empty bucket. What it holds is in memory; its log is in `directory`. `commit_seconds`: see
    s3_server.py."""
    [port] = free_ports(1)
    store = Store(f"http://127.0.0.1:{port}")
    command = [sys.executable, "-m", "tests.support.s3_server", str(port), str(commit_seconds)]
    server = ServerProcess("moto's S3", command, directory / "s3.log", directory=ROOT)
    try:
        server.wait_until(store.answers, START_SECONDS)
        store.make_bucket()
        yield store
    finally:
        server.stop()


def spark_properties(store: Store) -> dict[str, str]:
    """The properties that Spark needs to reach the store."""
    return {
        "spark.hadoop.fs.s3a.access.key": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        "spark.hadoop.fs.s3a.endpoint": store.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


class S3Playback(Playback):
    """A playback whose tables and checkpoint lie in the bucket.

    `through` is the address by which the service reaches the store, if it is another one; its keys are in the config,
    by references to files. commands without Spark have the environment of `command` instead.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        store: Store,
        through: str | None = None,
        spark: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self._store = store
        self._jars = jars_with_connector(folder / "jars")
        for name, value in CREDENTIALS.items():
            (folder / name).write_text(value, encoding="utf-8")
        properties = {
            **spark_properties(store),
            "spark.hadoop.fs.s3a.access.key": f"${{file:{folder / 'AWS_ACCESS_KEY_ID'}}}",
            "spark.hadoop.fs.s3a.secret.key": f"${{file:{folder / 'AWS_SECRET_ACCESS_KEY'}}}",
            **({"spark.hadoop.fs.s3a.endpoint": through} if through else {}),
            **(spark or {}),
        }
        place: dict[str, Any] = {
            "target": {"path": f"s3a://{BUCKET}/{folder.name}"},
            "checkpoint": f"s3a://{BUCKET}/at/{folder.name}",
        }
        super().__init__(bootstrap, folder, spark=properties, **place, **settings)
        self._root = f"s3://{BUCKET}/{folder.name}"

    def delta_table(self, schema: str, name: str) -> DeltaTable:
        place = "/".join(part for part in (self._root, schema, name) if part)
        return DeltaTable(place, storage_options=self._store.environment())

    @contextmanager
    def start(self, *options: str, **environment: str) -> Iterator[Running]:
        with super().start(*options, **{DIRECTORY_VARIABLE: str(self._jars), **environment}) as running:
            yield running

    def command(self, *words: str) -> Run:
        """Another command than `run`, which finds the store by its environment."""
        command = [sys.executable, "-m", "distributary", *words, "-c", str(self.config_file)]
        environment = {**os.environ, DIRECTORY_VARIABLE: str(self._jars), **self._store.environment()}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return Run(done.returncode, done.stdout)
