"""Recorded and generated records for the decoder, and its results as comparable values."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from confluent_kafka.schema_registry import Schema
from tests.support.avro import AvroWriter
from tests.support.comparable import Value, column_values
from tests.support.learning import learn_and_decode
from tests.support.postgres_columns import columns_of
from tests.support.recorded import Record, Scenario, TruthTable

from distributary.decode.avro.schema import AvroSchema, parse_avro_schema
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.position import BadPosition, position_of
from distributary.decode.source_block import BY_OFFSET, Source, restate_source
from distributary.decode.unwrapped import added_by
from distributary.types.base import BadValue, ColumnType, WrongKind
from distributary.types.bounds import Bounds
from distributary.types.connect_schema import ConnectType, parse_schema
from distributary.types.conversions import type_over
from distributary.types.from_name import type_of_name
from distributary.types.from_schema import type_of_schema
from distributary.types.nested import optional
from distributary.types.record_schema import RecordSchema
from distributary.types.strict_json import Json, parse_object

RAW = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)


def raw_table(records: Iterable[Record]) -> pa.Table:
    """Records as they come from Kafka."""
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=RAW)


def made_records(pairs: Iterable[tuple[bytes | None, bytes | None]]) -> pa.Table:
    """Records of keys and values alone."""
    return raw_table(Record("t", 0, index, 1_700_000_000_000, *pair, ()) for index, pair in enumerate(pairs))


SQLSERVER_SOURCE = {
    "connector": "sqlserver",
    "ts_ms": 1_700_000_000_000,
    "snapshot": "false",
    "commit_lsn": "00000027:00000758:0003",
    "change_lsn": "00000027:00000758:0001",
    "event_serial_no": 2,
}


def plain_change(offset: int, after: object, key: object = None, **more: object) -> Record:
    """A change without a schema, of SQL Server unless `more` (fields of the envelope) has another source. Without a key
    it is the row's `id`, or one equal to the offset."""
    key = key or {"id": after["id"] if isinstance(after, dict) and "id" in after else offset}
    envelope = {"op": "c", "after": after, "source": SQLSERVER_SOURCE, **more}
    return Record("t", 0, offset, 0, compact(key).encode(), compact(envelope).encode(), ())


def positions(connector: str, sources: Iterable[Mapping[str, Any]], op: str = "u") -> list[str | None]:
    """The positions, of epoch 0, of changes with these source blocks; None for one that has none, or a malformed one.

    Each block is read by the quick reader and by the careful one.
    """
    return ["000:" + found if (found := _position(connector, source, op)) is not None else None for source in sources]


def _position(connector: str, source: Mapping[str, Any], op: str) -> str | None:
    block = compact(source)
    ways = [restate_source(parse_object(block.encode(), Bounds()))]
    with suppress(msgspec.DecodeError):
        ways.append(msgspec.json.decode(block, type=Source))
    [found] = {_position_in(connector, way, op) for way in ways}
    return found


def _position_in(connector: str, source: Source, op: str) -> str | None:
    try:
        return position_of(connector)(source, op)
    except BadPosition:
        return None


def options_of(scenario: Scenario, table: TruthTable, **more: Any) -> DecodeOptions:
    """The options of a recorded table: types are configured where its records have no schema."""
    settings = {name: value for name, value in scenario.connector.items() if isinstance(value, str)}
    connector = "mariadb" if scenario.name.startswith("maria") else "postgresql"
    is_plain = settings["value.converter.schemas.enable"] != "true"
    types = TypeSources(configured=columns_of(table) if is_plain else {}, properties=settings)
    if settings.get("transforms"):
        more = {"unwrapped": added_by(settings, connector), **more}
        connector = BY_OFFSET
    return DecodeOptions(connector, types=types, keyless=not table.key, **more)


def decode_all(records: Sequence[Record], options: DecodeOptions) -> tuple[Decoded, RecordSchema]:
    """The records with all columns that they have."""
    raw = raw_table(records)
    decoder = Decoder(options)
    return learn_and_decode(decoder, raw)


def type_named(name: str, **properties: str) -> ColumnType:
    """The type of that name in `columns`; the connector's settings with `_` for each dot."""
    return type_of_name(name, {setting.replace("_", "."): value for setting, value in properties.items()}, Bounds())


def type_of_connect(sent: Mapping[str, Any]) -> ColumnType:
    """The type of values with that Connect schema."""
    return type_of_schema(connect_type(sent), Bounds())


def type_converted(sent: Mapping[str, Any], wanted: str, **properties: str) -> ColumnType:
    """The same where `columns` names another type; settings as for type_named."""
    settings = {setting.replace("_", "."): value for setting, value in properties.items()}
    return type_over(connect_type(sent), wanted, settings, Bounds())


def connect_type(sent: Mapping[str, Any]) -> ConnectType:
    """A Connect schema, parsed."""
    return parse_schema(json.dumps(sent).encode(), Bounds())


def base64_number(unscaled: int) -> str:
    """A decimal's unscaled number in Base64, as JSON."""
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return json.dumps(base64.b64encode(data).decode())


def variable_scale(text: str) -> str:
    """A VariableScaleDecimal of that number, as JSON."""
    number = Decimal(text).as_tuple()
    assert isinstance(number.exponent, int)
    return f'{{"scale": {-number.exponent}, "value": {base64_number(int(Decimal((number.sign, number.digits, 0))))}}}'


class LocalRegistry:
    """A schema registry in memory: numbers from 1 on."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def register_schema(self, subject_name: str, schema: Schema) -> int:  # noqa: ARG002 - as a registry's client has it
        return self._numbers.setdefault(str(schema.schema_str), len(self._numbers) + 1)

    @property
    def schemas(self) -> dict[str, AvroSchema]:
        """All that were registered, by their addresses."""
        return {str(number): parse_avro_schema(text) for text, number in self._numbers.items()}


def in_avro(records: Iterable[Record]) -> tuple[list[Record], dict[str, AvroSchema]]:
    """The records with schemas as Avro, and the schemas by their addresses. Raises NoAvroName."""
    registry = LocalRegistry()
    writer = AvroWriter(registry)
    written = [
        dataclasses.replace(record, key=writer.written(record.key, "key"), value=writer.written(record.value, "value"))
        for record in records
    ]
    return written, registry.schemas


def read_values(kind: ColumnType, sent: Sequence[str]) -> list[Value]:
    """JSON values (as text) read as the decoder reads a column, as comparable values; bad ones come out as "bad"."""
    wire: list[Any] = []
    bad = set()
    decoder = msgspec.json.Decoder(optional(kind.wire))
    for index, text in enumerate(sent):
        found, is_bad = _wire_value(kind, decoder, text)
        wire.append(found)
        if is_bad:
            bad.add(index)
    return ["bad" if index in bad else value for index, value in enumerate(values_of(kind, wire))]


def values_of(kind: ColumnType, wire: Sequence[Any]) -> list[Value]:
    """Wire values as comparable ones; bad ones come out as "bad"."""
    array, wrong = kind.convert(wire)
    values = column_values(pa.chunked_array([array]))
    return ["bad" if index in wrong else value for index, value in enumerate(values)]


def read_json(text: str) -> Json:
    """A JSON value as the careful reader returns it."""
    return parse_object(f'{{"v":{text}}}'.encode(), Bounds())["v"]


def _wire_value(kind: ColumnType, decoder: msgspec.json.Decoder[Any], text: str) -> tuple[Any, bool]:
    """A JSON value as a wire value, and whether it can't be one."""
    try:
        return decoder.decode(text), False
    except msgspec.DecodeError:
        value = read_json(text)
    try:
        return kind.restate(value), False
    except (BadValue, WrongKind):
        return None, True


def struct_rows(column: pa.ChunkedArray) -> list[dict[str, Value] | None]:
    """The structs of a column as comparable values."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    names = [field.name for field in array.type]
    if not names:
        return [{} if known else None for known in array.is_valid().to_pylist()]
    columns = [column_values(pa.chunked_array([part])) for part in array.flatten()]
    known = array.is_valid().to_pylist()
    return [
        dict(zip(names, values, strict=True)) if there else None
        for there, values in zip(known, zip(*columns, strict=True), strict=True)
    ]


def events_by_place(decoded: Decoded, *structs: str) -> dict[tuple[int, int], dict[str, Any]]:
    """Events by partition and offset; `structs` are columns to have as comparable values."""
    plain = decoded.events.select(
        [name for name in decoded.events.column_names if not pa.types.is_struct(decoded.events.schema.field(name).type)]
    ).to_pylist()
    columns = {name: struct_rows(decoded.events[name]) for name in structs}
    found = {}
    for index, event in enumerate(plain):
        for name, values in columns.items():
            event[name] = values[index]
        found[event["partition"], event["offset"]] = event
    return found


def rejections(decoded: Decoded) -> dict[int, str]:
    """The reasons of rejected records, by offset."""
    return dict(zip(decoded.rejected["offset"].to_pylist(), decoded.rejected["reason"].to_pylist(), strict=True))


def compact(value: object) -> str:
    """JSON as JsonConverter writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def with_schema(schema: object, payload: str) -> bytes:
    """A payload with its schema beside it, as JsonConverter writes it."""
    return f'{{"schema":{compact(schema)},"payload":{payload}}}'.encode()


def struct_schema(fields: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A Connect struct of those fields."""
    named = [{"optional": True, **kind, "field": name} for name, kind in fields.items()]
    return {"type": "struct", "fields": named, "optional": True, **more}
