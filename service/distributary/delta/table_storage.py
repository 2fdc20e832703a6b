"""The file system of a table's location, as pyarrow reaches it, with the settings that Spark has for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from pyarrow import fs
from pyspark.sql import SparkSession

from distributary.delta.storage import TableFiles, in_file_system
from distributary.errors import TableHalt

Setting = Callable[[str], str | None]
"""Looks up a Hadoop setting; None if it is not set."""

# Google's client by itself tries for a quarter of an hour, and nobody sees that.
_PATIENCE = timedelta(seconds=60)
# Small files are written by one request instead of three.
_ONE_REQUEST = {"allow_delayed_open": True}


def table_files(session: SparkSession, path: str) -> TableFiles:
    """The files of the table at `path`, a URI or a path of this machine. Raises TableHalt if no file system is known
    for it."""
    parts = urlsplit(path)
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    if parts.scheme in ("", "file"):
        return TableFiles(unquote(parts.path) if parts.scheme else path)
    return TableFiles(in_file_system(path), file_system(path, configuration.get))


def file_system(path: str, setting: Setting) -> fs.FileSystem:
    """The file system of a URI. Raises TableHalt if there is none for its scheme."""
    parts = urlsplit(path)
    if parts.scheme in ("s3a", "s3", "s3n"):
        return _s3(parts.netloc, setting)
    if parts.scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=_PATIENCE)
    if parts.scheme in ("hdfs", "viewfs", "abfs", "abfss"):
        filesystem, _ = fs.FileSystem.from_uri(path)
        return filesystem
    raise TableHalt(
        "storage-not-supported",
        f"no file system is known for {parts.scheme}://, where the table would be ({path})",
        "give target a directory of this machine, or one of s3a://, abfss://, gs:// and hdfs://",
    )


def _s3(bucket: str, setting: Setting) -> fs.S3FileSystem:
    """Settings of the bucket come before those of all buckets, as in Hadoop."""

    def of(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    endpoint = of("endpoint")
    scheme = urlsplit(endpoint).scheme if endpoint and "://" in endpoint else None
    is_plain = scheme == "http" or (scheme is None and of("connection.ssl.enabled") == "false")
    given = {
        "access_key": of("access.key"),
        "secret_key": of("secret.key"),
        "session_token": of("session.token"),
        "endpoint_override": endpoint.partition("://")[2] or endpoint if endpoint else None,
        "region": of("endpoint.region"),
    }
    return _s3_of(
        scheme="http" if is_plain else "https",
        # By path where Hadoop does so: stores of one's own have no name for each bucket.
        force_virtual_addressing=False if of("path.style.access") == "true" else endpoint is None,
        **{name: value for name, value in given.items() if value},
    )


@lru_cache(maxsize=64)
def _s3_of(**options: str | bool) -> fs.S3FileSystem:
    """Cached by its options, so that its connections are reused."""
    return fs.S3FileSystem(**options, **_ONE_REQUEST)
