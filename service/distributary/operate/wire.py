"""How records are written, JSON or Avro: what has to be done before they can be looked at and decoded."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from fastavro import parse_schema, schemaless_reader
from pyspark.sql import DataFrame

from distributary.consume.peek import Record
from distributary.consume.tail import Headers
from distributary.decode.alike import alike, with_known
from distributary.decode.avro import addresses, sliced_avro
from distributary.decode.avro_schema import AvroSchema
from distributary.decode.discover import Seen, combined, told_by_schemas
from distributary.decode.framing import SIDES, Side, address
from distributary.decode.shapes import Shape
from distributary.decode.slices import sliced
from distributary.decode.unwrapped import Unwrapped
from distributary.operate.registry import Registry


class Wire(Protocol):
    """What one table's records are written as."""

    @property
    def known(self) -> object:
        """What `sliced` makes use of beside what it is given; another value where that is another one."""

    def as_json(self, records: Sequence[Record]) -> Sequence[Record]:
        """Records for a first look, as JsonConverter would have written them."""

    def told(self, records: Sequence[Record]) -> list[Seen] | None:
        """The signatures of first records, where all of them tell theirs without Spark, else None. The table's columns
        follow from them before Spark has read one: of a record in which it will see a fault nothing may be told."""

    def sliced(self, raw: DataFrame, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:
        """Kafka's records cut into schema and payload, see slices.sliced."""

    def alike(self, raw: DataFrame, shape: Shape, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:
        """The same of records that most likely have that shape, see alike.alike."""

    def learn(self, raw: DataFrame) -> bool:
        """Sees to it that `sliced` knows all schemas that the records name; whether it did not before."""


class JsonWire:
    """JSON, with and without schema: every record tells all by itself."""

    known: object = None

    def as_json(self, records: Sequence[Record]) -> Sequence[Record]:
        return records

    def told(self, records: Sequence[Record]) -> list[Seen] | None:
        return told_by_schemas((r.key, r.value, r.timestamp or 0) for r in records)

    def sliced(self, raw: DataFrame, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:
        return sliced(raw, unwrapped, before=before)

    def alike(self, raw: DataFrame, shape: Shape, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:
        return alike(raw, shape, unwrapped, before=before)

    def learn(self, raw: DataFrame) -> bool:  # noqa: ARG002 - nothing to learn from
        return False


class AvroWire:
    """Avro with schemas in a registry. It knows the schemas of the records that it learnt from last.

    All that asks the registry raises TransientError and TableHalt (see Registry.schema).
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._schemas: dict[Side, dict[str, AvroSchema]] = {side: {} for side in SIDES}

    @property
    def known(self) -> object:
        return {side: set(schemas) for side, schemas in self._schemas.items()}

    def as_json(self, records: Sequence[Record]) -> Sequence[Record]:
        """The records' schemas are learnt on the way."""
        named: dict[Side, set[str]] = {side: set() for side in SIDES}
        for record in records:
            for side, data in _sides(record):
                if data is not None and (found := address(data, record.headers, side)) is not None:
                    named[side].add(found[0])
        self._learn(named)
        return [as_json(record, self._registry) for record in records]

    def told(self, records: Sequence[Record]) -> list[Seen] | None:
        found: list[tuple[str | None, str | None, float]] = []
        for record in records:
            schemas: dict[Side, str | None] = dict.fromkeys(SIDES)
            for side, data in _sides(record):
                if data is None:
                    continue
                read = _read(data, record.headers, side, self._registry)
                if read is None:
                    return None
                schema, value = read
                schemas[side] = None if value is None else schema.connect
            found.append((schemas["key"], schemas["value"], (record.timestamp or 0) / 1000))
        return combined(found)

    def sliced(self, raw: DataFrame, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:  # noqa: ARG002
        """A schema tells the whole row, also where there is only the one before the change."""
        return sliced_avro(raw, self._schemas, unwrapped)

    def alike(self, raw: DataFrame, shape: Shape, unwrapped: Unwrapped | None, *, before: bool) -> DataFrame:
        return with_known(self.sliced(raw, unwrapped, before=before), shape)

    def learn(self, raw: DataFrame) -> bool:
        return self._learn(addresses(raw))

    def _learn(self, named: Mapping[Side, Iterable[str]]) -> bool:
        new = any(set(named[side]) - set(self._schemas[side]) for side in SIDES)
        # What these records do not name any more is left out: each schema makes the plan larger.
        self._schemas = {side: {a: self._registry.schema(a) for a in sorted(named[side])} for side in SIDES}
        return new


def wire_of(registry: Registry | None) -> Wire:
    """Avro where there is a registry, else JSON."""
    return JsonWire() if registry is None else AvroWire(registry)


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
