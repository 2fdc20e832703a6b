"""Which tables are halted, in a small file beside the tables, so that it is known without the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from distributary.config import Config
from distributary.errors import SetupError
from distributary.operate.records import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Halts = Mapping[str, Mapping[str, str]]
"""By topic the name of the `table`, and `code`, `message` and `fix`."""


def halts_path(config: Config) -> str:
    """Where the file lies: several pipelines may fill one lake."""
    return f"{str(config.target.path).rstrip('/')}/_distributary/halted/{config.source.topic_prefix}.json"


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
    """What the service wrote last; nothing where there is no such file. Raises SetupError where it can't be read: then
    nothing tells whether tables are halted."""
    try:
        files, place = fs.FileSystem.from_uri(plain(halts_path(config)))
        with files.open_input_stream(place) as stream:
            found: dict[str, dict[str, str]] = json.loads(stream.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SetupError(
            "lake-unreadable",
            f"{halts_path(config)} can't be read ({type(error).__name__})",
            "check that this machine may read target.path; keys of an object store are taken from the environment",
        ) from error
    return found
