"""Every type that a connector writes, with its special values: exact, or rejected with the column's name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.comparable import identical, plain_type
from tests.support.decoding import decode_all, events_by_place
from tests.support.every_type import EVERY_TYPE
from tests.support.every_type_rows import ROWS, SCHEMA, created, expected_row, sent_row

from distributary.decode.options import DecodeOptions
from distributary.reasons import BAD_VALUE, WRONG_TYPE

BAD = [(one.name, value) for one in EVERY_TYPE for value in one.bad]


def test_5_2_every_value_of_every_type_is_exact() -> None:
    decoded, _ = decode_all([created(number, sent_row(number)) for number in range(ROWS)], DecodeOptions("sqlserver"))
    assert not decoded.rejected.num_rows
    for one in EVERY_TYPE:
        assert plain_type(decoded.events.schema.field("row").type.field(one.name).type).equals(plain_type(one.arrow))
    rows = events_by_place(decoded, "row")
    for number in range(ROWS):
        found = rows[0, number]["row"]
        assert [name for name, value in expected_row(number).items() if not identical(found[name], value)] == []


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda given: str(given)[:40])
def test_5_2_what_a_type_can_not_hold_is_rejected_and_no_other_value_changed(name: str, value: Any) -> None:
    one = created(ROWS, {**sent_row(0), name: value})
    decoded, _ = decode_all([created(0, sent_row(0)), one, created(ROWS + 1, sent_row(1))], DecodeOptions("sqlserver"))
    schema = SCHEMA[name]
    is_list = schema["type"] == "array" or schema.get("keys", {}).get("type") == "int16"
    kind = list if is_list else {"map": dict, "struct": dict}.get(schema["type"], object)
    reason, message = (BAD_VALUE, name) if isinstance(value, kind) else (WRONG_TYPE, "")
    [found] = decoded.rejected.select(["offset", "reason", "message"]).to_pylist()
    assert (found["offset"], found["reason"]) == (ROWS, reason.code)
    assert found["message"] == reason.message + message
    rows = events_by_place(decoded, "row")
    assert identical(rows[0, 0]["row"], expected_row(0))
    assert identical(rows[0, ROWS + 1]["row"], {**expected_row(1), "id": ROWS + 1})
