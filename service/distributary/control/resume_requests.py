"""What operators ask of tables by `distributary resume`: small files beside the tables, which the service takes up.

The command needs no Spark and no service that runs: a request waits until there is one.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.config import Config
from distributary.consume.broker import Broker
from distributary.control.halts import read_halts
from distributary.errors import UsageError
from distributary.halt_actions import ASKED_BY, ResumeAction
from distributary.ingest.tables import listed, named, own_path
from distributary.storage.json_file import JsonFile, names_in
from distributary.storage.request_files import leave_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING = ".json"
_BETWEEN = "@"  # which no topic's name has


@dataclass(frozen=True)
class Request:
    """What is asked for the table of a topic; `id` tells it from another one that asks for the same later."""

    topic: str
    accept: ResumeAction
    id: str = ""

    @property
    def file(self) -> str:
        """The name of its file: two requests of one table do not replace each other unless they ask for the same."""
        return f"{self.topic}{_BETWEEN}{self.accept.value}{_ENDING}"


@dataclass(frozen=True)
class Asked:
    """A request that was left for the service: the table's name, and the halt that it ends (its `code`, `message` and
    `fix`), None where the service noted none."""

    table: str
    halt: dict[str, str] | None


def resuming(config: Config, name: str, accept: ResumeAction) -> Asked:
    """Leaves a request for the table `name` (schema.table).

    Raises UsageError where there is no such table, or where the table's halt asks for something else; what Kafka
    raises; and SetupError where the lake can't be read or written.
    """
    halts = read_halts(config)
    gone = [topic for topic, halt in halts.items() if halt["table"] == name]
    topic = gone[0] if len(gone) == 1 else named(name, listed(config, Broker(config.kafka_properties()))).topic
    halt = halts.get(topic)
    code = halt["code"] if halt else None
    needed = ASKED_BY.get(code or "")
    if halt is not None and accept is ResumeAction.NOTHING and needed is not None:
        raise UsageError("more-is-asked", f"{name} is halted [{code}]: {halt['message']}", halt["fix"])
    if accept in (ResumeAction.LOSS, ResumeAction.RESET) and accept is not needed:
        raise UsageError(
            "not-asked-for",
            f"{name} is {'not halted' if halt is None else f'halted [{code}]'}: it does not ask for"
            f" --accept-{accept.value}",
            "`distributary status` shows what each halted table asks for",
        )
    ask(config, Request(topic, accept))
    return Asked(name, None if halt is None else {key: halt[key] for key in ("code", "message", "fix")})


def ask(config: Config, request: Request) -> None:
    """Leaves the request for the service. Raises SetupError where the lake can't be written."""
    leave_file(requests_path(config), request.file, {"id": uuid.uuid4().hex})


def requests_path(config: Config) -> str:
    """Where the requests of this pipeline lie: several may fill one lake."""
    return own_path(config, "requests", config.source.topic_prefix)


class Requests:
    """The service's side."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._session = session
        self._folder = requests_path(config)

    def waiting(self) -> list[Request]:
        """All that were asked and not taken away yet: of one table in the order of ResumeAction, so that what fills it
        anew comes before what is applied to it. What can't be understood is no request."""
        order = list(ResumeAction)
        found = [self._read(name) for name in names_in(self._session, self._folder) if name.endswith(_ENDING)]
        return sorted(filter(None, found), key=lambda one: (one.topic, order.index(one.accept)))

    def waits(self, request: Request) -> bool:
        """Whether the request is there still, and not another one that asks for the same."""
        return self._read(request.file) == request

    def done(self, request: Request) -> None:
        """Takes the request away, and no other one that came meanwhile."""
        if self.waits(request):
            self._note(request.file).remove()

    def _read(self, name: str) -> Request | None:
        topic, _, word = name.removesuffix(_ENDING).partition(_BETWEEN)
        told = self._note(name).read()
        if word not in {accept.value for accept in ResumeAction} or not isinstance(told, dict):
            return None
        return Request(topic, ResumeAction(word), str(told.get("id")))

    def _note(self, name: str) -> JsonFile:
        return JsonFile(self._session, f"{self._folder}/{name}")
