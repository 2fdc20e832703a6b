"""What is read of Avro records must be what is read of the same records in JSON, whatever they hold."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark.sql import SparkSession
from tests.spark.test_links import RAW
from tests.support.avro import AvroWriter, NoAvroName
from tests.support.recorded import Record, Scenario

from distributary.decode.avro import addresses, sliced_avro
from distributary.decode.avro_schema import translated
from distributary.decode.framing import SIDES

SCENARIOS = ("pg_types", "pg_schema_evolution", "pg_toast", "pg_extra", "maria_json_schema", "pg_unwrap_rewrite")


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


def written(records: Iterable[Record], writer: AvroWriter) -> Iterator[tuple[Record, bytes | None, bytes | None]]:
    for record in records:
        with suppress(NoAvroName):
            yield record, writer.written(record.key, "key"), writer.written(record.value, "value")


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_read_of_avro_is_what_is_read_of_json(session: SparkSession, name: str) -> None:
    scenario = Scenario(name)
    registry = SchemaRegistryClient.new_client({"url": f"mock://{name}"})
    writer = AvroWriter(registry)
    tables = {f"{scenario.prefix}.{t.topic_schema}.{t.topic_name}" for t in scenario.tables.values()}
    compared = 0
    for _topic, group in itertools.groupby(scenario.records, key=lambda record: record.topic):
        records = list(written((r for r in group if r.topic in tables), writer))
        if not records:
            continue
        rows: list[dict[str, Any]] = [
            {"key": key, "value": value, "partition": 0, "offset": number, "timestamp": 0, "headers": []}
            for number, (_, key, value) in enumerate(records)
        ]
        raw = session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))
        named = addresses(raw)
        schemas = {
            side: {a: translated(str(registry.get_schema(int(a)).schema_str)) for a in named[side]} for side in SIDES
        }
        read = sliced_avro(raw, schemas).select("offset", "fault", "k", "v").toArrow().to_pylist()
        assert len(read) == len(records)
        for row in read:
            record = records[row["offset"]][0]
            assert row["fault"] is None
            assert (row["k"] and json.loads(row["k"])) == payload(record.key)
            assert (row["v"] and json.loads(row["v"])) == payload(record.value)
            compared += 1
    assert compared > 100
