"""Batches of one table, from raw records to columns of the table, without Spark and without a lake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, cast

import pyarrow as pa
import pytest
import yaml
from confluent_kafka.schema_registry import Schema
from tests.support.decoding import rejections, with_schema
from tests.support.sample_change import KEY_WITH_SCHEMA, envelope_json, envelope_schema

from distributary.config import Config, load
from distributary.consume.fetch import raw_table
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.sample import Record
from distributary.decode.decoder import Decoded, Decoder
from distributary.errors import TableHalt, TransientError
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


class Lake:
    """A table that has columns and nothing else."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.has = dict(columns)

    def exists(self) -> bool:
        return bool(self.has)

    def columns(self) -> dict[str, str]:
        return dict(self.has)

    def add_columns(self, columns: Mapping[str, str]) -> None:
        self.has |= columns


class Mode:
    """What `mode: upsert` needs."""

    service_columns: Mapping[str, str] = {}
    reads_before = False


class Raw:
    """Raw records that are decoded here."""

    def __init__(self, values: Sequence[bytes], key: bytes = KEY_WITH_SCHEMA) -> None:
        self._table = raw_table(TOPIC.name, [Record(0, at, key, value, (), 1) for at, value in enumerate(values)])

    def decode(self, decoder: Decoder, schema: RecordSchema, store: LargeValueStore | None = None) -> Decoded:
        assert store is None
        return decoder.decode(self._table, schema)

    def frame(self, places: pa.Table) -> Any:
        raise NotImplementedError


class Head:
    """A broker that knows the first records of the topic alone."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._records = [Record(0, at, KEY_WITH_SCHEMA, value, (), 1) for at, value in enumerate(values)]

    def head(self, _topic: Topic, _start: Mapping[int, int]) -> list[Record]:
        return self._records


def config(folder: Path, **source: Any) -> Config:
    path = folder / "config.yaml"
    document = {
        "version": 1,
        "kafka": {"bootstrap.servers": "localhost:9092"},
        "source": {"topic_prefix": "p", **source},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "tables": [{"match": "*.*"}],
    }
    path.write_text(yaml.safe_dump(document))
    return load(path)


def reader_of(config: Config, lake: Lake, head: Sequence[bytes] = (), registry: Registry | None = None) -> BatchReader:
    settings = config.settings_for("dbo", "t")
    assert settings is not None
    broker, table = cast(KafkaClient, Head(head)), cast(LakeTable, lake)
    return BatchReader(broker, config.source, settings, table, get_logger("test"), Event(), registry)


def change(*columns: str) -> bytes:
    schema = envelope_schema({"id": {"type": "int64"}, **{name: {"type": "int32"} for name in columns}})
    return with_schema(schema, envelope_json('{"id":17}'))


def test_6_3_a_table_gets_no_more_columns_than_the_limit(tmp_path: Path) -> None:
    """Schemas that fit alone and not together: the first one's columns are added, and the records of others that would
    add more are rejected, of this batch and of the next."""
    lake = Lake({"id": "bigint"})
    reader = reader_of(config(tmp_path, limits={"columns": 10}), lake)
    reader._table.load(None)
    values = [change("a"), change(*(f"b{n}" for n in range(7))), change(*(f"c{n}" for n in range(7))), change("d")]
    read = reader.read_and_change_table(Raw(values), FORMAT, PROGRESS)
    assert read.altered
    assert list(lake.has) == ["id", "a", *(f"b{n}" for n in range(7)), "d"]
    assert rejections(read.decoded) == {2: "beyond-limits"}
    again = reader.read_and_change_table(Raw([change("a"), change("e"), change("b6", "d")]), FORMAT, PROGRESS)
    assert (again.altered, rejections(again.decoded)) == (False, {1: "beyond-limits"})
    assert again.decoded.events.num_rows == 2


@pytest.fixture
def avro(tmp_path: Path) -> Config:
    return config(tmp_path, format="avro", schema_registry={"url": "mock://reader"})


def test_6_3_a_schema_that_does_not_come_rejects_its_records_alone(avro: Config) -> None:
    now = [0.0]
    assert avro.source.schema_registry is not None
    registry = Registry(avro.source.schema_registry, lambda: now[0], patience=300)
    lake = Lake({"id": "bigint"})
    reader = reader_of(avro, lake, registry=registry)
    reader._table.load(None)
    raw = Raw([change(), b"\x00\x00\x00\x00\x63\x02", b"\x00\xff\xff\xff\xff\x02", change()])
    for now[0] in (0.0, 299.0):
        with pytest.raises(TransientError) as caught:
            reader.read_and_change_table(raw, FORMAT, PROGRESS)
        assert caught.value.code == "schema-unknown"
    now[0] = 300.0
    read = reader.read_and_change_table(raw, FORMAT, PROGRESS)
    assert rejections(read.decoded) == {1: "not-an-avro-schema", 2: "not-an-avro-schema"}
    assert read.decoded.events["offset"].to_pylist() == [0, 3]


def test_6_3_a_new_table_of_which_no_schema_is_known_halts_and_one_with_rows_does_not(avro: Config) -> None:
    assert avro.source.schema_registry is not None
    registry = Registry(avro.source.schema_registry, patience=0)
    registry.client.register_schema("s", Schema(json.dumps("string"), "AVRO"))
    unknown = b"\x00\x00\x00\x00\x63\x02"
    with pytest.raises(TableHalt) as caught:
        reader_of(avro, Lake({}), [unknown, unknown], registry).detect_format(TOPIC, {0: 0}, None)
    assert caught.value.code == "schema-unknown"
    found = reader_of(avro, Lake({"id": "bigint"}), [unknown], registry).detect_format(TOPIC, {0: 1}, PROGRESS)
    assert found is not None
