"""Thousands of records with faults anywhere in their bytes: accepted records have the values of their JSON, all others
are rejected with a reason, and nothing is raised."""

from __future__ import annotations

import base64
import json
import random
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.changes import VARIABLE_SCALE
from tests.support.decoding import (
    RAW,
    SQLSERVER_SOURCE,
    compact,
    events_by_place,
    made_records,
    rejections,
    struct_schema,
)
from tests.support.hostile import mutated
from tests.support.learning import learn
from tests.support.random_share import thorough_but
from tests.support.sample_change import COLUMNS, envelope_schema

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import Unwrapped
from distributary.reasons import REASONS
from distributary.types.record_schema import RecordSchema

TYPES = {"id": "int", "n": "bigint", "text": "string", "price": "decimal(10,2)", "flag": "boolean", "more": "string"}
ROW = {"id": 17, "n": -9007199254740993, "text": 'ä, "q" \\ {1}: 2', "price": 12.5, "flag": True, "more": None}
BEFORE = {"id": 17, "n": 1, "text": "it's", "price": 0.25, "flag": False, "more": '{"a":1}'}
TRAILS = ("x", "}", "]", "{}", " null", ',"a":1', "]}", ',{"op":"d"}', "\n\n7", '"', "\x00", "} }")
CODES = {reason.code for reason in REASONS}
SCHEMA = RecordSchema(TYPES, {"id": "int"})


def connect(fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    kinds = {name: {"type": "bytes" if name == "price" else "string"} for name in fields}
    return struct_schema(kinds, **more)


ENVELOPE_SCHEMA = {
    "type": "struct",
    "fields": [
        connect(ROW, field="before"),
        connect(ROW, field="after"),
        connect(SQLSERVER_SOURCE, field="source"),
        {"type": "string", "field": "op"},
    ],
}


@dataclass(frozen=True)
class Form:
    """A way to write the record: how its key and value are wrapped, and whether the value is a bare row. Prices are
    numbers, which have to be read with care, or as the connector writes them."""

    has_schema: bool
    is_row: bool
    is_usual: bool

    @property
    def payload(self) -> Any:
        row, before = dict(ROW), dict(BEFORE)
        if self.is_usual:
            row["price"], before["price"] = "BOI=", "GQ=="
        return row if self.is_row else {"before": before, "after": row, "source": SQLSERVER_SOURCE, "op": "u"}

    def written(self, payload: bytes, *, key: bool = False) -> bytes:
        if not self.has_schema:
            return payload
        schema = connect({"id": 0}) if key else connect(ROW) if self.is_row else ENVELOPE_SCHEMA
        return b'{"schema":' + compact(schema).encode() + b',"payload":' + payload + b"}"

    def opened(self, data: bytes) -> Any:
        """The payload, by a reader that takes no fault. Raises ValueError."""
        value = strictly(data)
        return value["payload"] if self.has_schema and isinstance(value, dict) and "payload" in value else value

    @property
    def options(self) -> DecodeOptions:
        unwrapped = Unwrapped({}) if self.is_row else None
        connector = BY_OFFSET if self.is_row else "sqlserver"
        return DecodeOptions(connector, types=TypeSources(configured=TYPES), before=True, unwrapped=unwrapped)


FORMS = [Form(bool(n & 1), bool(n & 2), bool(n & 4)) for n in range(8)]


def strictly(data: bytes) -> Any:
    """JSON, read without forbearance; of a field that is there twice the last one counts. Raises ValueError."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    value = json.loads(data.decode(), parse_float=Decimal, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False, default=str).encode()  # half a character is no text
    return value


def says(wire: Any, column: str, got: Any) -> bool:
    """Whether the column's value equals the JSON value."""
    if wire is None or got is None:
        return wire is got
    kind = TYPES[column]
    if kind == "string":
        if isinstance(wire, bool | dict | list):
            return bool(json.loads(got) == json.loads(json.dumps(wire, default=float)))
        return bool(got == wire if isinstance(wire, str) else Decimal(got) == wire)
    if kind == "boolean" or isinstance(wire, bool):
        return str(got).lower() == str(wire).lower()
    if column == "price" and isinstance(wire, str):
        return bool(Decimal(int.from_bytes(base64.b64decode(wire), "big", signed=True)).scaleb(-2) == got)
    try:
        return bool(Decimal(str(wire)) == got)
    except InvalidOperation:
        return False


@pytest.mark.parametrize("form", thorough_but(3, FORMS), ids=str)
def test_of_thousands_of_faulty_records_no_value_becomes_another_or_null(form: Form) -> None:
    chance = random.Random(5)
    key, payload = b'{"id":17}', compact(form.payload).encode()
    whole = form.written(key, key=True), form.written(payload)
    records = [whole]
    records += [(whole[0], form.written(mutated(payload, chance))) for _ in range(1200)]
    records += [(form.written(mutated(key, chance), key=True), whole[1]) for _ in range(300)]
    records += [(whole[0], mutated(whole[1], chance)) for _ in range(300)]
    decoded = Decoder(form.options).decode(made_records(records), SCHEMA)
    events, rejected = events_by_place(decoded, "key", "row"), rejections(decoded)
    assert len(events) + len(rejected) == len(records)
    assert set(rejected.values()) <= CODES
    taken = [check(form, *records[offset], event) for (_, offset), event in events.items()]
    assert 50 < sum(taken) < len(records) * 0.7
    assert (0, 0) in events


def check(form: Form, key: bytes, value: bytes, event: Mapping[str, Any]) -> bool:
    """Whether the record's row was accepted; it must equal its JSON if its schema is the usual one."""
    if not value.startswith(form.written(b"\0").partition(b"\0")[0]):
        return False
    payload = form.opened(value)
    if event["operation"] == "x":
        assert payload is None
        return False
    if event["operation"] not in ("t", "m"):
        assert says(form.opened(key)["id"], "id", event["key"]["id"]), (key, event["key"])
    if event["operation"] not in ("c", "u", "r"):
        return False
    row = payload if form.is_row else payload["after"]
    if row.get("id") is None:
        row = {**row, "id": form.opened(key)["id"]}  # a field of the key that the row lacks
    for column in TYPES:
        assert says(row.get(column), column, event["row"][column]), (column, row, event["row"])
    return True


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_continues_behind_its_object_is_distinguished_from_what_is_none(form: Form) -> None:
    key, payload = b'{"id":17}', compact(form.payload).encode()
    whole = form.written(key, key=True), form.written(payload)
    trails = [trail.encode() for trail in TRAILS]
    records = [(whole[0], whole[1] + trail) for trail in trails] + [(whole[0] + trail, whole[1]) for trail in trails]
    records += [(whole[0], form.written(payload + trail)) for trail in trails]
    found = rejections(Decoder(form.options).decode(made_records(records), SCHEMA))
    assert set(found) == set(range(len(records)))
    assert set(found.values()) == {"text-after-json"}


@pytest.mark.thorough
def test_ten_thousand_records_with_faults_in_schemas_keys_and_headers_raise_nothing() -> None:
    chance = random.Random(7)
    kinds: dict[str, dict[str, Any]] = {
        **COLUMNS,
        "when": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        "days": {"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}},
        "pairs": {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        "any": VARIABLE_SCALE,
    }
    row = {"id": 1, "n": 2, "text": "ü", "price": "BOI=", "when": "2024-01-01T00:00:00Z", "days": [1, None]}
    row |= {"pairs": {"a": "b"}, "any": {"scale": 3, "value": "BOI="}}
    source = {**SQLSERVER_SOURCE, "connector": "postgresql", "sequence": '["1","2"]', "lsn": 2, "txId": 3}
    payload = {"before": row, "after": row, "source": source, "op": "u", "transaction": {"id": "1"}}
    plain = compact(payload).encode()
    wrapped = b'{"schema":' + compact(envelope_schema(kinds)).encode() + b',"payload":' + plain + b"}"
    key = b'{"schema":' + compact(struct_schema({"id": COLUMNS["id"]})).encode() + b',"payload":{"id":1}}'
    records = []
    for index in range(10_000):
        value = wrapped if index % 2 else plain
        header = chance.choice((b"", b'{"id":1}', b'{"schema":{},"payload":{"id":1}}'))
        name = chance.choice(("__debezium.oldkey", "__debezium.newkey", "__op", "other"))
        records.append(
            {
                "key": chance.choice((None, key, mutated(key, chance), b'{"id":1}')),
                "value": chance.choice(
                    (None, mutated(value, chance), mutated(value, chance), value[: chance.randrange(4000)])
                ),
                "partition": 0,
                "offset": index,
                "timestamp": index,
                "headers": [{"key": name, "value": chance.choice((None, mutated(header, chance)))}],
            }
        )
    raw = pa.Table.from_pylist(records, schema=RAW)
    begin, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unwrapped = Unwrapped({"op": "op"}, {"__op": "op"}, "postgresql")
    variants: list[tuple[int, dict[str, Any]]] = [
        (10_000, {}),
        (1_000, {"key_from_row": ("id",)}),
        (1_000, {"unwrapped": unwrapped}),
    ]
    for count, more in variants:
        options = DecodeOptions(
            "postgresql", transactions=True, before=True, types=TypeSources(announced={"n": "int"}), **more
        )
        decoder = Decoder(options)
        schema = learn(decoder, raw.slice(0, 30))
        decoded = decoder.decode(raw.slice(0, count), schema)
        assert set(rejections(decoded).values()) <= CODES
        offsets = {*decoded.events["offset"].to_pylist(), *rejections(decoded)}
        assert offsets == set(range(count))
    assert time.process_time() - begin < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 500_000


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "field",
                    "fields",
                    "name",
                    "items",
                    "keys",
                    "values",
                    "parameters",
                    "scale",
                    "value",
                    "op",
                    "after",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_TYPE = st.recursive(
    st.sampled_from(["int32", "int64", "string", "bytes", "double", "boolean", "float", "int8"]).map(
        lambda kind: {"type": kind}
    )
    | _JSON,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda a, b: {"type": "map", "keys": a, "values": b}, inner, inner)
        | st.builds(lambda fields: {"type": "struct", "fields": fields}, st.lists(inner, max_size=3))
    ),
    max_leaves=6,
)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=_TYPE, value=_JSON, key=_JSON, is_plain=st.booleans())
def test_whatever_json_stands_in_schemas_and_values_raises_nothing(
    kind: Any, value: Any, key: Any, is_plain: bool
) -> None:
    field = {**kind, "field": "c"} if isinstance(kind, dict) else kind
    schema = envelope_schema({"id": {"type": "int64"}})
    schema["fields"][1]["fields"].append(field)
    payload = {"after": {"id": 1, "c": value}, "source": SQLSERVER_SOURCE, "op": "c"}
    document: Any = payload if is_plain else {"schema": schema, "payload": payload}
    raw = made_records(
        [
            (json.dumps({"schema": kind, "payload": key}).encode(), json.dumps(document).encode()),
            (json.dumps(key).encode(), json.dumps({"schema": kind, "payload": value}).encode()),
        ]
    )
    decoder = Decoder(DecodeOptions("sqlserver"))
    decoded = decoder.decode(raw, learn(decoder, raw))
    assert decoded.events.num_rows + decoded.rejected.num_rows == 2


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_can_be_read_in_two_ways_is_ambiguous(form: Form) -> None:
    key, value = b'{"id":17}', compact(form.payload).encode()
    whole = form.written(key, key=True), form.written(value)
    good = [
        whole,
        (b"\n" + whole[0] + b" ", b" " + whole[1] + b"\r\n\t"),
        (whole[0], form.written(value.replace(b'"more":null', b'"more":"a \\ud83d\\ude00 b"'))),
        (whole[0], json.dumps(strictly(whole[1]), default=float).encode()),
    ]
    price = b'"BOI="' if form.is_usual else b"12.5"
    ambiguous = [
        (form.written(b'{"id":17,"id":18}', key=True), whole[1]),
        *(
            (whole[0], whole[1].replace(b'"more":null', b'"more":"%s"' % half))
            for half in (b"\\ud83d", b"\\uDE00 \\uD83D")
        ),
    ]
    if form.has_schema:
        schema = whole[1].partition(b',"payload":')[0].removeprefix(b'{"schema":')
        ambiguous += [
            (whole[0], b'{"payload":%s, "schema":%s,"payload":null}' % (payload, schema)) for payload in (value, b"{}")
        ]
    else:
        ambiguous += [
            (whole[0], whole[1].replace(b'"price":' + price, b'"price":%s,"price":%s' % (first, price)))
            for first in (price, b"1")
        ]
    found = rejections(Decoder(form.options).decode(made_records([*good, *ambiguous]), SCHEMA))
    assert found == dict.fromkeys(range(len(good), len(good) + len(ambiguous)), "ambiguous-json")


def test_a_time_of_the_connector_is_the_same_whatever_stands_beside_it() -> None:
    """Numbers are taken as whole columns; beside another kind of value one by one."""
    sent = [1_700_000_000_000, -1, 0, 253_402_300_799_999, 253_402_300_800_000, "5", "x", None, 2**63]
    events = [{"op": "u", "after": {"id": 17}, "source": SQLSERVER_SOURCE, "ts_ms": time} for time in sent]
    values = [compact(event).encode() for event in events]
    decoder = Decoder(DecodeOptions("sqlserver", types=TypeSources(configured=TYPES)))
    together = decoder.decode(made_records([(b'{"id":17}', value) for value in values]), SCHEMA).events
    alone = [decoder.decode(made_records([(b'{"id":17}', value)]), SCHEMA).events for value in values]
    expected = [1_700_000_000_000, None, 0, 253_402_300_799_999, None, 5, None, None, None]
    assert together["connector_time"].to_pylist() == expected
    assert pa.concat_tables(alone)["connector_time"].to_pylist() == expected
