"""What is read of Avro records must be what is read of the same records in JSON, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark.sql import SparkSession
from tests.spark.test_links import RAW
from tests.support.avro import AvroWriter
from tests.support.recorded import Scenario

from distributary.decode.avro import addresses, sliced_avro
from distributary.decode.avro_schema import translated
from distributary.decode.framing import SIDES

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
    read = sliced_avro(raw, schemas).select("offset", "fault", "k", "v").toArrow().to_pylist()
    assert len(read) == len(records)
    for row in read:
        record = records[row["offset"]]
        assert row["fault"] is None
        assert (row["k"] and json.loads(row["k"])) == payload(record.key)
        assert (row["v"] and json.loads(row["v"])) == payload(record.value)
