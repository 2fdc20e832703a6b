"""Requests of `distributary resume`: small files beside the tables, which the service reads.

The command needs neither Spark nor a running service: a request waits until a service runs.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.control.halts import read_halts
from distributary.errors import UsageError
from distributary.halt_actions import NEEDED_ACTIONS, ResumeAction, with_names
from distributary.ingest.tables import find_table, list_tables, own_path
from distributary.storage.json_file import JsonFile, names_in
from distributary.storage.lake_files import note_at
from distributary.storage.request_files import leave_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING = ".json"
_BETWEEN = "@"  # which no topic's name has


@dataclass(frozen=True)
class Request:
    """A resume action for the table of a topic; `id` distinguishes it from a later request for the same action."""

    topic: str
    action: ResumeAction
    id: str = ""

    @property
    def file(self) -> str:
        """The name of its file: only requests for the same table and action replace each other."""
        return f"{self.topic}{_BETWEEN}{self.action.value}{_ENDING}"


@dataclass(frozen=True)
class WrittenRequest:
    """A request that was written: the table's name, and the `code`, `message` and `fix` of the halt that it ends (None
    if the table is not known to be halted), and the request itself."""

    table: str
    halt: dict[str, str] | None
    request: Request


def write_resume_request(config: Config, name: str, action: ResumeAction) -> WrittenRequest:
    """Writes a request for the table `name` (schema.table).

    Raises UsageError if there is no such table or its halt needs another action; errors of Kafka; SetupError if the
    lake can't be read or written.
    """
    halts = read_halts(config)
    halted = [topic for topic, halt in halts.items() if halt["table"] == name]
    topic = (
        halted[0]
        if len(halted) == 1
        else find_table(name, list_tables(config, KafkaClient(config.kafka_properties()))).topic
    )
    halt = halts.get(topic)
    code = halt["code"] if halt else None
    needed = NEEDED_ACTIONS.get(code or "")
    if halt is not None and action is ResumeAction.RETRY and needed is not None:
        fix = with_names(halt["fix"], table=name)
        raise UsageError("more-is-asked", f"{name} is halted [{code}]: {halt['message']}", fix)
    if action in (ResumeAction.LOSS, ResumeAction.RESET) and action is not needed:
        raise UsageError(
            "not-asked-for",
            f"{name} is {'not halted' if halt is None else f'halted [{code}]'}: it does not need"
            f" --accept-{action.value}",
            "`distributary status` shows what each halted table needs",
        )
    request = write_request(config, Request(topic, action))
    shown = None if halt is None else {key: halt[key] for key in ("code", "message", "fix")}
    return WrittenRequest(name, shown, request)


def write_request(config: Config, request: Request) -> Request:
    """Writes the request, and returns it with its id. Raises SetupError if the lake can't be written."""
    written = replace(request, id=uuid.uuid4().hex)
    leave_file(requests_path(config), written.file, {"id": written.id})
    return written


def is_open(config: Config, request: Request) -> bool:
    """Whether this very request is still open, read without Spark. Raises SetupError if the lake can't be read."""
    content = note_at(f"{requests_path(config)}/{request.file}")
    return content is not None and request.id in content.decode(errors="replace")


def requests_path(config: Config) -> str:
    """The directory of this pipeline's requests. Several pipelines may fill one lake."""
    return own_path(config, "requests", config.source.topic_prefix)


class Requests:
    """The requests as the service reads and removes them."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._session = session
        self._folder = requests_path(config)

    def waiting(self) -> list[Request]:
        """All open requests, those of one table in the order of ResumeAction: a rebuild comes before actions on the
        rebuilt rows. Invalid files are ignored."""
        order = list(ResumeAction)
        requests = [self._read(name) for name in names_in(self._session, self._folder) if name.endswith(_ENDING)]
        return sorted(filter(None, requests), key=lambda one: (one.topic, order.index(one.action)))

    def waits(self, request: Request) -> bool:
        """Whether this very request is still open."""
        return self._read(request.file) == request

    def done(self, request: Request) -> None:
        """Removes the request, unless a newer one has replaced it."""
        if self.waits(request):
            self._json_file(request.file).remove()

    def _read(self, name: str) -> Request | None:
        topic, _, word = name.removesuffix(_ENDING).partition(_BETWEEN)
        content = self._json_file(name).read()
        if word not in {action.value for action in ResumeAction} or not isinstance(content, dict):
            return None
        return Request(topic, ResumeAction(word), str(content.get("id")))

    def _json_file(self, name: str) -> JsonFile:
        return JsonFile(self._session, f"{self._folder}/{name}")
