"""The config's limits of records, lowered and raised, where the driver decodes and where Spark's tasks do."""

from __future__ import annotations

import dataclasses
import json
import pickle
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from confluent_kafka.schema_registry import Schema
from pyspark.accumulators import Accumulator
from tests.support.changes import VARIABLE_SCALE
from tests.support.decoding import made_records, rejections, with_schema
from tests.support.random_share import thorough_but
from tests.support.sample_change import KEY_WITH_SCHEMA, envelope_json, envelope_schema

from distributary.config import load
from distributary.config.limits import Limits
from distributary.config.source import Source
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.avro.schema import NotAnAvroSchema
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.masks import NO_MASKS
from distributary.decode.options import DecodeOptions
from distributary.ingest.decode_options import decode_options
from distributary.ingest.decode_task import DecodeTask, UnionOfTexts, decoded_of
from distributary.ingest.registry import registry_of
from distributary.ingest.task_results import read_results
from distributary.ingest.topic_format import TopicFormat
from distributary.types.bounds import Bounds
from distributary.types.record_schema import RecordSchema

TABLE = RecordSchema({"c": "string", "d": "string"}, {"id": "bigint"})


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Source]:
    def write(limits: dict[str, int], **more: Any) -> Source:
        path = tmp_path / "config.yaml"
        document = {
            "version": 1,
            "kafka": {"bootstrap.servers": "localhost:9092"},
            "source": {"topic_prefix": "p", "limits": limits, **more},
            "target": {"path": str(tmp_path / "lake")},
            "checkpoint": str(tmp_path / "checkpoint"),
            "tables": [{"match": "*.*"}],
        }
        path.write_text(yaml.safe_dump(document))
        return load(path).source

    return write


def options(source: Source, tmp_path: Path) -> DecodeOptions:
    settings = load(tmp_path / "config.yaml").settings_for("dbo", "t")
    assert settings is not None
    return decode_options(
        source,
        settings,
        TopicFormat("sqlserver", ("id",), has_schema=True),
        ("id",),
        masks=NO_MASKS,
        reads_before=False,
    )


def in_driver(options: DecodeOptions, raw: pa.Table) -> Decoded:
    return Decoder(options).decode(raw, TABLE)


def in_task(options: DecodeOptions, raw: pa.Table, piece: int = 1_000) -> Decoded:
    """As a task of Spark decodes, which gets its options pickled and its records in pieces."""
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    task = DecodeTask(pickle.loads(pickle.dumps(options)), TABLE, findings)
    results = read_results(pa.Table.from_batches(list(task(iter(raw.combine_chunks().to_batches(piece))))))
    return decoded_of(results, findings.value, Decoder(options).decode(raw.slice(0, 0), TABLE))


def record(after: str, columns: dict[str, Any] | None = None) -> bytes:
    return with_schema(envelope_schema(columns or {"c": {"type": "string"}}), envelope_json(after))


def decimal(scale: int, size: int) -> bytes:
    digits = "f" + "/" * (size * 4 // 3)
    return record(f'{{"d":{{"scale":{scale},"value":"{digits[: size // 3 * 4]}"}}}}', {"d": VARIABLE_SCALE})


def nested(depth: int) -> bytes:
    kind: dict[str, Any] = {"type": "int32"}
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return record('{"c":null}', {"c": kind})


def wide(columns: int) -> bytes:
    return record('{"c":"x"}', {"c": {"type": "string"}, **{f"c{n}": {"type": "int32"} for n in range(columns - 1)}})


def schemas(count: int) -> list[bytes]:
    return [record('{"c":"x"}', {"c": {"type": "string"}, f"c{n}": {"type": "int32"}}) for n in range(count)]


CASES: dict[str, tuple[str, int, int, Sequence[bytes], str]] = {
    "record_bytes": ("record_bytes", 4_000, 6_000, [record(f'{{"c":"{"x" * 4_000}"}}')], "beyond-limits"),
    "decimal_bytes": ("decimal_bytes", 60, 300, [decimal(0, 150)], "bad-value"),
    "decimal_bytes raised": ("decimal_bytes", 61_440, 100_000, [decimal(0, 90_000)], "bad-value"),
    "decimal_scale": ("decimal_scale", 100, 500, [decimal(300, 3)], "bad-value"),
    "decimal_scale raised": ("decimal_scale", 20_000, 40_000, [decimal(30_000, 3)], "bad-value"),
    "text_bytes": ("text_bytes", 1_500, 4_000, [decimal(3_000, 3)], "beyond-limits"),
    "nesting": ("nesting", 10, 30, [nested(20)], "beyond-limits"),
    "nesting raised": ("nesting", 64, 128, [nested(120)], "beyond-limits"),
    "columns": ("columns", 40, 60, [wide(50)], "beyond-limits"),
    "columns raised": ("columns", 5_000, 8_000, [wide(6_000)], "beyond-limits"),
    "schemas": ("schemas", 4, 5, schemas(5), "beyond-limits"),
    "schemas raised": ("schemas", 200, 250, schemas(220), "beyond-limits"),
}


@pytest.mark.parametrize("decode", [in_driver, in_task])
@pytest.mark.parametrize("case", thorough_but(3, CASES))
def test_6_3_a_limit_of_the_config_holds(
    case: str,
    decode: Callable[[DecodeOptions, pa.Table], Decoded],
    source: Callable[..., Source],
    tmp_path: Path,
) -> None:
    name, low, high, values, reason = CASES[case]
    raw = made_records([(KEY_WITH_SCHEMA, value) for value in values])
    refused = rejections(decode(options(source({name: low}), tmp_path), raw))
    assert set(refused.values()) == {reason}
    assert decode(options(source({name: high}), tmp_path), raw).events.num_rows == len(values)


def test_6_3_without_a_word_the_decoders_own_limits_hold(source: Callable[..., Source], tmp_path: Path) -> None:
    assert options(source({}), tmp_path).bounds == Bounds()
    assert set(Limits.model_fields) == {one.name for one in dataclasses.fields(Bounds)}


@pytest.mark.parametrize(("columns", "is_read"), [(40, False), (60, True)])
def test_6_3_the_limits_hold_for_schemas_of_the_registry(
    columns: int, is_read: bool, source: Callable[..., Source]
) -> None:
    made = source({"columns": columns}, format="avro", schema_registry={"url": "mock://limits"})
    registry = registry_of(made)
    assert registry is not None
    fields = [{"name": f"c{n}", "type": "int"} for n in range(50)]
    text = json.dumps({"type": "record", "name": "Value", "fields": fields})
    address = registry.client.register_schema("p-value", Schema(text, "AVRO"))
    assert isinstance(registry.schema(str(address)), NotAnAvroSchema) is not is_read


def many_schemas(place: int) -> SampledRecord:
    columns = {"c": {"type": "string"}, f"c{place}": {"type": "int32"}}
    return SampledRecord(0, place, b'{"id":1}', record('{"c":"x"}', columns), (), 1)


def many_fields(place: int) -> SampledRecord:
    return SampledRecord(0, place, b'{"id":1}', envelope_json(f'{{"c":"x","c{place}":1}}').encode(), (), 1)


def many_fields_of_keys(place: int) -> SampledRecord:
    return SampledRecord(0, place, f'{{"id":1,"k{place}":1}}'.encode(), envelope_json('{"c":"x"}').encode(), (), 1)


def many_ids(place: int) -> SampledRecord:
    return SampledRecord(0, place, b'{"id":1}', struct.pack(">bIb", 0, 1 + place, 2), (), 1)


@pytest.mark.parametrize("make", [many_schemas, many_fields, many_fields_of_keys, many_ids])
@pytest.mark.parametrize("piece", [7, 60])
def test_6_3_the_schemas_of_a_batch_are_bounded_alike_in_the_driver_and_in_a_task(
    make: Callable[[int], SampledRecord], piece: int
) -> None:
    """A task decodes its records in pieces."""
    options = DecodeOptions("sqlserver", bounds=Bounds(schemas=20), avro={} if make is many_ids else None)
    raw = raw_table("t", [make(index) for index in range(30)] * 2)
    here = in_driver(options, raw)
    found = in_task(options, raw, piece)
    assert Counter(rejections(here).values())["beyond-limits"] == 10
    assert rejections(found) == rejections(here)
    assert {name for one in found.observed for name in one.names} == {n for one in here.observed for n in one.names}
    assert found.unknown_schemas == here.unknown_schemas


def test_6_3_what_tasks_report_of_a_schema_is_reported_once() -> None:
    """The driver keeps it; a schema may have thousands of columns, and its records may be in all pieces."""
    raw = raw_table("t", [many_schemas(index % 5) for index in range(100)])
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    list(DecodeTask(DecodeOptions("sqlserver"), TABLE, findings)(iter(raw.combine_chunks().to_batches(3))))
    reported = [one for text in findings.value for one in json.loads(text)["observed"]]
    assert len(reported) == len(set(reported)) == 5 + 1  # the keys have one, too
