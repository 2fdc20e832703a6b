"""What the workers of all tables share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from distributary.config import Config
from distributary.consume.broker import Broker
from distributary.consume.offsets import Offsets
from distributary.consume.source import RecordSource
from distributary.delta.index_cache import IndexCache
from distributary.ingest.index_folder import index_cache
from distributary.ingest.registry import Registry
from distributary.ingest.source_types import Told
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine.set_aside import SetAside
from distributary.quarantine.table import Quarantine


@dataclass(frozen=True)
class WorkerContext:
    """What all tables of the service share. `transactions` is set where there is a transaction topic; `taken` is told a
    table's topic and next offsets when they stand in its commits; `registry` is there where records are Avro; `told`
    gives the types of a topic's columns that the connector tells beside them (see source_types.py); `paused` says why
    the table of a topic is paused, by a command; `set_aside` knows the records that `records` leaves out; `options` are
    those of Spark's source for Kafka, `records` has the records of offset ranges; `index_cache` has the key indexes."""

    config: Config
    session: SparkSession
    broker: Broker
    options: Mapping[str, str]
    records: RecordSource
    quarantine: Quarantine
    recorder: Recorder
    stopping: threading.Event
    transactions: threading.Event = field(default_factory=threading.Event)
    taken: Callable[[str, Offsets], None] = lambda _topic, _offsets: None
    registry: Registry | None = None
    told: Told = lambda _topic: {}
    paused: Callable[[str], str | None] = lambda _topic: None
    set_aside: SetAside | None = None
    index_cache: Callable[[], IndexCache] = index_cache

    @property
    def status(self) -> ServiceStatus:
        """Where each table's state is shown."""
        return self.recorder.status
