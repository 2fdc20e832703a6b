"""A BatchReader without Spark, Kafka and a lake: tests give it the records and the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, cast

import pyarrow as pa
import yaml
from tests.support.sample_change import KEY_WITH_SCHEMA

from distributary.config import Config, load
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded, Decoder
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.large_values import LargeValueStore
from distributary.ingest.registry import Registry
from distributary.ingest.topic_format import TopicFormat
from distributary.lake.table import LakeTable
from distributary.logs import get_logger
from distributary.progress.record import first_progress
from distributary.types.record_schema import RecordSchema

TOPIC = Topic("p.dbo.t", "id", (0,))
FORMAT = TopicFormat("sqlserver", ("id",), has_schema=True)
PROGRESS = first_progress(TOPIC.name, "id", "sqlserver", "upsert", ("id",)).next_commit(next={0: 1})


def records_of(values: Sequence[bytes | SampledRecord]) -> list[SampledRecord]:
    """Values as records of one key, and records as they are."""
    return [
        one if isinstance(one, SampledRecord) else SampledRecord(0, index, KEY_WITH_SCHEMA, one, (), 1)
        for index, one in enumerate(values)
    ]


class Lake:
    """A table with columns only."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.has = dict(columns)

    def exists(self) -> bool:
        return bool(self.has)

    def columns(self) -> dict[str, str]:
        return dict(self.has)

    def create(self, columns: Mapping[str, str]) -> None:
        self.has = dict(columns)

    @property
    def path(self) -> str:
        return "memory"

    def add_columns(self, columns: Mapping[str, str]) -> None:
        self.has |= columns

    def widen_columns(self, columns: Mapping[str, str]) -> None:
        self.has |= columns


class Raw:
    """Raw records that are decoded in this process."""

    def __init__(self, values: Sequence[bytes | SampledRecord]) -> None:
        self._table = raw_table(TOPIC.name, records_of(values))

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        assert store is None
        return decoder.decode(self._table, schema)

    def frame(self, offsets: pa.Table) -> Any:
        raise NotImplementedError


class Head:
    """A broker of these records. It gives up to 20 of each partition at once, as Kafka's client."""

    def __init__(self, values: Sequence[bytes | SampledRecord]) -> None:
        self._records = records_of(values)

    def head(self, topic: Topic, start: Mapping[int, int]) -> list[SampledRecord]:
        assert topic.name == TOPIC.name
        waiting = [[one for one in self._records if one.partition == p and one.offset >= at] for p, at in start.items()]
        return [one for records in waiting for one in records[:20]]


def config(folder: Path, *, rule: Mapping[str, Any] | None = None, **source: Any) -> Config:
    """A config of one table, with these settings of the source and of the table's `rule`."""
    path = folder / "config.yaml"
    document = {
        "version": 1,
        "kafka": {"bootstrap.servers": "localhost:9092"},
        "source": {"topic_prefix": "p", **source},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "tables": [{"match": "*.*", **(rule or {})}],
    }
    path.write_text(yaml.safe_dump(document))
    return load(path)


def reader_of(
    config: Config,
    lake: Lake,
    head: Sequence[bytes | SampledRecord] = (),
    registry: Registry | None = None,
    **more: Any,
) -> BatchReader:
    """A reader of that table; `head` has the records of its topic, `more` are further arguments of BatchReader."""
    settings = config.settings_for("dbo", "t")
    assert settings is not None
    broker, table = cast(KafkaClient, Head(head)), cast(LakeTable, lake)
    return BatchReader(broker, config.source, settings, table, get_logger("test"), Event(), registry, **more)
