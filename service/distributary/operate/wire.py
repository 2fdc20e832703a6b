"""Records for a first look, as JsonConverter would have written them, whatever they are written as."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from typing import Any

from fastavro import parse_schema, schemaless_reader

from distributary.consume.peek import Record
from distributary.consume.tail import Headers
from distributary.decode.avro_schema import AvroSchema
from distributary.decode.framing import Side, address
from distributary.operate.registry import Registry


def as_json(record: Record, registry: Registry | None) -> Record:
    """The record as JsonConverter would have written it, with its schema; as it is where there is no registry.

    Raises what Registry.schema raises.
    """
    if registry is None:
        return record
    key, value = (json_of(data, record.headers, side, registry) for side, data in _sides(record))
    return replace(record, key=key, value=value)


def json_of(data: bytes | None, headers: Headers, side: Side, registry: Registry | None) -> bytes | None:
    """The same of a key or a value. What is not Avro as it should be stays as it is."""
    read = None if data is None or registry is None else _read(data, headers, side, registry)
    if read is None:
        return data
    schema, value = read
    if value is None:
        return None
    payload = json.dumps(value, default=_base64, ensure_ascii=False)
    return f'{{"schema":{schema.connect},"payload":{payload}}}'.encode()


def _read(data: bytes, headers: Headers, side: Side, registry: Registry) -> tuple[AvroSchema, Any] | None:
    """The schema and the value of a key or a value; None where it names no schema that can be read, or is not what the
    schema says, to its last byte."""
    found = address(data, headers, side)
    if found is None or not (schema := registry.schema(found[0])).readable:
        return None
    body = io.BytesIO(found[1])
    try:
        value = schemaless_reader(body, parse_schema(schema.parsed), None)
    except Exception:  # whatever broken bytes make the reader raise
        return None
    return None if body.read(1) else (schema, value)


def _sides(record: Record) -> list[tuple[Side, bytes | None]]:
    return [("key", record.key), ("value", record.value)]


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()
