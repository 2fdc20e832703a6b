"""Paused tables: by the config (`paused: true`), or by `distributary pause`, which writes a small file beside the
tables. It needs no running service, and the pause lasts over restarts.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.errors import UsageError
from distributary.halt_actions import ALL_TABLES, PAUSED_BY_COMMAND
from distributary.ingest.tables import ConfiguredTable, find_table, list_tables, own_path
from distributary.storage.json_file import JsonFile, names_in
from distributary.storage.lake_files import plain, unreadable
from distributary.storage.request_files import RegularRead, leave_file, remove_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = "@all"
"""In place of a topic, it means the whole service: no topic's name has an @."""
_ENDING = ".json"
_EVERY = 3.0  # seconds between two reads


@dataclass(frozen=True)
class Pause:
    """The start (seconds since 1970) and the operator's reason; either may be unknown. `of_all`: all tables are paused
    at once."""

    since: float | None = None
    reason: str = ""
    of_all: bool = False

    def __str__(self) -> str:
        since = None if self.since is None else datetime.fromtimestamp(self.since, timezone.utc)
        at = "" if since is None else f" since {since:%Y-%m-%d %H:%M:%S} UTC"
        of_all = f" {ALL_TABLES}" if self.of_all else ""
        return f"{PAUSED_BY_COMMAND}{of_all}{at}{': ' if self.reason else ''}{self.reason}"


def pauses_path(config: Config) -> str:
    """The files' directory. It has the prefix in its name, because several pipelines may fill one lake."""
    return own_path(config, "paused", config.source.topic_prefix)


def pause(config: Config, table: str | None, reason: str) -> None:
    """Pauses the table `table` (schema.table); None pauses the whole service.

    Raises UsageError if there is no such table, SetupError if the lake can't be written.
    """
    name = _file_of(_named(config, table))
    leave_file(pauses_path(config), name, {"since": time.time(), "reason": reason})


def unpause(config: Config, table: str | None) -> bool:
    """Removes the pause of the table, or with None of the service; returns whether there was one.

    Raises UsageError if the config has `paused: true`, and errors of pause().
    """
    configured = _named(config, table)
    if config.paused or (configured is not None and configured.settings.paused):
        where = "" if config.paused or configured is None else f" ({configured.settings.where})"
        raise UsageError(
            "paused-by-config",
            f"{table or 'the service'} is paused by `paused: true` in the config{where}",
            "remove `paused: true` from the config: a running service applies the change within seconds",
        )
    return remove_file(pauses_path(config), _file_of(configured))


def read_pauses(config: Config) -> dict[str, Pause]:
    """The pauses by file: by topic, or ALL. Raises SetupError if the lake can't be read."""
    folder = pauses_path(config)
    try:
        files, path = fs.FileSystem.from_uri(plain(folder))
        pauses = {}
        for info in files.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            if info.base_name.endswith(_ENDING):
                with files.open_input_stream(info.path) as stream:
                    name = info.base_name.removesuffix(_ENDING)
                    pauses[name] = replace(_parse_saved(stream.read()), of_all=name == ALL)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(folder, error) from error
    return pauses


def _parse_saved(text: bytes) -> Pause:
    """The pause in a file. A file with invalid content still pauses."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return _pause_of(document)


def _pause_of(document: Any) -> Pause:
    if not isinstance(document, dict):
        return Pause()
    since = document.get("since")
    return Pause(since if isinstance(since, int | float) else None, str(document.get("reason") or ""))


def _named(config: Config, table: str | None) -> ConfiguredTable | None:
    return None if table is None else find_table(table, list_tables(config, KafkaClient(config.kafka_properties())))


def _file_of(table: ConfiguredTable | None) -> str:
    return f"{ALL if table is None else table.topic}{_ENDING}"


class Pauses:
    """The pauses by file as the service last read them."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._session = session
        self._folder = pauses_path(config)
        self._found: dict[str, Pause] = {}
        self.poll = RegularRead(self.read, _EVERY, "the list of pauses")

    def read(self) -> None:
        """Reads the files now. Raises errors of the storage."""
        found = names_in(self._session, self._folder, had_files=bool(self._found))
        names = [name for name in found if name.endswith(_ENDING)]
        notes = {name: JsonFile(self._session, f"{self._folder}/{name}") for name in names}
        self._found = {name.removesuffix(_ENDING): _pause_of(file.read()) for name, file in notes.items()}

    def of(self, topic: str) -> str | None:
        """Why the table of the topic is paused; None if it is not."""
        pause = self._found.get(ALL) or self._found.get(topic)
        return None if pause is None else str(pause)
