"""Key fields that the row lacks, and snapshot rows that arrive as creates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.decoding import events_by_place, raw_table
from tests.support.recorded import Record

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.record_schema import RecordSchema

KEY = {"a": "int", "b": "int", "t": "string"}
PLACE = {
    "sequence": '[null,"9"]', "lsn": 9, "file": "b.1", "pos": 4,
    "commit_lsn": "00000027:00000ac0:0002", "change_lsn": None,
}  # fmt: skip


def decoded(connector: str, schema: RecordSchema, records: list[Record], **more: Any) -> list[dict[str, Any]]:
    types = TypeSources({**schema.row, **schema.key})
    made = Decoder(DecodeOptions(connector, types=types, **more)).decode(raw_table(records), schema)
    assert made.rejected.num_rows == 0
    found = events_by_place(made, "row", "key", "old_key", *(["before"] if more.get("before") else []))
    return [found[place] for place in sorted(found)]


def record(offset: int, key: Any, value: Any, headers: Any = ()) -> Record:
    return Record("t", 0, offset, 1, json.dumps(key).encode(), json.dumps(value).encode(), headers)


@pytest.mark.parametrize("own", [7, None])
def test_3_4_fields_that_row_and_header_lack_are_those_of_the_records_key(own: int | None) -> None:
    """As ByLogicalTableRouter adds one to the key and leaves the connector's header as it is."""
    source = {"connector": "sqlserver", **PLACE}
    value = {"op": "c", "after": {"a": 2, "v": "x"}, "before": {"a": 2, "v": "y"}, "source": source}
    headers = (
        {"a": 1, "b": None},
        {"a": 1},
        {"schema": {"type": "struct"}, "payload": {"a": 1, "b": 8}},
        {"x": 1},
        None,
    )
    records = [
        record(
            offset,
            {"a": 2, "b": own, "t": "s1"},
            value,
            () if header is None else (("__debezium.oldkey", json.dumps(header, separators=(",", ":")).encode()),),
        )
        for offset, header in enumerate(headers)
    ]
    found = decoded("sqlserver", RecordSchema({"t": "string", "v": "string", **KEY}, KEY), records, before=True)
    for event in found:
        assert event["row"] == {"t": "s1", "v": "x", "a": 2, "b": own}
        assert event["before"] == {"t": "s1", "v": "y", "a": 2, "b": own}
    old = [event["old_key"] and tuple(event["old_key"].values()) for event in found]
    assert old == [(1, None, "s1"), (1, own, "s1"), (1, 8, "s1"), None, None]


@pytest.mark.parametrize("connector", ["postgresql", "sqlserver", "mysql"])
def test_2_3_rows_that_a_snapshot_sends_as_creates_are_its_rows(connector: str) -> None:
    """As transforms and older MySQL connectors do; `source.snapshot` decides."""
    result = ["true", "first", "last", "incremental", "LAST_IN_DATA_COLLECTION", True, "false", False, None, "other"]

    def read(op: str) -> list[dict[str, Any]]:
        records = [
            record(
                offset,
                {"a": 1},
                {"op": op, "after": {"a": 1}, "source": {"connector": connector, "snapshot": snapshot, **PLACE}},
            )
            for offset, snapshot in enumerate(result)
        ]
        return decoded(connector, RecordSchema({"a": "int"}, {"a": "int"}), records)

    creates, reads, updates = read("c"), read("r"), read("u")
    assert [event["operation"] for event in creates] == ["r"] * 6 + ["c"] * 4
    assert {event["operation"] for event in updates} == {"u"}
    assert creates[:6] == reads[:6]
