"""Sampled records in JsonConverter's form, also if they are Avro."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from distributary.consume.sample import SampledRecord
from distributary.consume.tail import Headers
from distributary.decode.avro.compiler import Read, compile_reader
from distributary.decode.avro.framing import RecordPart, find_address, is_json
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema
from distributary.decode.avro.targets import AS_JSON
from distributary.decode.avro.values import UNREAD
from distributary.decode.headers import first_headers
from distributary.errors import TableHalt
from distributary.ingest.registry import Registry
from distributary.types.connect_schema import connect_json
from distributary.types.strict_json import json_text


def as_json(record: SampledRecord, registry: Registry | None) -> SampledRecord:
    """The record as JsonConverter would have written it, with its schema; unchanged without a registry.

    Raises what Registry.schema raises.
    """
    if registry is None:
        return record
    key = json_of(record.key, record.headers, "key", registry)
    return replace(record, key=key, value=json_of(record.value, record.headers, "value", registry))


def json_of(data: bytes | None, headers: Headers, side: RecordPart, registry: Registry | None) -> bytes | None:
    """As as_json, of a key or a value. Bytes that are not valid Avro stay unchanged."""
    if data is None or registry is None:
        return data
    address_and_begin = find_address(data, first_headers(headers), side, long_ids=registry.long_ids)
    if address_and_begin is None or isinstance(schema := registry.schema(address_and_begin[0]), NotAnAvroSchema):
        return data
    try:
        payload = _reader_of(schema)(data, address_and_begin[1])
    except UNREAD:
        return data
    return None if payload is None else f'{{"schema":{_schema_text(schema)},"payload":{json_text(payload)}}}'.encode()


def check_schemas(records: Sequence[SampledRecord], registry: Registry) -> None:
    """Raises TableHalt where the values of records, as as_json() gives them, all name schemas that the registry does
    not know: then it is another registry, or has lost them."""
    unknown: set[str | None] = set()
    for record in records:
        if record.value:
            address = (
                None
                if is_json(record.value)
                else find_address(record.value, first_headers(record.headers), "value", long_ids=registry.long_ids)
            )
            unknown.add(address[0] if address is not None and address[0] in registry.unknown else None)
    if unknown and None not in unknown:
        raise TableHalt(
            "schema-unknown",
            f"the schema registry does not know the schema {', '.join(sorted(filter(None, unknown)))}, which all of the"
            " topic's first records name",
            "check that it is the registry that the connector uses; restore the schema under the same id there, and"
            " start the service again",
        )


@lru_cache(maxsize=256)
def _reader_of(schema: AvroSchema) -> Read:
    return compile_reader(schema, AS_JSON)


@lru_cache(maxsize=256)
def _schema_text(schema: AvroSchema) -> str:
    return json.dumps(connect_json(schema.connect), separators=(",", ":"), ensure_ascii=False)
