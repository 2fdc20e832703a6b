"""Decode options of the config: masks, renames, excluded columns, keys from rows and from headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from tests.support.changes import decimal
from tests.support.decoding import (
    SQLSERVER_SOURCE,
    decode_all,
    events_by_place,
    rejections,
    struct_schema,
    type_named,
    with_schema,
)
from tests.support.learning import unread_columns
from tests.support.recorded import Record
from tests.support.sample_change import envelope_schema

from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources

SALT = "a salt that is longer than a block of SHA-256, which is sixty-four bytes, so that it is hashed"
COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "int64"},
    "ssn": {"type": "string"},
    "phone": {"type": "string"},
    "price": decimal(12, 2),
}


def record(
    place: int, op: str, after: Any, before: Any = None, key: Any = None, headers: Mapping[str, bytes] | None = None
) -> Record:
    """A change of a table with COLUMNS."""
    payload = {"before": before, "after": after, "source": SQLSERVER_SOURCE, "op": op}
    value = with_schema(envelope_schema(COLUMNS), json.dumps(payload))
    schema = struct_schema({"id": COLUMNS["id"]})
    data = None if key is None else with_schema(schema, json.dumps({"id": key}))
    return Record("t", 0, place, 1000, data, value, tuple((headers or {}).items()))


def person(number: int, ssn: str | None = "078-05-1120", phone: str | None = "0800") -> dict[str, Any]:
    return {"id": number, "ssn": ssn, "phone": phone, "price": "BOI="}


def hashed(text: str) -> str:
    return hmac.new(SALT.encode(), text.encode(), hashlib.sha256).hexdigest()


def test_values_are_hashed_or_redacted_and_null_stays_null() -> None:
    masks = Masks({"ssn": "hash", "phone": "redact", "price": "hash", "id": "hash"}, SALT)
    records = [record(0, "c", person(1), key=1), record(1, "c", person(2, None, None), key=2)]
    decoded, schema = decode_all(records, DecodeOptions("sqlserver", masks=masks))
    events = list(events_by_place(decoded, "row", "key").values())
    assert schema.row == {"id": "string", "ssn": "string", "phone": "string", "price": "string"}
    assert events[0]["row"] == {
        "id": hashed("1"),
        "ssn": hashed("078-05-1120"),
        "phone": "***",
        "price": hashed("12.50"),
    }
    assert events[0]["key"] == {"id": hashed("1")}
    assert events[1]["row"] == {"id": hashed("2"), "ssn": None, "phone": None, "price": hashed("12.50")}


def test_a_bad_value_of_a_masked_column_is_named_and_not_shown() -> None:
    records = [record(0, "c", person(1), key=1), record(1, "c", {**person(2), "price": "not-Base64!"}, key=2)]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver", masks=Masks({"price": "hash"}, SALT)))
    [message] = decoded.rejected["message"].to_pylist()
    assert message.endswith(": price")


def test_a_hash_has_a_mark_that_tells_the_salt_and_what_it_is_made_of() -> None:
    one, other = (Masks({"c": "hash"}, salt).over("c", type_named("decimal(12,2)")).mark for salt in ("a", "b"))
    assert one is not None
    assert one != other
    assert one.endswith(" of decimals of scale 2")
    assert Masks({"c": "redact"}).over("c", type_named("int")).mark == "redact"


def test_columns_have_the_lakes_names_and_those_left_out_are_not_read() -> None:
    records = [record(0, "c", person(1), key=1), record(1, "c", {**person(2), "price": "?", "ssn": 5}, key=2)]
    options = DecodeOptions("sqlserver", renames={"price": "cost", "id": "number"}, exclude=frozenset(("phone",)))
    decoded, schema = decode_all(records, options)
    assert list(schema.row) == ["number", "ssn", "cost"]
    assert list(schema.key) == ["number"]
    assert rejections(decoded) == {1: "bad-value"}
    assert decoded.rejected["message"][0].as_py().endswith(": cost (source: price)")


def test_without_a_schema_the_names_are_the_same() -> None:
    records = [record(index, "c", person(index), key=index) for index in range(3)]
    plain = [
        Record(
            "t",
            0,
            r.offset,
            0,
            json.dumps({"id": r.offset}).encode(),
            json.dumps(json.loads(r.value or b"")["payload"]).encode(),
            (),
        )
        for r in records
    ]
    types = TypeSources(configured={"price": "decimal(12,2)"})
    options = DecodeOptions("sqlserver", types=types, renames={"price": "cost"}, exclude=frozenset(("phone",)))
    decoded, schema = decode_all(plain, options)
    assert schema.row == {"id": "bigint", "ssn": "string", "cost": "decimal(12,2)"}
    assert schema.key == {"id": "bigint"}
    assert not decoded.rejected.num_rows
    assert not unread_columns(decoded, schema.row)


def test_a_config_that_can_not_be_rejects_the_records_and_shows_why() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"exclude": frozenset(("id",))}, "names a column of the key: id"),
        ({"masks": Masks({"id": "redact"})}, "redacts a column of the key: id"),
        ({"renames": {"price": "ssn"}}, "two columns of the source would be called 'ssn'"),
        ({"types": TypeSources(configured={"price": "date"})}, "the config has date for the column 'price'"),
    )
    for more, message in cases:
        decoded, _ = decode_all([record(0, "c", person(1), key=1)], DecodeOptions("sqlserver", **more))
        assert rejections(decoded) == {0: "needs-decision"}
        assert message in decoded.rejected["message"][0].as_py()


def test_where_the_row_stands_for_the_key_an_update_of_it_is_two_changes() -> None:
    records = [
        record(0, "c", person(1)),
        record(1, "u", person(2), before=person(1)),
        record(2, "u", person(2, "other"), before=person(2)),
        record(3, "d", None, before=person(2)),
        record(4, "c", {**person(5), "id": None}),
        record(5, "u", {**person(7), "price": "?"}, before=person(6)),
        Record("t", 0, 6, 0, None, None, ()),
        record(7, "d", None),
        record(8, "r", person(9)),
    ]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver", key_from_row=("id",), before=True))
    events = decoded.events.select(["offset", "operation", "key", "old_key", "new_key", "moved_in", "moved_out"])
    found = [(e["offset"], e["operation"], e["key"] and e["key"]["id"]) for e in events.to_pylist()]
    assert found == [
        *((0, "c", 1), (1, "d", 1), (1, "c", 2), (2, "u", 2), (3, "d", 2)),
        *((6, "m", None), (8, "r", 9)),
    ]
    delete, create = events.to_pylist()[1:3]
    assert (delete["moved_out"], delete["new_key"], delete["old_key"]) == (True, {"id": 2}, None)
    assert (create["moved_in"], create["old_key"], create["new_key"]) == (True, {"id": 1}, None)
    halves = decoded.events.slice(1, 2).select(["row", "before"]).to_pylist()
    assert [half["row"] is None for half in halves] == [True, False]
    assert [half["before"] is None for half in halves] == [False, True]
    assert rejections(decoded) == {4: "no-key-columns", 5: "bad-value", 7: "no-key-columns"}


def test_the_headers_of_a_key_change_name_the_other_key() -> None:
    forms = [b'{"id":1}', b'{"schema":{"type":"struct"},"payload":{"id":1}}', b'{"id":"1"}', b"?", b'{"id":null}', b""]
    old, new = "__debezium.oldkey", "__debezium.newkey"
    records = [record(index, "c", person(2), key=2, headers={old: form, "x": b""}) for index, form in enumerate(forms)]
    records += [
        record(10, "d", None, key=2, headers={new: forms[0]}),
        record(11, "u", person(2), key=2, headers={old: forms[0]}),
    ]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver"))
    events = decoded.events.select(["old_key", "new_key", "moved_in", "moved_out"]).to_pylist()
    one = {"id": 1}
    assert [event["old_key"] for event in events] == [one, one, one, None, None, None, None, None]
    assert [event["moved_in"] for event in events] == [True] * 6 + [False] * 2
    assert [(event["new_key"], event["moved_out"]) for event in events[6:]] == [(one, True), (None, False)]


def test_values_that_were_not_sent_are_null_and_named() -> None:
    text = "__debezium_unavailable_value"
    source = {"connector": "postgresql", "ts_ms": 1, "sequence": '["1","2"]', "lsn": 2, "txId": 3}
    columns: dict[str, dict[str, Any]] = {
        "id": {"type": "int64"},
        "text": {"type": "string"},
        "data": {"type": "bytes"},
        "days": {"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}},
        "when": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        "texts": {"type": "array", "items": {"type": "string"}},
        "pairs": {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        "n": {"type": "int32"},
    }
    sent = {"id": 1, "text": text, "data": base64.b64encode(text.encode()).decode(), "days": list(text.encode())}
    sent |= {"when": text, "texts": [text], "pairs": {text: text}, "n": 5}
    payload = json.dumps({"after": sent, "source": source, "op": "u"})
    key = with_schema(struct_schema({"id": columns["id"]}), '{"id":1}')
    records = [Record("t", 0, 0, 0, key, with_schema(envelope_schema(columns), payload), ())]
    decoded, _ = decode_all(records, DecodeOptions("postgresql"))
    [event] = events_by_place(decoded, "row").values()
    assert event["unavailable"] == ["text", "data", "days", "when", "texts", "pairs"]
    assert event["row"] == {**dict.fromkeys(columns), "id": 1, "n": 5}
    other, _ = decode_all(records, DecodeOptions("postgresql", placeholder="other"))
    assert rejections(other) == {0: "bad-value"}
