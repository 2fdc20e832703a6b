"""Every type that a connector writes, with its special values: exact, or rejected with the column's name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.comparable import identical, plain_type
from tests.support.decoding import SQLSERVER_SOURCE, decode_all, events_by_place, struct_schema, with_schema
from tests.support.every_type import EVERY_TYPE
from tests.support.recorded import Record

from distributary.decode.options import DecodeOptions
from distributary.reasons import BAD_VALUE, WRONG_TYPE

SCHEMA: dict[str, Any] = {"id": {"type": "int64"}, **{one.name: one.schema for one in EVERY_TYPE}}
ENVELOPE = {
    "type": "struct",
    "fields": [
        struct_schema(SCHEMA, field="after"),
        struct_schema({"connector": {"type": "string"}}, field="source"),
        {"type": "string", "field": "op"},
    ],
}
ROWS = max(len(one.values) for one in EVERY_TYPE)
BAD = [(one.name, value) for one in EVERY_TYPE for value in one.bad]


def record(offset: int, values: dict[str, Any]) -> Record:
    payload = {"op": "c", "after": {"id": offset, **values}, "source": SQLSERVER_SOURCE}
    key = with_schema(struct_schema({"id": SCHEMA["id"]}), json.dumps({"id": offset}))
    return Record("t", 0, offset, 0, key, with_schema(ENVELOPE, json.dumps(payload)), ())


def sent(number: int) -> dict[str, Any]:
    """A row of each type's value of that number."""
    return {one.name: one.values[number][0] if number < len(one.values) else None for one in EVERY_TYPE}


GOOD = [record(number, sent(number)) for number in range(ROWS)]


EXPECTED = [
    {"id": number, **{one.name: one.values[number][1] if number < len(one.values) else None for one in EVERY_TYPE}}
    for number in range(ROWS)
]


def test_5_2_every_value_of_every_type_is_exact() -> None:
    decoded, _ = decode_all(GOOD, DecodeOptions("sqlserver"))
    assert not decoded.rejected.num_rows
    for one in EVERY_TYPE:
        assert plain_type(decoded.events.schema.field("row").type.field(one.name).type).equals(plain_type(one.arrow))
    rows = events_by_place(decoded, "row")
    for number, expected in enumerate(EXPECTED):
        found = rows[0, number]["row"]
        assert [name for name, value in expected.items() if not identical(found[name], value)] == []


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda given: str(given)[:40])
def test_5_2_what_a_type_can_not_hold_is_rejected_and_no_other_value_changed(name: str, value: Any) -> None:
    one = record(ROWS, {**sent(0), name: value})
    decoded, _ = decode_all([GOOD[0], one, record(ROWS + 1, sent(1))], DecodeOptions("sqlserver"))
    schema = SCHEMA[name]
    is_list = schema["type"] == "array" or schema.get("keys", {}).get("type") == "int16"
    kind = list if is_list else {"map": dict, "struct": dict}.get(schema["type"], object)
    reason, message = (BAD_VALUE, name) if isinstance(value, kind) else (WRONG_TYPE, "")
    [found] = decoded.rejected.select(["offset", "reason", "message"]).to_pylist()
    assert (found["offset"], found["reason"]) == (ROWS, reason.code)
    assert found["message"] == reason.message + message
    rows = events_by_place(decoded, "row")
    assert identical(rows[0, 0]["row"], EXPECTED[0])
    assert identical(rows[0, ROWS + 1]["row"], {**EXPECTED[1], "id": ROWS + 1})
