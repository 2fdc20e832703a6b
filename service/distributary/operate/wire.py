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

from distributary.consume.broker import Record
from distributary.consume.tail import Headers
from distributary.decode.alike import alike, with_known
from distributary.decode.avro import addresses, sliced_avro
from distributary.decode.avro_schema import AvroSchema
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
    """The same of a key or a value. What can't be read stays as it is: it is no JSON either."""
    found = None if data is None else address(data, headers, side)
    if registry is None or found is None:
        return data
    schema = registry.schema(found[0])
    if not schema.readable:
        return data
    try:
        value = schemaless_reader(io.BytesIO(found[1]), parse_schema(schema.parsed), None)
    except Exception:  # whatever broken bytes make the reader raise
        return data
    if value is None:
        return None
    payload = json.dumps(value, default=_base64, ensure_ascii=False)
    return f'{{"schema":{schema.connect},"payload":{payload}}}'.encode()


def _sides(record: Record) -> list[tuple[Side, bytes | None]]:
    return [("key", record.key), ("value", record.value)]


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()
