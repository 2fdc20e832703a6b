"""Records with a fault somewhere in their bytes: what is not put into quarantine says what its JSON says."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.test_links import RAW

from distributary.decode.alike import alike, with_known
from distributary.decode.position import BY_OFFSET
from distributary.decode.reading import Reading
from distributary.decode.records import decoded
from distributary.decode.shapes import Shape, Signature, TypeSources, shape_of
from distributary.decode.slices import sliced
from distributary.decode.unwrapped import Unwrapped

TYPES = {"id": "int", "n": "bigint", "text": "string", "price": "decimal(10,2)", "flag": "boolean", "more": "string"}
ROW = {"id": 17, "n": -9007199254740993, "text": 'ä, "q" \\ {1}: 2', "price": 12.5, "flag": True, "more": None}
BEFORE = {"id": 17, "n": 1, "text": "it's", "price": 0.25, "flag": False, "more": '{"a":1}'}
SOURCE = {"connector": "sqlserver", "ts_ms": 1700000000000, "snapshot": "false", "commit_lsn": "00000027:00000758:0003",
          "change_lsn": "00000027:00000758:0001", "event_serial_no": 2}  # fmt: skip
ENVELOPE = {"before": BEFORE, "after": ROW, "source": SOURCE, "op": "u"}
KEY = {"id": 17}
TRAILS = ("x", "}", "]", "{}", " null", ',"a":1', "]}", ',{"op":"d"}', "\n\n7", '"', "\x00", "} }")
INSERTED = (b"{", b"}", b'"', b"\\", b",", b":", b"0", b"e9", b"-", b".5", b" ", b"\n", b"null", b"'", b"[")
LOST = "the value is another one, or NULL"


@dataclass(frozen=True)
class Form:
    """A way to write the record: how its key and value are wrapped, and what reads it."""

    payload: Mapping[str, Any]
    key_schema: str | None = None
    schema: str | None = None
    unwrapped: Unwrapped | None = None

    def written(self, payload: str, *, key: bool = False) -> str:
        schema = self.key_schema if key else self.schema
        return payload if schema is None else f'{{"schema":{schema},"payload":{payload}}}'

    def opened(self, data: bytes, *, key: bool = False) -> Any:
        """The payload, by a reader that takes no fault. Raises ValueError."""
        value = strictly(data)
        wrapped = (self.key_schema if key else self.schema) is not None
        return value["payload"] if wrapped and isinstance(value, dict) and "payload" in value else value

    @property
    def shape(self) -> Shape:
        row = self.payload if self.unwrapped else ROW
        signature = Signature(self.key_schema or compact(list(KEY)), self.schema or compact(list(row)))
        return shape_of(signature, TypeSources(TYPES, {}, {}, {}), frozenset(), self.unwrapped)


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def connect(fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    # Of bytes alone the text may be an unscaled number in Base64.
    named = [{"type": "bytes" if name == "price" else "string", "optional": True, "field": name} for name in fields]
    return {"type": "struct", "fields": named, "optional": True, **more}


SCHEMA = {
    "type": "struct",
    "fields": [
        connect(ROW, field="before"),
        connect(ROW, field="after"),
        connect(SOURCE, field="source"),
        {"type": "string", "field": "op"},
    ],
}
FORMS = {
    "with schema": Form(ENVELOPE, compact(connect(KEY)), compact(SCHEMA)),
    "without schema": Form(ENVELOPE),
    "rows with schema": Form(ROW, compact(connect(KEY)), compact(connect(ROW)), Unwrapped({})),
    "rows": Form(ROW, unwrapped=Unwrapped({})),
}


def strictly(data: bytes) -> Any:
    """JSON, read without forbearance; of a field that is there twice the last one counts. Raises ValueError."""

    def no_constant(name: str) -> Any:
        raise ValueError(name)

    value = json.loads(data.decode(), parse_float=Decimal, parse_constant=no_constant)
    json.dumps(value, ensure_ascii=False, default=str).encode()  # half a character is no text
    return value


def decode(
    session: SparkSession, form: Form, records: Sequence[tuple[bytes, bytes]], *, alike_cut: bool, usual: bool = False
) -> list[dict[str, Any]]:
    """What the decoder makes of the records (key, value), in their order."""
    rows = [
        {"key": key, "value": value, "partition": 0, "offset": number, "headers": [],
         "timestamp": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)}
        for number, (key, value) in enumerate(records)
    ]  # fmt: skip
    raw = session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))
    order = BY_OFFSET if form.unwrapped else "sqlserver"
    reading = Reading(order, 0, TYPES, {"id": "int"}, "", before=True, unwrapped=form.unwrapped)
    shape, unwrapped = form.shape, form.unwrapped
    cut = alike(raw, shape, unwrapped) if alike_cut else with_known(sliced(raw, unwrapped), shape)
    found = decoded(cut, form.shape, reading, usual=usual).select(
        "offset", "known", "kind", F.col("bad.code").alias("bad"), "k", "row"
    )
    return list(found.orderBy("offset").toArrow().to_pylist())


def read(session: SparkSession, form: Form, records: Sequence[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """The same, by all its ways alike."""
    careful = decode(session, form, records, alike_cut=False)
    for usual in (False, True):
        quick = decode(session, form, records, alike_cut=True, usual=usual)
        for row, other in zip(quick, careful, strict=True):
            same = row == other if other["bad"] is None else row["bad"] == other["bad"]
            assert same or not row["known"], (usual, records[row["offset"]])
    return careful


@pytest.mark.parametrize("name", FORMS)
def test_a_record_that_is_written_as_usual_is_known_the_quick_way(session: SparkSession, name: str) -> None:
    form = FORMS[name]
    priced = {**ROW, "price": "BOI="}
    payload = priced if form.unwrapped else {**form.payload, "before": priced, "after": priced}
    key, value = (form.written(compact(v), key=k) for v, k in ((KEY, True), (payload, False)))
    usual = (key.encode(), value.encode())
    [quick] = decode(session, form, [usual], alike_cut=True, usual=True)
    assert quick == decode(session, form, [usual], alike_cut=False)[0]
    assert quick["known"]
    assert (quick["bad"], quick["row"]["c3"]) == (None, Decimal("12.50"))


def says(wire: Any, column: str, got: Any) -> bool:
    """Whether the column's value is what the JSON value says."""
    if wire is None or got is None:
        return wire is got
    kind = TYPES[column]
    if kind == "string":
        if isinstance(wire, bool | dict | list):
            return bool(json.loads(got) == json.loads(json.dumps(wire, default=float)))
        return bool(got == wire if isinstance(wire, str) else Decimal(got) == wire)
    if kind == "boolean" or isinstance(wire, bool):
        return str(got).lower() == str(wire).lower()
    try:
        return bool(Decimal(str(wire)) == got)
    except InvalidOperation:
        return False


def row_of(form: Form, payload: Any) -> dict[str, Any] | None:
    row = payload if form.unwrapped else payload.get("after")
    return row if isinstance(row, dict) else None


def check(form: Form, key: bytes, value: bytes, got: Mapping[str, Any]) -> bool:
    """Whether the record was taken; one that was must be what its JSON says."""
    if not got["known"] or got["bad"] is not None:
        return False
    payload = form.opened(value)
    if got["kind"] == "x":
        assert payload is None, LOST
        return False
    if got["kind"] not in ("t", "m"):
        assert says(form.opened(key, key=True)["id"], "id", got["k"]["k0"]), LOST
    if got["kind"] in ("c", "u", "r"):
        row = row_of(form, payload)
        assert row is not None, LOST
        for place, column in enumerate(TYPES):
            assert says(row.get(column), column, got["row"][f"c{place}"]), (LOST, column, row, got)
    return True


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to three small faults."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.randrange(1, 12))
        fault = chance.choice((
            b"", data[at:to] * 2, bytes([chance.randrange(256)]) + data[at:to],
            chance.choice(INSERTED) + data[at:to],
            data[at:to][::-1], data[at:to].swapcase(), bytes([chance.randrange(128)]) + data[at + 1 : to],
        ))  # fmt: skip
        data = data[:at] + fault + data[to:]
    return data


@pytest.mark.parametrize("name", FORMS)
def test_of_thousands_of_faulty_records_no_value_becomes_another_or_null(session: SparkSession, name: str) -> None:
    form, chance = FORMS[name], random.Random(5)
    key, payload = compact(KEY), compact(form.payload)
    whole = form.written(key, key=True).encode(), form.written(payload).encode()
    records = [whole]
    records += [(whole[0], wrapped(form, mutated(payload.encode(), chance))) for _ in range(1200)]
    records += [(wrapped(form, mutated(key.encode(), chance), key=True), whole[1]) for _ in range(300)]
    records += [(whole[0], mutated(whole[1], chance)) for _ in range(300)]
    found = read(session, form, records)
    taken = [check(form, *record, got) for record, got in zip(records, found, strict=True)]
    assert taken[0]
    assert 50 < sum(taken) < len(taken) / 2


def wrapped(form: Form, payload: bytes, *, key: bool = False) -> bytes:
    before, after = form.written("\x00", key=key).encode().split(b"\x00")
    return before + payload + after


@pytest.mark.parametrize("name", FORMS)
def test_fields_that_are_there_twice_and_text_after_the_object_have_reasons_of_their_own(
    session: SparkSession, name: str
) -> None:
    form = FORMS[name]
    key, value = (form.written(compact(v), key=k) for v, k in ((KEY, True), (form.payload, False)))
    good = [
        (key, value),
        (f"\n{key} ", f" {value}\r\n\t"),
        (key, value.replace("it's", "a \\ud83d\\ude00 b")),
        (key, json.dumps(strictly(value.encode()), default=float)),
    ]
    doubled = [
        (form.written('{"id":17,"id":18}', key=True), value),
        (key, value.replace('"more":null', '"more":"\\ud83d"')),
        (key, value.replace('"more":null', '"more":"\\uDE00 \\uD83D"')),
    ]
    if form.schema is None:
        doubled += [(key, value.replace("12.5", '12.5,"price":12.5')), (key, value.replace("12.5", '1,"price":12.5'))]
    else:
        doubled += [
            (key, f'{{"payload":{compact(payload)}, "schema":{form.schema},"payload":null}}')
            for payload in (form.payload, {})
        ]
    trailed = [(key, value + trail) for trail in TRAILS] + [(key + trail, value) for trail in TRAILS]
    trailed += [(key, form.written(compact(form.payload) + trail)) for trail in TRAILS]
    records = [(k.encode(), v.encode()) for k, v in (*good, *doubled, *trailed)]
    reasons = [(got["known"], got["bad"]) for got in read(session, form, records)]
    assert reasons[: len(good)] == [(True, None)] * len(good)
    assert reasons[len(good) : -len(trailed)] == [(True, "ambiguous-json")] * len(doubled)
    assert reasons[-len(trailed) :] == [(True, "text-after-json")] * len(trailed)
