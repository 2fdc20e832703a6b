"""Downloads the Java programs that tests start, so that no test waits for them.

`python -m tests.support.downloads`. A test whose program is missing downloads it by itself.
"""

from __future__ import annotations

from tests.support import connect, helm, registry, s3

from distributary.demo import broker


def download() -> None:
    """Fills the cache. Raises SetupError."""
    for bundle in (
        broker.JARS,
        connect.CONNECT_JARS,
        connect.POSTGRES_CONNECTOR,
        connect.AVRO_CONVERTER,
        registry.REGISTRY,
        s3.connector(),
        helm.bundle(),
    ):
        bundle.cached()


if __name__ == "__main__":
    download()
