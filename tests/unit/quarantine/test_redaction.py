"""Redaction of records for the quarantine table."""

from __future__ import annotations

import json

import pyarrow as pa

from distributary.config.table import TableSettings
from distributary.quarantine.redaction import HEADER, redact, redacted_columns

COLUMNS = ("ssn", 'a "b" (c)')
LONG = 'a "quote", a \\ and "ssn": "x" ' * 20_000
CASES: list[tuple[bytes | None, bytes | None]] = [
    (None, None),
    (b'{"id": 1}', b'{"id": 1}'),
    (b'{"id":1,"ssn":"secret","v":"ssn"}', b'{"id":1,"ssn":null,"v":"ssn"}'),
    (b'{"id":1,"ssn" : -1.5e3 ,"v":[{"ssn":true}]}', b'{"id":1,"ssn":null ,"v":[{"ssn":null}]}'),
    (
        b'{"schema":{"field":"ssn"},"payload":{"ssn":"secret \\\\"}}',
        b'{"schema":{"field":"ssn"},"payload":{"ssn":null}}',
    ),
    (
        json.dumps({"ssn": LONG, "v": LONG}).encode(),
        json.dumps({"ssn": None, "v": LONG}).encode().replace(b'"ssn": null', b'"ssn":null'),
    ),
    (b'{"ssn":{"deep":"secret"}}', None),
    (b'{"ssn":["secret"]}', None),
    (b'{"s\\u0073n":"secret"}', None),
    (json.dumps({COLUMNS[1]: "secret"}).encode(), None),
    (b'{"ssn":1,"ssn":"secret"}', b'{"ssn":null,"ssn":null}'),
    (b'{"v":"\\u0022","ssn":"secret"}', b'{"v":"\\u0022","ssn":null}'),
    (b'{"v":NaN,"ssn":"secret"}', None),
    (b'{"v":' + b"[" * 100_000 + b"]" * 100_000 + b',"ssn":"secret"}', None),
    (b'{"ssn":"secret"', None),
    (b'{"ssn":"secret"} and more', None),
    (b'{"ssn":1},"secret"', None),
    (b'{"ssn":1},"more":"secret"', None),
    (b'"secret"', None),
    (b'["secret"]', None),
    (b"secret", None),
    (b'{"ssn":"secret \xff"}', None),
    (b"\x00\x00\x00\x00\x01\x0csecret", None),
]


def test_values_are_cut_out_and_what_may_hide_them_is_left_out() -> None:
    names = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    headers = [[{"key": "ssn", "value": b"secret"}, {"key": "h", "value": value}] for value, _ in CASES]
    values = pa.array([value for value, _ in CASES], pa.binary())
    table = {"n": range(len(CASES)), "key": values, "value": values, "headers": pa.array([None, *headers[1:]], names)}
    found = redact(pa.table(table), COLUMNS).to_pylist()
    assert [(row["key"], row["value"]) for row in found] == [(kept, kept) for _, kept in CASES]
    for row, (value, kept) in zip(found, CASES, strict=True):
        *own, mark = row["headers"]
        assert mark["key"] == HEADER
        assert json.loads(mark["value"]) == list(COLUMNS)
        if own:  # a header's bare word names no column
            bare = value == b"secret"
            assert [one["value"] for one in own] == [None, value if bare else kept]


def test_nothing_is_done_where_no_column_is_redacted() -> None:
    rows = pa.table({"n": [1]})
    assert redact(rows, ()) is rows


def test_statements_that_hold_the_values_of_all_columns_are_cut_out_with_them() -> None:
    columns = redacted_columns(TableSettings("dbo.t", exclude=("ssn",)), {})
    value = {"source": {"query": "UPDATE t SET ssn='secret'", "redo_sql": "secret"}, "__source_query": "secret", "v": 1}
    value |= {"iodebeziumquery": "secret", "iodebeziumredosql": "secret"}
    names = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    data = pa.array([json.dumps(value, separators=(",", ":")).encode()], pa.binary())
    table = {"key": data, "value": data, "headers": pa.array([[{"key": "__query", "value": b"secret"}]], names)}
    [row] = redact(pa.table(table), columns).to_pylist()
    assert b"secret" not in row["value"]
    assert json.loads(row["value"]) == json.loads(row["key"])
    assert json.loads(row["value"])["v"] == 1
    assert row["headers"][0] == {"key": "__query", "value": None}


def test_what_is_too_large_to_be_parsed_is_left_out() -> None:
    data = pa.array([b'{"v":"' + b"x" * 17 * 2**20 + b'"}'], pa.binary())
    names = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    table = {"key": data, "value": data, "headers": pa.array([[{"key": "h", "value": data[0].as_py()}]], names)}
    [row] = redact(pa.table(table), COLUMNS).to_pylist()
    assert (row["key"], row["value"], row["headers"][0]["value"]) == (None, None, None)
