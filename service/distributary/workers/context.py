"""The parts of the service that the workers of all tables share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import OffsetRange, Offsets
from distributary.consume.source import RecordSource
from distributary.delta.index_cache import IndexCache
from distributary.ingest.ahead_thread import AheadThread
from distributary.ingest.index_folder import index_cache
from distributary.ingest.registry import Registry
from distributary.ingest.source_types import AnnouncedTypes
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine.coordinates import RecordCoordinates
from distributary.quarantine.set_aside import SetAside, quarantine_set_aside
from distributary.quarantine.table import Quarantine


@dataclass(frozen=True)
class WorkerContext:
    """The parts of the service that all tables share.

    - `options`: of Spark's source for Kafka.
    - `records`: reads the records of offset ranges, except those that are in `set_aside`.
    - `transactions`: set if there is a transaction topic.
    - `report_offsets`: called with a topic and the next offsets of its table after each commit.
    - `registry`: the schema registry; None if records are not Avro.
    - `announced_types`: the column types of a topic that the connector announces outside of its records, see
      source_types.py.
    - `pause_reason`: why an operator paused the table of a topic; None if nobody did.
    - `index_cache`: the key indexes of the tables' files.
    - `is_lake_there`: False if the service's own files beside the tables are gone, too, where a table is gone.
    - `ahead`: where one table at a time has its next batch decoded.
    """

    config: Config
    session: SparkSession
    kafka: KafkaClient
    options: Mapping[str, str]
    records: RecordSource
    quarantine: Quarantine
    recorder: Recorder
    stopping: threading.Event
    transactions: threading.Event = field(default_factory=threading.Event)
    report_offsets: Callable[[str, Offsets], None] = lambda _topic, _offsets: None
    registry: Registry | None = None
    announced_types: AnnouncedTypes = lambda _topic: {}
    pause_reason: Callable[[str], str | None] = lambda _topic: None
    set_aside: SetAside | None = None
    is_lake_there: Callable[[], bool] = lambda: True
    index_cache: Callable[[], IndexCache] = index_cache
    ahead: AheadThread = field(default_factory=AheadThread)

    def set_aside_in(self, batch: OffsetRange) -> Mapping[RecordCoordinates, str]:
        """The records of an offset range that an operator set aside, each with its reason."""
        return {} if self.set_aside is None else self.set_aside.within(batch)

    def quarantine_set_aside(
        self, reasons: Mapping[RecordCoordinates, str], table: str, redacted_columns: Collection[str]
    ) -> None:
        """See set_aside.quarantine_set_aside."""
        quarantine_set_aside(reasons, table, self.session, self.records, self.quarantine, redacted_columns)

    @property
    def status(self) -> ServiceStatus:
        """The status of all tables."""
        return self.recorder.status
