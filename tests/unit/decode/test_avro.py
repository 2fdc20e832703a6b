"""Records in Avro: all that is decoded of them equals what is decoded of the same records in JSON, and what is wrong
with one rejects that one with its reason."""

from __future__ import annotations

import dataclasses
import json
import random
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from tests.support.changes import DAY, decimal
from tests.support.comparable import column_values
from tests.support.decoding import (
    SQLSERVER_SOURCE,
    decode_all,
    in_avro,
    options_of,
    raw_table,
    rejections,
    struct_rows,
    struct_schema,
    type_of_connect,
    values_of,
    with_schema,
)
from tests.support.hostile import mutated
from tests.support.learning import learn, unread_columns
from tests.support.recorded import Record, Scenario
from tests.support.sample_change import envelope_schema

from distributary.decode.avro.framing import find_address
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema, parse_avro_schema
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import added_by
from distributary.reasons import REASONS
from distributary.types.bounds import Bounds
from distributary.types.from_schema import type_of_schema
from distributary.types.record_schema import RecordSchema
from distributary.types.strict_json import Number

TYPES = ("all_types", "dflt", "nn", "special")
RECORDED: dict[str, Sequence[str]] = {
    "pg_types": TYPES,
    "pg_types_iso": TYPES,
    "pg_types_string": ("special",),
    "pg_schema_evolution": ("evo_late", "evo_pk", "evo_retype"),
    "pg_toast": ("toasty", "toasty2", "docs"),
    "maria_json_schema": ("all_types", "special", "dt_keys", "customers"),
    "pg_unwrap_rewrite": ("customers", "sensor"),
}
"""Those that show every type, the longest values, schemas that change, keys of all kinds, rows without an envelope."""
COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "int64"},
    "text": {"type": "string"},
    "price": decimal(12, 2),
    "rate": {"type": "double"},
    "some": {"type": "array", "items": {"type": "int32", "optional": True}},
    "flag": {"type": "boolean"},
    "odd": {"type": "int16"},
    "rest": {"type": "bytes"},
}
ROW = {
    "id": 1,
    "text": "text",
    "price": "BOI=",
    "rate": 0.5,
    "some": [1, None, 3],
    "flag": True,
    "odd": 5,
    "rest": "AA==",
}
CODES = {reason.code for reason in REASONS}


def records_of(rows: Sequence[Mapping[str, Any] | None], columns: Mapping[str, Any] = COLUMNS) -> list[Record]:
    """Creates of those rows, by JSON with schema; None is a delete of the first."""
    schema = envelope_schema(dict(columns))
    for part in schema["fields"][2]["fields"]:
        part["type"] = {"ts_ms": "int64", "event_serial_no": "int64"}.get(part["field"], "string")
    records = []
    for index, row in enumerate(rows):
        payload = {"before": rows[0] if row is None else None, "after": row, "source": SQLSERVER_SOURCE}
        value = with_schema(schema, json.dumps({**payload, "op": "d" if row is None else "c"}))
        number = (row or ROW)["id"]
        key = with_schema(struct_schema({"id": COLUMNS["id"]}), json.dumps({"id": number}))
        records.append(Record("t", 0, index, 1_700_000_000_000, key, value, ()))
    return records


_REJECTION = ["partition", "offset", "reason", "message"]


def _without_sizes(decoded: Decoded) -> Decoded:
    return dataclasses.replace(decoded, events=decoded.events.drop("size"))


def assert_same(one: Decoded, other: Decoded) -> None:
    """The same events but for their sizes in bytes, and the same rejections. NaN is NaN here, which it is not for
    Arrow."""
    one, other = _without_sizes(one), _without_sizes(other)
    assert one.rejected.select(_REJECTION).equals(other.rejected.select(_REJECTION))
    assert one.events.schema == other.events.schema
    for name in one.events.column_names:
        left, right = one.events[name], other.events[name]
        if left.equals(right):
            continue
        assert pa.types.is_struct(left.type), name
        for index, field in enumerate(left.type):
            pair = [pa.chunked_array([part.field(index) for part in column.chunks]) for column in (left, right)]
            assert pair[0].equals(pair[1]) or repr(column_values(pair[0])) == repr(column_values(pair[1])), field


@cache
def scenario(name: str) -> Scenario:
    return Scenario(name)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.thorough
def test_recorded_records_in_avro_are_decoded_as_those_in_json(name: str) -> None:
    compared = 0
    for table in (scenario(name).tables[table] for table in RECORDED[name]):
        records = scenario(name).topic(table.schema, table.name)
        written, schemas = in_avro(records)
        options = options_of(scenario(name), table, before=True, transactions=True)
        json_decoded, json_schema = decode_all(records, options)
        decoded, schema = decode_all(written, dataclasses.replace(options, avro=schemas))
        assert schema == json_schema
        assert_same(decoded, json_decoded)
        compared += len(records)
    assert compared


@pytest.mark.parametrize(
    "more",
    [
        {"masks": Masks({"text": "hash", "price": "hash", "rate": "redact", "some": "hash"}, "salt")},
        {"exclude": frozenset(("price", "some")), "renames": {"text": "words", "id": "number"}},
        {"key_from_row": ("id",)},
        {"types": TypeSources(configured={"id": "string", "odd": "double", "text": "variant", "rest": "string"})},
        {"types": TypeSources(configured={"price": "bigint", "rate": "string", "some": "array<string>"})},
        {"types": TypeSources(configured={"text": "decimal(10,2)", "flag": "string", "odd": "bigint"})},
        {"types": TypeSources(configured={"text": "date", "odd": "boolean"})},
    ],
    ids=("masks", "left out and renamed", "key of the row", "as text", "as numbers", "of text", "of nothing"),
)
def test_what_the_config_asks_for_is_the_same_as_for_json(more: dict[str, Any]) -> None:
    rows: list[Any] = [ROW, dict.fromkeys(COLUMNS) | {"id": 2}, {**ROW, "id": 3, "text": "12.5", "rate": 1e30}, None]
    records = records_of(rows)
    written, schemas = in_avro(records)
    options = DecodeOptions("sqlserver", before=True, **more)
    expected, schema = decode_all(records, options)
    assert_same(Decoder(dataclasses.replace(options, avro=schemas)).decode(raw_table(written), schema), expected)
    assert expected.events.num_rows


def test_fields_of_the_source_block_may_have_any_plain_type() -> None:
    columns = {"id": COLUMNS["id"]}
    [record] = records_of([{"id": 1}], columns)
    text = (record.value or b"").decode().replace('"type": "int64", "field": "ts_ms"', '"type": "int64"')
    for kind, value in (("int32", "7"), ("boolean", "true"), ("double", "7.0"), ("float", "7.5"), ("string", '"7"')):
        document = json.loads(text)
        for part in document["schema"]["fields"][2]["fields"]:
            if part["field"] in ("event_serial_no", "snapshot"):
                part["type"] = kind
        source = document["payload"]["source"]
        source["event_serial_no"] = source["snapshot"] = json.loads(value)
        sent = dataclasses.replace(record, value=json.dumps(document).encode())
        written, schemas = in_avro([sent])
        expected, schema = decode_all([sent], DecodeOptions("sqlserver"))
        decoded = Decoder(DecodeOptions("sqlserver", avro=schemas)).decode(raw_table(written), schema)
        assert_same(decoded, expected)
        # A serial number is a whole one; as a text it may come all the same.
        reasons = [] if kind in ("int32", "string") else ["bad-position"]
        assert decoded.rejected["reason"].to_pylist() == reasons


def test_rows_without_an_envelope() -> None:
    columns = {**COLUMNS, "__op": {"type": "string"}, "__source_lsn": {"type": "int64"}}
    value_schema, key_schema = struct_schema(columns), struct_schema({"id": COLUMNS["id"]})
    records = []
    for index, op in enumerate(("c", "u", "d", None)):
        row = json.dumps({**ROW, "__op": op, "__source_lsn": index})
        value = None if op is None else with_schema(value_schema, row)
        records.append(Record("t", 0, index, 1_000, with_schema(key_schema, '{"id":1}'), value, ()))
    written, schemas = in_avro(records)
    options = DecodeOptions(BY_OFFSET, unwrapped=added_by({}, "postgresql"), before=True)
    expected, schema = decode_all(records, options)
    decoded, avro_schema = decode_all(written, dataclasses.replace(options, avro=schemas))
    assert schema == avro_schema
    assert list(schema.row) == list(COLUMNS)
    assert_same(decoded, expected)
    assert decoded.events["operation"].to_pylist() == ["c", "u", "d", "d"]


def test_vectors_and_maps_whose_keys_are_no_texts() -> None:
    """The converter writes such maps as arrays of entries: as those of JSON, they are maps."""
    floats = {"type": "array", "items": {"type": "float"}, "name": "io.debezium.data.FloatVector"}
    sparse = struct_schema(
        {
            "dimensions": {"type": "int16"},
            "vector": {"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}},
        },
        name="io.debezium.data.SparseDoubleVector",
    )
    by_day = {"type": "map", "keys": DAY, "values": {"type": "string", "optional": True}, "name": "a.b.Days"}
    names = {"type": "map", "keys": {"type": "string", "optional": True}, "values": {"type": "int64"}}
    columns = {"id": {"type": "int64"}, "floats": floats, "sparse": sparse, "by_day": by_day}
    rows: list[dict[str, Any]] = [
        {"id": 1, "floats": [0.5, -1.0], "sparse": {"dimensions": 9, "vector": [[2, 0.25], [9, -4.0]]}},
        {"id": 2, "floats": [], "sparse": {"dimensions": 1, "vector": []}, "by_day": [[20_000, "x"], [-1, None]]},
        {"id": 3, "floats": None, "sparse": None, "by_day": []},
    ]
    records = records_of(rows, columns)
    options = DecodeOptions("sqlserver")
    decoded, schema = decode_all(records, options)
    assert not decoded.rejected.num_rows
    assert schema.row["sparse"] == "struct<dimensions:smallint,vector:map<smallint,double>>"
    assert schema.row["by_day"] == "map<date,string>"
    found = struct_rows(decoded.events["row"])
    assert [row and row["sparse"] for row in found] == [
        {"dimensions": 9, "vector": {2: 0.25, 9: -4.0}},
        {"dimensions": 1, "vector": {}},
        None,
    ]
    assert [row and row["by_day"] for row in found] == [None, {20_000: "x", -1: None}, {}]
    written, schemas = in_avro(records)
    in_avro_decoded, avro_schema = decode_all(written, dataclasses.replace(options, avro=schemas))
    assert avro_schema == schema
    assert_same(in_avro_decoded, decoded)
    # Entries with keys of text that may be null: a list in Avro, an object in JSON.
    entry = {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro"}
    entry["fields"] = [{"name": "key", "type": ["null", "string"]}, {"name": "value", "type": "long"}]  # type: ignore[assignment]
    result = parse_avro_schema(json.dumps({"type": "array", "items": entry})).connect
    kind = type_of_schema(result, Bounds())
    assert kind.spark == type_of_connect(names).spark == "map<string,bigint>"
    assert values_of(kind, [kind.restate([{"key": "a", "value": Number("1")}])]) == [{"a": 1}]


def test_null_in_avro_is_a_tombstone_or_no_key() -> None:
    [record] = records_of([ROW])
    [written], schemas = in_avro([record])
    for number, (address, schema) in enumerate(list(schemas.items()), 77):
        schemas[str(number)] = dataclasses.replace(schema, value_tag=2, null_tag=0)
        assert address == str(number - 76)
    null = {side: struct.pack(">bIb", 0, number, 0) for side, number in (("key", 77), ("value", 78))}
    records = [
        written,
        dataclasses.replace(written, value=null["value"], offset=1),
        dataclasses.replace(written, key=null["key"], offset=2),
    ]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver", avro=schemas))
    assert decoded.events["operation"].to_pylist() == ["c", "x"]
    assert rejections(decoded) == {2: "no-key"}


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        (b"\x00\x00\x00\x01\x02\x06", {}, ("258", 5)),
        (b"\x00\xff\xff\xff\xff\x06", {}, ("4294967295", 5)),
        (b"\x00\x00\x00\x01\x02", {}, None),
        (b"\x01\x00\x00\x01\x02\x06", {}, None),
        (b"{}", {}, None),
        (b"", {}, None),
        (b"\x06", {"__value_schema_id": b"\x00\x00\x00\x00\x07"}, ("7", 0)),
        (b"\x06", {"__value_schema_id": b"\x01" + bytes(range(16))}, ("00010203-0405-0607-0809-0a0b0c0d0e0f", 0)),
        (b"\x00\x02\x02\x02\x02\x01", {"apicurio.value.contentId": b"\0" * 7 + b"\2"}, ("2", 0)),
        (b"\x00\x02\x02\x02\xc8\x01", {"apicurio.value.globalId": b"\x00" * 7 + b"\x02"}, None),
        (b"\x06", {"__key_schema_id": b"\x00\x00\x00\x00\x07"}, None),
        (b"\x00\x00\x00\x00\x05\x06", {"__value_schema_id": b"7"}, ("5", 5)),
        (b"\x00\x00\x00\x00\x05\x06", {"__value_schema_id": None}, ("5", 5)),
    ],
)
def test_where_a_value_names_its_schema(
    data: bytes, headers: dict[str, bytes | None], expected: tuple[str, int] | None
) -> None:
    assert find_address(data, headers, "value") == expected


def test_schemas_may_be_named_in_headers() -> None:
    written, schemas = in_avro(records_of([{**ROW, "id": number} for number in range(6)]))
    names = {"key": "apicurio.key.contentId", "value": "apicurio.value.contentId"}
    moved = []
    for index, record in enumerate(written):
        assert record.key is not None
        assert record.value is not None
        numbers = {"key": record.key[1:5], "value": record.value[1:5]}
        if index % 3 == 1:
            named = {f"__{side}_schema_id": b"\0" + number for side, number in numbers.items()}
        elif index % 3 == 2:
            named = {names[side]: b"\0" * 4 + number for side, number in numbers.items()}
        else:
            moved.append(record)
            continue
        # The first header of a name that has a value counts.
        nothing, other = dict.fromkeys(named, None), dict.fromkeys(named, b"\0\0\0\0\x63")
        headers = (*nothing.items(), *named.items(), *other.items())
        moved.append(dataclasses.replace(record, key=record.key[5:], value=record.value[5:], headers=headers))
    raw = raw_table(moved)
    decoder = Decoder(DecodeOptions("sqlserver", avro=schemas))
    decoded = decoder.decode(raw, learn(decoder, raw))
    assert [row and row["id"] for row in struct_rows(decoded.events["row"])] == list(range(6))


@pytest.mark.parametrize("of", ["values", "keys", "every other record"])
@pytest.mark.parametrize("unwrapped", [False, True])
def test_1_1_json_beside_avro_is_read_as_json(of: str, unwrapped: bool) -> None:
    """Converters of keys and of values are set apart; a converter may be changed in the middle of a topic."""
    rows = [{**ROW, "id": number} for number in range(6)]
    plain = records_of(rows)
    more: dict[str, Any] = {}
    if unwrapped:
        kinds = {**COLUMNS, "__commit_lsn": {"type": "string"}, "__change_lsn": {"type": "string"}}
        place = {"__commit_lsn": SQLSERVER_SOURCE["commit_lsn"], "__change_lsn": None}
        values = [with_schema(struct_schema(kinds), json.dumps({**row, **place})) for row in rows]
        plain = [dataclasses.replace(record, value=value) for record, value in zip(plain, values, strict=True)]
        more = {"unwrapped": added_by({})}
    written, schemas = in_avro(plain)
    mixed = []
    for index, (in_json, as_avro) in enumerate(zip(plain, written, strict=True)):
        takes_value = of == "values" or (of != "keys" and index % 2 == 0)
        takes_key = of == "keys" or (of != "values" and index % 2 == 1)
        mixed.append(
            dataclasses.replace(
                as_avro,
                key=in_json.key if takes_key else as_avro.key,
                value=in_json.value if takes_value else as_avro.value,
            )
        )
    mixed.append(dataclasses.replace(written[0], offset=9, value=b'{"a":"\xff"}'))
    mixed.append(dataclasses.replace(written[0], offset=10, key=b"{"))
    decoded, schema = decode_all(mixed, DecodeOptions("sqlserver", avro=schemas, **more))
    expected, json_schema = decode_all(plain, DecodeOptions("sqlserver", **more))
    assert schema == json_schema
    assert rejections(decoded) == {9: "not-utf8", 10: "bad-key"}
    assert_same(dataclasses.replace(decoded, rejected=expected.rejected), expected)


@pytest.mark.parametrize("side", ["key", "value"])
def test_ids_of_eight_bytes_are_read_where_the_config_says_which_they_are(side: str) -> None:
    rows = [{**ROW, "id": number} for number in range(4)]
    written, schemas = in_avro(records_of(rows))
    long = []
    for index, record in enumerate(written):
        data = getattr(record, side)
        both = data if index == 3 else data[:1] + bytes(4) + data[1:]
        long.append(dataclasses.replace(record, **{side: both}))
    found, _ = decode_all(long, DecodeOptions("sqlserver", avro=schemas, long_ids=True))
    assert_same(found, decode_all(written, DecodeOptions("sqlserver", avro=schemas))[0])
    refused, _ = decode_all(long, DecodeOptions("sqlserver", avro=schemas))
    assert rejections(refused) == dict.fromkeys(range(3), "no-schema-id")
    assert f"the {side} has an id of eight bytes" in str(refused.rejected["message"].to_pylist())
    assert refused.unknown_schemas == frozenset()  # nobody asks the registry for the schema 0


def test_what_is_wrong_with_bytes_has_a_reason_and_neighbours_are_taken() -> None:
    [good], schemas = in_avro(records_of([ROW]))
    assert good.key is not None
    assert good.value is not None
    value, key = good.value, good.key
    front, body = value[:5], value[5:]
    known: dict[str, AvroSchema | NotAnAvroSchema] = dict(schemas)
    known["9"] = NotAnAvroSchema("a union of several types has no column type")
    huge = b"\x02\x02" + b"\x80\x88\xde\xf4\x0b" * 2
    no_row = parse_avro_schema(json.dumps({"type": "record", "name": "Envelope", "fields": []}))
    known["10"] = no_row
    broken: dict[str, list[tuple[bytes, bytes]]] = {
        "no-schema-id": [
            *((key, data) for data in (b"", b"\0\0", b"plain text", b"[1]", b"\1\0\0\0\2" + body, front)),
            *((data, value) for data in (b"", b"no")),
        ],
        "not-avro": [
            *(
                (key, front + data)
                for data in (body[:-1], body + b"\0", body[:3], b"\xff" * 20, body * 2, huge, b"\x04" + body[1:])
            ),
            *((data, value) for data in (key + b"\0", key[:5] + b"\xff")),
            (key, front + body.replace(b"text", b"\xff\xfft") + b"\0"),
        ],
        "not-utf8": [(key, front + body.replace(b"\x08text", b"\x08t\xffxt"))],
        "not-an-avro-schema": [(key, struct.pack(">bIb", 0, 9, 2)), (b"\0\0\0\0\x09\0", value)],
        "bad-schema": [(key, struct.pack(">bIb", 0, 10, 2))],
    }
    pairs, expected = [(key, value)], {}
    for reason, several in broken.items():
        for pair in several:
            expected[len(pairs)] = reason
            pairs.append(pair)
    pairs.append((key, value.replace(b"\x08text", b"\x06\xef\xbf\xbd")))
    records = [Record("t", 0, index, 0, *pair, ()) for index, pair in enumerate(pairs)]
    schema = RecordSchema({"id": "bigint", "text": "string"}, {"id": "bigint"})
    decoded = Decoder(DecodeOptions("sqlserver", avro=known)).decode(raw_table(records), schema)
    assert rejections(decoded) == expected
    assert struct_rows(decoded.events["row"]) == [{"id": 1, "text": "text"}, {"id": 1, "text": "\ufffd"}]
    assert "a union of several types" in str(decoded.rejected["message"].to_pylist())


def test_6_3_the_schemas_of_a_batch_are_bounded_whether_they_are_known_or_not() -> None:
    """Five bytes name a schema, and each is asked for."""
    [good], schemas = in_avro(records_of([ROW]))
    assert good.value is not None
    others = [(good.key, struct.pack(">bIb", 0, number, 2)) for number in range(100, 130)]
    pairs = [(good.key, good.value), *others, (good.key, good.value)]
    raw = raw_table([Record("t", 0, index, 0, *pair, ()) for index, pair in enumerate(pairs)])
    schema = RecordSchema({"id": "bigint"}, {"id": "bigint"})
    known: dict[str, AvroSchema | NotAnAvroSchema] = dict(schemas)
    decoder = Decoder(DecodeOptions("sqlserver", avro=known, bounds=Bounds(schemas=20)))
    found, asked = decoder.decode(raw, schema), 0
    while found.unknown_schemas:
        asked += len(found.unknown_schemas)
        known.update({address: NotAnAvroSchema("the registry does not know it") for address in found.unknown_schemas})
        found = decoder.decode(raw, schema)
    assert asked == 20
    assert Counter(rejections(found).values()) == {"not-an-avro-schema": 20, "beyond-limits": 10}
    assert found.events["offset"].to_pylist() == [0, 31]


def test_a_schema_that_is_not_known_is_named_and_may_be_known_later() -> None:
    written, schemas = in_avro(records_of([ROW, {**ROW, "id": 2}]))
    raw, known = raw_table(written), {"1": schemas["1"]}
    decoder = Decoder(DecodeOptions("sqlserver", avro=known))
    decoded = decoder.decode(raw, RecordSchema({"id": "bigint"}, {"id": "bigint"}))
    assert decoded.unknown_schemas == {"2"}
    assert rejections(decoded) == {0: "not-an-avro-schema", 1: "not-an-avro-schema"}
    known["2"] = schemas["2"]
    decoded = decoder.decode(raw, RecordSchema({"id": "bigint"}, {"id": "bigint"}))
    assert not decoded.unknown_schemas
    assert struct_rows(decoded.events["row"]) == [{"id": 1}, {"id": 2}]
    assert "text" in unread_columns(decoded, {"id": "bigint"})


def test_faulty_bytes_raise_nothing_and_touch_no_other_record() -> None:
    chance = random.Random(11)
    [good], schemas = in_avro(records_of([ROW]))
    key, value = good.key or b"", good.value or b""
    records = [good]
    for index in range(1, 1_500):
        pair = (key, mutated(value, chance)) if index % 3 else (mutated(key, chance), value)
        records.append(Record("t", 0, index, index, *pair, ((chance.choice(("__key_schema_id", "x")), key[:5]),)))
    options = DecodeOptions("sqlserver", avro=schemas, before=True, transactions=True)
    decoder = Decoder(options)
    decoded = decoder.decode(raw_table(records), learn(decoder, raw_table([good])))
    assert set(rejections(decoded).values()) <= CODES
    assert decoded.events.num_rows + decoded.rejected.num_rows == len(records)
    assert decoded.events.num_rows > 50
    assert struct_rows(decoded.events["row"])[0] is not None
