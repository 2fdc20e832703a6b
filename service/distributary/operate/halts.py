"""Which tables are halted, in one small file beside the tables, so that it is known without the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from distributary.config import Config
from distributary.operate.records import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Halts = Mapping[str, Mapping[str, str]]
"""By table `code`, `message` and `fix`."""


def halts_path(config: Config) -> str:
    """Where the file lies."""
    return f"{str(config.target.path).rstrip('/')}/_distributary/halted.json"


def write_halts(session: SparkSession, config: Config, halts: Halts) -> None:
    """Replaces the file; without halts there is none."""
    jvm: Any = session._jvm
    place = jvm.org.apache.hadoop.fs.Path(halts_path(config))
    files = place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    if not halts:
        files.delete(place, False)
        return
    stream = files.create(place, True)
    try:
        stream.write(bytearray(json.dumps(halts, ensure_ascii=False).encode()))
    finally:
        stream.close()


def read_halts(config: Config) -> dict[str, dict[str, str]]:
    """What the service wrote last; nothing where there is no such file or it can't be read."""
    try:
        files, place = fs.FileSystem.from_uri(plain(halts_path(config)))
        with files.open_input_stream(place) as stream:
            found: dict[str, dict[str, str]] = json.loads(stream.read())
    except (OSError, ValueError, pa.ArrowException):
        return {}
    return found
