"""Limits of a record: beyond a limit it is rejected before it is decoded."""

from __future__ import annotations

import base64
import gc
import json
import resource
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.support.changes import VARIABLE_SCALE
from tests.support.decoding import made_records, rejections, struct_rows, struct_schema, with_schema
from tests.support.learning import unread_columns
from tests.support.sample_change import (
    CHANGE_WITH_SCHEMA,
    COLUMNS,
    KEY_WITH_SCHEMA,
    VALUES,
    envelope_json,
    envelope_schema,
)

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.types.bounds import Bounds
from distributary.types.record_schema import RecordSchema


def decoded(values: Sequence[bytes], columns: dict[str, str], bounds: Bounds | None = None) -> Decoded:
    """The values, behind a good one, within two seconds and 1.5 GB."""
    before = time.process_time()
    found = Decoder(DecodeOptions("sqlserver", bounds=bounds or Bounds())).decode(
        made_records([(KEY_WITH_SCHEMA, value) for value in values]), RecordSchema(columns, {"id": "bigint"})
    )
    assert time.process_time() - before < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3_000_000
    return found


@pytest.mark.parametrize("scale", [2_000_000_000, -2_000_000_000, 10**40, 20_001, -20_001])
def test_a_scale_that_is_beyond_all_reason_costs_nothing(scale: int) -> None:
    schema = envelope_schema({"d": VARIABLE_SCALE, "ds": {"type": "array", "items": VARIABLE_SCALE}})
    one = f'{{"scale":{scale},"value":"AQ=="}}'
    values = [
        with_schema(schema, envelope_json(after))
        for after in (f'{{"d":{one}}}', f'{{"ds":[null,{one}]}}', '{"d":{"scale":20000,"value":"AQ=="}}')
    ]
    found = decoded(values, {"d": "string", "ds": "array<string>"})
    assert rejections(found) == {0: "bad-value", 1: "bad-value"}
    assert struct_rows(found.events["row"])[0] == {"d": f"0.{'0' * 19_999}1", "ds": None}


@pytest.mark.parametrize("scale", ["2000000000", "-2000000000", "9" * 40, "x", "1.5", ""])
def test_a_decimals_schema_with_such_a_scale_is_no_schema(scale: str) -> None:
    kind = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": scale, "connect.decimal.precision": "60"},
    }
    found = decoded(
        [CHANGE_WITH_SCHEMA, with_schema(envelope_schema({"d": kind}), envelope_json('{"d":"AQ=="}'))], {"d": "string"}
    )
    assert rejections(found) == ({1: "bad-schema"} if scale else {})


def test_bytes_of_decimals_are_bounded() -> None:
    wide = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "0", "connect.decimal.precision": "60"},
    }
    sent = [base64.b64encode(b"\x7f" * size).decode() for size in (61_440, 61_441, 5_000_000)]
    found = decoded(
        [with_schema(envelope_schema({"d": wide}), envelope_json(f'{{"d":"{text}"}}')) for text in sent],
        {"d": "string"},
    )
    assert rejections(found) == {1: "bad-value", 2: "bad-value"}
    assert len(struct_rows(found.events["row"])[0]["d"]) == 147_962  # type: ignore[index]


def test_many_small_decimals_that_become_much_text_are_taken_in_parts() -> None:
    schema = envelope_schema({"ds": {"type": "array", "items": VARIABLE_SCALE}})
    one = '{"scale":20000,"value":"AQ=="}'
    few, many = (with_schema(schema, envelope_json(f'{{"ds":[{",".join([one] * count)}]}}')) for count in (20, 2000))
    found = decoded([*[few] * 50, many, few], {"ds": "array<string>"}, Bounds(text_bytes=2**22))
    assert rejections(found) == {50: "beyond-limits"}
    assert found.events.num_rows == 51


def test_the_size_of_a_record_is_bounded() -> None:
    values = [CHANGE_WITH_SCHEMA, CHANGE_WITH_SCHEMA.replace(b'"abc"', b'"' + b"x" * 5_000 + b'"'), CHANGE_WITH_SCHEMA]
    found = decoded(values, {"text": "string"}, Bounds(record_bytes=5_000))
    assert rejections(found) == {1: "beyond-limits"}
    keys = made_records([(b'"' + b"x" * 5_000 + b'"', CHANGE_WITH_SCHEMA)])
    assert rejections(
        Decoder(DecodeOptions("sqlserver", bounds=Bounds(record_bytes=5_000))).decode(keys, RecordSchema())
    ) == {0: "beyond-limits"}


@pytest.mark.parametrize(
    ("make_key", "reason"),
    [
        (lambda: b'"' + b"x" * 10_000_000 + b'"', "bad-key"),
        (lambda: b"[" * 5_000_000 + b"]" * 5_000_000, "beyond-limits"),
        (lambda: b'{"id":' * 1_500_000 + b"1" + b"}" * 1_500_000, "beyond-limits"),
        (lambda: b'{"id":1,' + b",".join(b'"k%d":1' % index for index in range(900_000)) + b"}", "beyond-limits"),
        (
            lambda: (
                KEY_WITH_SCHEMA[: KEY_WITH_SCHEMA.index(b'"payload"')] + b'"payload":{"id":' + b"9" * 10_000_000 + b"}}"
            ),
            "bad-key",
        ),
    ],
    ids=["text", "arrays", "objects", "fields", "digits"],
)
@pytest.mark.thorough
def test_6_3_a_key_of_ten_megabytes_rejects_only_its_record(make_key: Callable[[], bytes], reason: str) -> None:
    key = make_key()
    before = time.process_time()
    records = made_records([(key, CHANGE_WITH_SCHEMA), (KEY_WITH_SCHEMA, CHANGE_WITH_SCHEMA)])
    found = Decoder(DecodeOptions("sqlserver")).decode(records, RecordSchema({"id": "bigint"}, {"id": "bigint"}))
    assert rejections(found) == {0: reason}
    assert time.process_time() - before < 5


def nested_type(depth: int) -> str:
    return '{"type":"array","items":' * depth + '{"type":"string"}' + "}" * depth


@pytest.mark.parametrize("depth", [61, 65, 1_000, 100_000])
def test_the_nesting_of_a_schema_is_bounded(depth: int) -> None:
    text = json.dumps(envelope_schema({"id": COLUMNS["id"]}), separators=(",", ":"))
    field = f',{{"field":"deep",{nested_type(depth)[1:]}'
    at = text.index("]", text.index('"field":"id"', text.index('"field":"before"')))
    value = f'{{"schema":{text[:at]}{field}{text[at:]},"payload":{envelope_json("{}")}}}'.encode()
    reason = {61: None, 65: "beyond-limits", 1_000: "beyond-limits", 100_000: None}[depth]
    found = rejections(decoded([CHANGE_WITH_SCHEMA, value], {"id": "bigint"}))
    assert found == ({1: reason} if reason else {}) or (depth == 100_000 and set(found) == {1})


@pytest.mark.thorough
def test_the_columns_of_a_table_are_bounded() -> None:
    sizes = {4_999: None, 5_001: "beyond-limits", 100_000: "beyond-limits"}
    values = [
        with_schema(
            envelope_schema({f"c{index}": {"type": "int32"} for index in range(size)}), envelope_json('{"c0":1}')
        )
        for size in sizes
    ]
    found = rejections(decoded(values, {"c0": "int"}))
    assert found == {index: reason for index, reason in enumerate(sizes.values()) if reason}


def test_all_columns_of_a_table_are_bounded() -> None:
    """A record adds columns only while its table has not too many; those that add none are read."""
    bounds = Bounds(columns=10)
    table = {f"c{index}": "int" for index in range(8)}
    values = [
        with_schema(envelope_schema({name: {"type": "int32"} for name in names}), envelope_json(f'{{"{names[0]}":1}}'))
        for names in (("c0", "x0", "x1"), ("c0", "x0", "x1", "x2"), tuple(table), ("x7", "x8"))
    ]
    assert rejections(decoded(values, table, bounds)) == {1: "beyond-limits"}
    full = {f"c{index}": "int" for index in range(12)}
    values = [
        with_schema(envelope_schema({name: {"type": "int32"} for name in names}), envelope_json('{"c0":1}'))
        for names in (("c0", "c11"), ("c0", "x0"))
    ]
    assert rejections(decoded(values, full, bounds)) == {1: "beyond-limits"}
    ignoring = Decoder(DecodeOptions("sqlserver", bounds=bounds, adds_columns=False))
    records = made_records([(KEY_WITH_SCHEMA, value) for value in values])
    assert not rejections(ignoring.decode(records, RecordSchema(full, {"id": "bigint"})))


def test_the_types_and_the_names_of_a_schema_are_bounded() -> None:
    inner = struct_schema({f"f{index}": {"type": "int32"} for index in range(9)})
    many = {f"c{index}": inner for index in range(9)}
    one = {"c0": inner}
    long = {"c" * 1_001: {"type": "int32"}, "c0": {"type": "int32"}}
    values = [with_schema(envelope_schema(columns), envelope_json("{}")) for columns in (many, one, long)]
    assert rejections(decoded(values, {"c0": "string"}, Bounds(columns=10))) == {
        0: "beyond-limits",
        2: "beyond-limits",
    }


def test_the_fields_of_a_row_without_a_schema_are_bounded() -> None:
    row = "{" + ",".join(f'"c{index}":1' for index in range(20_000)) + "}"
    found = decoded([envelope_json('{"c0":1}').encode(), envelope_json(row).encode()], {"c0": "int"})
    assert rejections(found) == {1: "beyond-limits"}


def test_all_columns_of_a_table_are_bounded_without_a_schema_too() -> None:
    """Records with too many new columns are rejected, and those of later ones are added all the same."""
    bounds = Bounds(columns=10)
    table = {f"c{index}": "int" for index in range(8)}
    rows = [{"c0": 1, **{f"x{index}": 1 for index in range(3)}}, {"c0": 2, "n": 3}, {"c0": 4, "m" * 1_001: 5}]
    found = decoded([envelope_json(json.dumps(row)).encode() for row in rows], table, bounds)
    assert rejections(found) == {0: "beyond-limits", 2: "beyond-limits"}
    assert [one.types for one in found.observed if not one.is_key] == [{**table, "n": "bigint"}]


def test_the_schemas_of_a_batch_are_bounded() -> None:
    values = [
        with_schema(envelope_schema({"n": {"type": "int32"}, f"c{index}": {"type": "int32"}}), envelope_json('{"n":1}'))
        for index in range(30)
    ]
    found = decoded([*values, *values], {"n": "int"}, Bounds(schemas=20))
    reasons = rejections(found)
    assert set(reasons.values()) == {"beyond-limits"}
    assert found.events.num_rows == 2 * 20
    assert all(values for values in struct_rows(found.events["row"]))


@pytest.mark.thorough
def test_what_is_remembered_of_schemas_is_bounded_and_holds_on_to_no_records() -> None:
    """Schemas that can't be read are remembered, too; and a table's decoder lives as long as the service."""
    decoder = Decoder(DecodeOptions("sqlserver"))
    schema = RecordSchema({"n": "int"}, {"id": "int"})

    def take(number: int) -> None:
        doc = {"doc": str(number) + "x" * 100_000}
        values = [
            with_schema({**envelope_schema({"n": {"type": "int32"}}), **doc}, envelope_json('{"n":1}')),
            with_schema({"type": "struct", **doc}, envelope_json('{"n":1}')),
            with_schema({"type": 1, **doc}, envelope_json('{"n":1}')),
        ]
        filler = with_schema({"type": 1}, envelope_json("x" * 1_000_000))
        found = decoder.decode(made_records([(b'{"id":1}', value) for value in (*values, filler)]), schema)
        assert found.events.num_rows == 1

    tracemalloc.start()
    try:
        for number in range(60):
            take(number)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size < 60_000_000  # each batch has 1.3 MB


def test_the_names_that_records_without_a_schema_bring_are_bounded() -> None:
    bounds = Bounds(schemas=20)
    keys = [(f'{{"id":1,"k{index}":1}}'.encode(), envelope_json('{"n":1}').encode()) for index in range(30)]
    values = [(b'{"id":1}', envelope_json(f'{{"n":1,"c{index}":1}}').encode()) for index in range(30)]
    for records in (keys, values):
        decoder = Decoder(DecodeOptions("sqlserver", bounds=bounds))
        found = decoder.decode(made_records([*records, *records]), RecordSchema({"n": "int"}, {"id": "int"}))
        assert set(rejections(found).values()) == {"beyond-limits"}
        assert found.events.num_rows == 2 * 20
        again = decoder.decode(made_records(records), RecordSchema({"n": "int"}, {"id": "int"}))
        assert again.rejected.num_rows == 0


def test_the_id_of_a_transaction_is_bounded() -> None:
    """Every commit of the table has that of its newest change."""
    values = [
        json.dumps({**json.loads(envelope_json('{"n":1}')), "transaction": {"id": "x" * size}}).encode()
        for size in (1_000, 1_001, 100_000)
    ]
    raw, schema = made_records([(b'{"id":1}', value) for value in values]), RecordSchema({"n": "int"}, {"id": "int"})
    found = Decoder(DecodeOptions("sqlserver", transactions=True)).decode(raw, schema)
    assert rejections(found) == {1: "beyond-limits", 2: "beyond-limits"}
    assert not rejections(Decoder(DecodeOptions("sqlserver")).decode(raw, schema))


def test_no_column_beyond_the_bound_is_passed_over() -> None:
    bounds = Bounds(columns=3)
    rows = [envelope_json(f'{{"a{index}":1,"b{index}":2}}').encode() for index in range(5)]
    decoder = Decoder(DecodeOptions("sqlserver", bounds=bounds))
    found = decoder.decode(made_records([(b'{"id":1}', row) for row in rows]), RecordSchema({}, {"id": "int"}))
    assert len(unread_columns(found, {})) == 2
    assert rejections(found) == dict.fromkeys(range(1, 5), "beyond-limits")


@pytest.mark.parametrize(
    "schema",
    [
        *("null", "{}", '{"type":"struct"}', '{"type":"string"}', '{"type":"struct","fields":null}'),
        *('{"type":"struct","fields":{}}', '{"type":"struct","fields":[1]}', '{"type":"struct","fields":[{}]}'),
        *('{"type":["struct"]}', '{"type":1}', '{"type":{"type":"struct"}}', '{"type":null}'),
    ],
)
def test_what_is_no_schema_rejects_its_record(schema: str) -> None:
    value = f'{{"schema":{schema},"payload":{envelope_json("{}")}}}'.encode()
    found = decoded([CHANGE_WITH_SCHEMA, value, CHANGE_WITH_SCHEMA], {"id": "bigint"})
    assert rejections(found) == ({1: "bad-schema"} if schema != "null" else {})
    assert struct_rows(found.events["row"])[0] == {"id": VALUES["id"]}


FAULTY_TYPES: tuple[Any, ...] = (
    *(1, None, "string", [], {}, {"type": 1}, {"type": None}, {"type": []}, {"type": "no such"}),
    *({"type": "array"}, {"type": "array", "items": 1}, {"type": "array", "items": []}, {"type": "array", "items": {}}),
    *({"type": "map"}, {"type": "map", "keys": {"type": "string"}}, {"type": "map", "values": 1, "keys": 1}),
    *({"type": "struct", "fields": 1}, {"type": "struct", "fields": [{"type": "int32"}]}),
    *({"type": "struct", "fields": [{"type": "int32", "field": 1}]}, {"type": "int32", "name": 1}),
    *({"type": "int32", "name": []}, {"type": "int32", "parameters": 1}, {"type": "int32", "parameters": [1]}),
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": []}},
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": {"a": 1}}},
)


@pytest.mark.parametrize("kind", FAULTY_TYPES, ids=str)
def test_whatever_stands_for_a_columns_type_rejects_only_its_records(kind: Any) -> None:
    field = {**kind, "field": "d"} if isinstance(kind, dict) else kind
    schema = envelope_schema({})
    for row in schema["fields"][:2]:
        row["fields"] = [{"type": "int64", "field": "id"}, field]
    value = with_schema(schema, envelope_json('{"id":17,"d":null}'))
    found = decoded([CHANGE_WITH_SCHEMA, value, CHANGE_WITH_SCHEMA], {"id": "bigint"})
    assert set(rejections(found)) <= {1}
    assert set(rejections(found).values()) <= {"bad-schema"}
    assert found.events.num_rows >= 2


def test_two_columns_that_differ_in_case_reject_their_records_and_say_why() -> None:
    schema = envelope_schema({"a": {"type": "int32"}, "A": {"type": "int32"}})
    found = decoded([with_schema(schema, envelope_json("{}")), CHANGE_WITH_SCHEMA], {"id": "bigint"})
    assert rejections(found) == {0: "needs-decision"}
    assert "differ only in case" in found.rejected["message"][0].as_py()
