"""Rows without an envelope (ExtractNewRecordState): added fields are read and are no columns."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.decoding import compact, decode_all, raw_table, rejections, struct_schema, with_schema
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import added_by
from distributary.types.record_schema import RecordSchema

Row = dict[str, Any]


def decoded_rows(
    connector: str, *rows: Any, headers: Mapping[int, Mapping[str, str]] | None = None, **settings: str
) -> Decoded:
    """Records of these values (None: null bytes), ordered by that connector's positions."""
    records = [
        Record(
            "t",
            0,
            offset,
            1_000 + offset,
            b'{"id":%d}' % (row.get("id", 1) if isinstance(row, dict) else 1),
            row if isinstance(row, bytes | None) else compact(row).encode(),
            tuple((name, value.encode()) for name, value in (headers or {}).get(offset, {}).items()),
        )
        for offset, row in enumerate(rows)
    ]
    unwrapped = added_by({name.replace("_", "."): value for name, value in settings.items()})
    return decode_all(records, DecodeOptions(connector, unwrapped=unwrapped))[0]


def place(number: int) -> Row:
    """Added fields with a row's position in SQL Server's log."""
    lsn = f"00000027:{number:08x}:0001"
    return {"__commit_lsn": lsn, "__change_lsn": lsn, "__event_serial_no": 1}


def events_of(decoded: Decoded, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(event[name] for name in names) for event in decoded.events.to_pylist()]


@pytest.mark.parametrize("flag", ["true", True])
def test_1_3_added_fields_order_rows_and_are_no_columns(flag: str | bool) -> None:
    alive = {"__deleted": "false" if flag == "true" else False, "__source_ts_ms": 1_700_000_000_000, "__table": "t"}
    decoded = decoded_rows(
        "sqlserver",
        {"id": 1, "v": "a", "__mine": "kept", **alive, **place(1)},
        {"id": 1, "v": None, "__mine": None, "__deleted": flag, **place(2)},
    )
    assert [field.name for field in decoded.events.schema.field("row").type] == ["id", "v", "__mine"]
    first, second = decoded.events.to_pylist()
    assert (first["operation"], second["operation"]) == ("u", "d")
    assert first["row"] == {"id": 1, "v": "a", "__mine": "kept"}
    assert first["source_time"] == 1_700_000_000_000
    assert first["position"] < second["position"]
    assert first["position"].startswith("000:00000027:00000001:0001/")


def test_1_3_operations_that_were_added_count_and_a_row_without_a_position_is_rejected() -> None:
    row = {"id": 1, "v": "a"}
    decoded = decoded_rows(
        "sqlserver",
        {**row, "__op": "r", **place(1)},
        {**row, "__op": "d", **place(2)},
        None,
        b"null",
        {**row, "__op": "?", **place(3)},
        {**row, "__op": "u"},
        {**row, **place(4)},
    )
    assert events_of(decoded, "offset", "operation") == [(0, "r"), (1, "d"), (2, "x"), (3, "x"), (6, "u")]
    assert rejections(decoded) == {4: "unknown-operation", 5: "no-position"}


@pytest.mark.parametrize("quote", [str, json.dumps], ids=["simple", "json"])
def test_1_3_added_headers_order_rows_and_null_values(quote: Any) -> None:
    def headers(op: str, file: int, pos: int) -> dict[str, str]:
        return {"__op": quote(op), "__file": quote(f"binlog.{file:06d}"), "__pos": str(pos)}

    row = {"id": 1, "v": "a"}
    found = decoded_rows(
        "mysql", row, row, None, None, headers={0: headers("c", 9, 8), 1: headers("u", 10, 2), 2: headers("d", 10, 4)}
    )
    assert events_of(found, "offset", "operation") == [(0, "c"), (1, "u"), (2, "d"), (3, "x")]
    positions = [position for (position,) in events_of(found, "position")]
    assert positions[:3] == sorted(positions[:3])
    assert positions[3] is None


def test_1_3_rows_with_a_connect_schema_are_ordered_by_their_offsets_where_nothing_else_is_known() -> None:
    kinds = {
        "id": {"type": "int32"},
        "v": {"type": "string"},
        "__deleted": {"type": "string"},
        "__lsn": {"type": "int64"},
    }
    rows = [{"id": 1, "v": "a", "__deleted": deleted, "__lsn": 1} for deleted in ("false", "true")]
    values: list[Any] = [with_schema(struct_schema(kinds), compact(row)) for row in rows]
    decoded = decoded_rows(BY_OFFSET, *values, {"schema": None, "payload": None})
    assert [field.name for field in decoded.events.schema.field("row").type] == ["id", "v"]
    # A null value has a place by its offset: it is a delete, and no lone tombstone.
    assert events_of(decoded, "operation") == [("u",), ("d",), ("d",)]
    assert [position for (position,) in events_of(decoded, "position")] == [
        f"000:@{1_000 + offset:015}/{0:010}/{offset:020}" for offset in range(3)
    ]


def test_1_3_an_envelope_among_rows_is_rejected_by_itself() -> None:
    envelope = {"op": "u", "source": {"connector": "db2"}, "before": None, "after": {"id": 1, "v": "x"}}
    decoded = decoded_rows(BY_OFFSET, {"id": 1, "v": "a"}, envelope, {}, b'{"id": 4', {"id": 2, "v": "b"})
    assert rejections(decoded) == {1: "not-a-row", 2: "not-a-row", 3: "not-json"}
    assert decoded.events["row"].to_pylist() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_1_3_an_envelope_is_no_row_whatever_columns_are_known() -> None:
    """A row with the fields of an envelope makes them columns, or fields to pass over."""
    columns = {"op": "x", "source": "y", "before": 1, "after": 2, "ts_ms": 3}
    envelope = {**columns, "op": "u", "source": {"connector": "db2"}, "before": None, "after": {"id": 1}}
    records = [
        Record("t", 0, offset, 1_000, b'{"id":1}', compact(value).encode(), ())
        for offset, value in enumerate(({"id": 1, **columns}, envelope, {**envelope, "source": {"connector": None}}))
    ]
    for table in ({"id": "int"}, {"id": "int", **dict.fromkeys(columns, "string")}):
        decoder = Decoder(DecodeOptions(BY_OFFSET, unwrapped=added_by({}), adds_columns=False))
        found = decoder.decode(raw_table(records), RecordSchema(table, {"id": "int"}))
        assert rejections(found) == {1: "not-a-row", 2: "not-a-row"}
        assert [row["id"] for row in found.events["row"].to_pylist()] == [1]


def test_1_3_only_the_fields_that_the_connectors_settings_name_are_added_ones() -> None:
    row = {"id": 1, "_op": "c", "__lsn": 5, "__deleted": "false"}
    decoded = decoded_rows(BY_OFFSET, row, add_fields="op", add_fields_prefix="_")
    assert decoded.events["operation"].to_pylist() == ["c"]
    assert decoded.events["row"].to_pylist() == [{"id": 1, "__lsn": 5}]


def test_3_4_a_row_with_the_header_of_a_key_change_is_a_create() -> None:
    decoded = decoded_rows("sqlserver", {"id": 1, **place(1)}, headers={0: {"__debezium.oldkey": '{"id":7}'}})
    assert events_of(decoded, "operation", "old_key", "moved_in") == [("c", {"id": 7}, True)]


@pytest.mark.parametrize(
    "value",
    ["9" * 10_000_000, '{"schema":' + "[" * 3_000_000, '"' + '\\"' * 3_000_000, "\x1b[2J" * 2_000_000],
    ids=["digits", "arrays", "escapes", "controls"],
)
@pytest.mark.parametrize("name", ["__op", "__lsn", "__source_ts_ms", "__commit_lsn"])
def test_6_3_a_header_of_ten_megabytes_rejects_at_most_its_record(name: str, value: str) -> None:
    begun = time.process_time()
    decoded = decoded_rows(
        "postgresql", {"id": 1}, {"id": 2}, headers={0: {name: value}, 1: {"__op": "c", "__lsn": "7"}}
    )
    assert decoded.events.num_rows >= 1
    assert time.process_time() - begun < 5
