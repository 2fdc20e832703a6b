"""Debezium's CloudEvents are read like the envelopes inside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.decoding import compact, decode_all, rejections, struct_schema
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded
from distributary.decode.options import DecodeOptions
from distributary.decode.order_fields import parse_order

SOURCES: dict[str, dict[str, Any]] = {
    "postgresql": {"txId": 565, "lsn": 34, "sequence": '["12","34"]', "schema": "s"},
    "sqlserver": {
        "commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0001", "event_serial_no": 2,
        "schema": "dbo",
    },
    "mysql": {"file": "b.000003", "pos": 5, "row": 1, "server_id": 7, "gtid": "a:1"},
    "TiCDC": {"commit_ts": 446},
}  # fmt: skip
ROWS = {"id": {"type": "int32"}, "v": {"type": "string"}}


def cloud_event(source: dict[str, Any], op: str, data: Any, **more: Any) -> bytes:
    """As the converter writes it: attributes are texts, their names without underscores."""
    attributes = {f"iodebezium{name.replace('_', '')}": str(result) for name, result in source.items()}
    event = {
        "id": "name:s;x:1",
        "source": "/debezium/x/s",
        "specversion": "1.0",
        "type": "io.debezium.x.event",
    }
    event |= {"time": "2026-01-01T00:00:00Z", "datacontenttype": "application/json", "iodebeziumop": op}
    return compact({**event, **attributes, **more, "data": data}).encode()


def source_of(connector: str) -> dict[str, Any]:
    block = {"version": "3.6.1.Final", "connector": connector, "name": "s", "ts_ms": 1_700_000_000_000}
    return {**block, "snapshot": "false", "db": "shop", "table": "t", **SOURCES[connector]}


def decoded(connector: str, values: Sequence[bytes | None], **more: Any) -> Decoded:
    order = parse_order(["commit_ts"]) if connector == "TiCDC" else ()
    records = [Record("t", 0, index, 0, b'{"id":1}', value, ()) for index, value in enumerate(values)]
    return decode_all(records, DecodeOptions(connector, order=order, before=True, transactions=True, **more))[0]


@pytest.mark.parametrize("connector", SOURCES)
@pytest.mark.parametrize("has_schema", [False, True])
def test_1_1_cloud_events_are_the_changes_that_their_envelopes_were(connector: str, has_schema: bool) -> None:
    source, row = source_of(connector), {"id": 1, "v": 'a "b" \u00e4'}
    changes = [("c", None, row), ("u", row, {**row, "v": None}), ("d", row, None), ("r", None, row)]
    schema = {"type": "struct", "fields": [struct_schema(ROWS, field="before"), struct_schema(ROWS, field="after")]}
    events, envelopes = [], []
    for op, before, after in changes:
        rows = {"after": after, "before": before}
        events.append(cloud_event(source, op, {"schema": schema, "payload": rows} if has_schema else rows))
        envelope = {"op": op, "source": source, **rows}
        envelopes.append(compact({"schema": schema, "payload": envelope} if has_schema else envelope).encode())
    found, expected = decoded(connector, [*events, None], cloud_events=True), decoded(connector, [*envelopes, None])
    assert rejections(found) == {}
    assert found.events.drop_columns(["size"]).equals(expected.events.drop_columns(["size"]))
    assert found.source_tables == expected.source_tables
    assert found.events["position"].null_count == 1  # the tombstone's


def test_3_9_the_transaction_is_read_from_attributes() -> None:
    result = {"iodebeziumtxid": "565:9", "iodebeziumtxtotalorder": "2", "iodebeziumtxdatacollectionorder": "1"}
    data = {"after": {"id": 1}, "before": None}
    events = [
        cloud_event(source_of("postgresql"), "c", data, **result),
        cloud_event(source_of("postgresql"), "c", data, **dict.fromkeys(result)),
    ]
    found = decoded("postgresql", events, cloud_events=True).events
    assert found["transaction_id"].to_pylist() == ["565:9", None]
    assert found["transaction_order"].to_pylist() == [1, None]
    assert found["transaction"].to_pylist() == ["565", "565"]


def test_6_3_what_holds_no_envelope_is_rejected_by_itself() -> None:
    source, good = source_of("mysql"), {"after": {"id": 1}, "before": None}
    values = [
        cloud_event(source, "c", good),
        cloud_event(source, "c", {"id": 1}),
        cloud_event(source, "c", "text"),
        cloud_event(source, "?", good),
        b'{"specversion":"1.0","iodebeziumop":"c","data":{"after":{',
        b"\xff",
        b"[]",
        compact({"op": "c", "source": source, **good}).encode(),  # the converter was changed
    ]
    found = decoded("mysql", values, cloud_events=True)
    assert found.events["offset"].to_pylist() == [0, 7]
    # `source` is a text in CloudEvents.
    assert rejections(found) == {
        1: "wrong-json-type",
        2: "wrong-json-type",
        3: "unknown-operation",
        4: "not-json",
        5: "not-utf8",
        6: "not-json",
    }
