"""Batches of one table, from raw records to columns of the table, without Spark and without a lake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema
from tests.support.batch_reader import FORMAT, PROGRESS, TOPIC, Lake, Raw, config, reader_of
from tests.support.decoding import rejections, with_schema
from tests.support.sample_change import envelope_json, envelope_schema

from distributary.config import Config
from distributary.errors import TableHalt, TransientError
from distributary.ingest.registry import Registry


def change(*columns: str) -> bytes:
    schema = envelope_schema({"id": {"type": "int64"}, **{name: {"type": "int32"} for name in columns}})
    return with_schema(schema, envelope_json('{"id":17}'))


def test_6_3_a_table_gets_no_more_columns_than_the_limit(tmp_path: Path) -> None:
    """Schemas that fit alone and not together: the first one's columns are added, and the records of others that would
    add more are rejected, of this batch and of the next."""
    lake = Lake({"id": "bigint"})
    reader = reader_of(config(tmp_path, limits={"columns": 10}), lake)
    reader.detect_format(TOPIC, {0: 1}, PROGRESS)
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
    registry = Registry(avro.source.schema_registry, lambda: now[0], unknown_id_timeout=300)
    lake = Lake({"id": "bigint"})
    reader = reader_of(avro, lake, registry=registry)
    reader.detect_format(TOPIC, {0: 1}, PROGRESS)
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
    registry = Registry(avro.source.schema_registry, unknown_id_timeout=0)
    registry.client.register_schema("s", Schema(json.dumps("string"), "AVRO"))
    unknown = b"\x00\x00\x00\x00\x63\x02"
    with pytest.raises(TableHalt) as caught:
        reader_of(avro, Lake({}), [unknown, unknown], registry).detect_format(TOPIC, {0: 0}, None)
    assert caught.value.code == "schema-unknown"
    found = reader_of(avro, Lake({"id": "bigint"}), [unknown], registry).detect_format(TOPIC, {0: 1}, PROGRESS)
    assert found is not None
