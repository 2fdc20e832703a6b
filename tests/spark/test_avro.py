"""What is read of Avro records must be what is read of the same records in JSON, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from distributary.decode.avro import addresses, sliced_avro
from distributary.decode.discover import signatures
from pyspark.sql import SparkSession
from tests.spark.test_links import RAW
from tests.support.avro import AvroWriter
from tests.support.recorded import Scenario

from distributary.consume.peek import Record
from distributary.decode.avro_schema import AvroSchema, translated
from distributary.decode.framing import SIDES
from distributary.operate.registry import Registry
from distributary.operate.wire import AvroWire

TABLES = {
    "pg_types": ("all_types", "dflt", "nn", "special"),
    "pg_schema_evolution": ("evo_retype",),
    "pg_toast": ("toasty", "toasty2"),
    "maria_json_schema": ("dt_keys",),
    "pg_unwrap_rewrite": ("customers",),
}
"""Those that show every type, the longest values, schemas that change, keys of all kinds, rows without an envelope."""


def told(schema: Mapping[str, Any], value: Any) -> Any:
    """A JSON value without the fields of structs that are null, which no reader tells from missing ones."""
    if value is None:
        return None
    if schema["type"] == "struct":
        fields = {f["field"]: told(f, value.get(f["field"])) for f in schema["fields"]}
        return {name: item for name, item in fields.items() if item is not None}
    if schema["type"] == "array":
        return [told(schema["items"], item) for item in value]
    if schema["type"] == "map":
        return {key: told(schema["values"], item) for key, item in value.items()}
    return str(value) if schema["type"] in ("float", "double") and value != value else value


def payload(data: bytes | None) -> Any:
    if data is None:
        return None
    record = json.loads(data)
    return told(record["schema"], record["payload"])


@dataclass(frozen=True)
class Known:
    """What the service asks a registry for."""

    client: SchemaRegistryClient

    def schema(self, address: str) -> AvroSchema:
        return translated(str(self.client.get_schema(int(address)).schema_str))


@pytest.mark.parametrize(("name", "table"), [(name, table) for name, tables in TABLES.items() for table in tables])
def test_what_is_read_of_avro_is_what_is_read_of_json(session: SparkSession, name: str, table: str) -> None:
    scenario = Scenario(name)
    registry = SchemaRegistryClient.new_client({"url": f"mock://{name}.{table}"})
    writer = AvroWriter(registry)
    records = scenario.topic(scenario.tables[table].schema, table)
    rows: list[dict[str, Any]] = [
        {
            "key": writer.written(record.key, "key"),
            "value": writer.written(record.value, "value"),
            "partition": 0,
            "offset": number,
            "timestamp": 0,
            "headers": [],
        }
        for number, record in enumerate(records)
    ]
    raw = session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))
    named = addresses(raw)
    schemas = {
        side: {a: translated(str(registry.get_schema(int(a)).schema_str)) for a in named[side]} for side in SIDES
    }
    cut = sliced_avro(raw, schemas)
    first = [Record(0, row["offset"], row["key"], row["value"], (), row["offset"]) for row in rows]
    told_first = AvroWire(cast("Registry", Known(registry))).told(first)
    assert told_first is not None
    assert {seen.signature for seen in told_first} == {seen.signature for seen in signatures(cut)}
    read = cut.select("offset", "fault", "k", "v").toArrow().to_pylist()
    assert len(read) == len(records)
    for row in read:
        record = records[row["offset"]]
        assert row["fault"] is None
        assert (row["k"] and json.loads(row["k"])) == payload(record.key)
        assert (row["v"] and json.loads(row["v"])) == payload(record.value)


def test_what_is_no_avro_tells_nothing_at_first() -> None:
    """Else a table's columns would come from records that are then put into quarantine."""
    scenario = Scenario("pg_json_schema")
    (record, *_) = scenario.topic("public", "customers")
    registry = SchemaRegistryClient.new_client({"url": "mock://first"})
    writer, wire = AvroWriter(registry), AvroWire(cast("Registry", Known(registry)))
    key, value = writer.written(record.key, "key"), writer.written(record.value, "value")
    assert key is not None
    assert value is not None

    def told_of(key_2: bytes | None, value_2: bytes | None) -> int | None:
        found = wire.told([Record(0, 0, key, value), Record(0, 1, key_2, value_2)])
        return None if found is None else len(found)

    assert told_of(key, value) == told_of(key, None) == told_of(None, value) == 1
    for bad in (record.value, value + b"more", value[:-1], b"\0\0\0\0\1", b""):
        assert told_of(key, bad) is None
    assert told_of(record.key, value) is None
