"""The list of halted tables in a small file beside the tables, which commands read without the service."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from distributary.config import Config
from distributary.error_mapping import classify
from distributary.errors import TableHalt
from distributary.ingest.tables import own_path
from distributary.logs import get_logger
from distributary.storage.json_file import JsonFile
from distributary.storage.lake_files import note_at, unreadable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = get_logger(__name__)


def halts_path(config: Config) -> str:
    """The file's path. It has the prefix in its name, because several pipelines may fill one lake."""
    return own_path(config, "halted", f"{config.source.topic_prefix}.json")


class Halts:
    """Writes the file for commands that run while the service is stopped. A failed write is only logged: the
    service itself does not read the file."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._json_file = JsonFile(session, halts_path(config))
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, str]] = {}

    def clear(self) -> None:
        """Removes the file: no table is halted."""
        with self._lock:
            self._found.clear()
            self._write()

    def add(self, topic: str, table: str, halt: TableHalt) -> None:
        """Adds the halted table of the topic."""
        with self._lock:
            self._found[topic] = {"table": table, **halt.as_dict()}
            self._write()

    def remove(self, topic: str) -> None:
        """Removes the table of the topic."""
        with self._lock:
            if self._found.pop(topic, None) is not None:
                self._write()

    def _write(self) -> None:
        try:
            if self._found:
                self._json_file.write(self._found)
            else:
                self._json_file.remove()
        except Exception as error:
            _log.warning("the list of halted tables could not be written", reason=classify(error).message)


def read_halts(config: Config) -> dict[str, dict[str, str]]:
    """The halted tables by topic: `table`, `code`, `message` and `fix`; empty if there is no file. Raises SetupError if
    the file can't be read."""
    path = halts_path(config)
    text = note_at(path)
    try:
        halts: dict[str, dict[str, str]] = json.loads("{}" if text is None else text)
    except ValueError as error:
        raise unreadable(path, error) from error
    return halts
