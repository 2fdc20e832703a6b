"""Source tables of changes: found in each batch, and part of the key if a topic has several."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.decoding import SQLSERVER_SOURCE, events_by_place, plain_change, raw_table, rejections
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.decode.source_block import SOURCE_TABLE_COLUMN, Source, source_table, source_topic
from distributary.decode.unwrapped import added_by
from distributary.types.record_schema import RecordSchema

KEY = {"id": "bigint", SOURCE_TABLE_COLUMN: "string"}
SCHEMA = RecordSchema({"id": "bigint", "v": "string", SOURCE_TABLE_COLUMN: "string"}, KEY)


def of(table: Any, schema: Any = "dbo", db: Any = "shop") -> dict[str, Any]:
    return {**SQLSERVER_SOURCE, "db": db, "schema": schema, "table": table}


def decoded(*records: Record, schema: RecordSchema = SCHEMA, **more: Any) -> Decoded:
    return Decoder(DecodeOptions("sqlserver", **more)).decode(raw_table(records), schema)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Source(db="shop", schema="dbo", table="t"), "shop.dbo.t"),
        (Source(db="shop", table="t"), "shop.t"),
        (Source(db="", schema=None, table="t"), "t"),
        (Source(db="a.b", schema='c"', table="ä ö"), '"a.b"."c\\"".ä ö'),
        (Source(db="shop", schema="dbo"), None),
        (Source(), None),
    ],
)
def test_a_source_table_has_the_names_that_its_block_tells(source: Source, name: str | None) -> None:
    assert source_table(source) == name


def test_1_6_a_batch_tells_all_tables_that_its_changes_are_of() -> None:
    message = plain_change(4, None, source=of("not a table"), op="m")
    other = plain_change(5, {"id": 1}, source={**of("x"), "connector": "db2"})
    changes = [
        plain_change(index, {"id": 1, "v": "a"}, source=of(table)) for index, table in enumerate(("A", "a", "A"))
    ]
    assert decoded(*changes, message, other).source_tables == {"shop.dbo.A", "shop.dbo.a"}
    assert decoded(plain_change(0, {"id": 1})).source_tables == frozenset()


def test_1_3_added_fields_of_a_row_tell_its_table() -> None:
    value = b'{"id":1,"v":"a","__db":"shop","__source_table":"t","__commit_lsn":"00000027:00000758:0003"}'
    row = Record("t", 0, 0, 0, b'{"id":1}', value, ())
    found = decoded(row, unwrapped=added_by({}), source_in_key=True)
    assert found.source_tables == {"shop.t"}
    assert events_by_place(found, "key")[0, 0]["key"] == {"id": 1, SOURCE_TABLE_COLUMN: "shop.t"}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Source(connector="sqlserver", name="p", db="shop", schema="dbo", table="t"), "p.shop.dbo.t"),
        (Source(connector="postgresql", name="p", db="shop", schema="public", table="t"), "p.public.t"),
        (Source(connector="mysql", name="p", db="shop", table="ö t.x"), "p.shop.__t.x"),
        (Source(connector="mysql", db="shop", table="t"), None),
        (Source(name="p", db="shop"), None),
    ],
)
def test_the_topic_of_a_source_table_is_debeziums_own(source: Source, name: str | None) -> None:
    assert source_topic(source) == name


@pytest.mark.parametrize("odd", ["5", "true", "0.5", '"\\u0000"'])
def test_6_3_no_value_of_an_added_field_stops_a_batch(odd: str) -> None:
    full, value = (  # of the latter the fields' names are known by then
        f'{{"id":1,"__table":{part},"__db":{part},"__schema":{part},"__commit_lsn":"00000027:00000758:0003"}}'
        for part in ('"u"', odd)
    )
    good = '{"id":2,"__table":"t","__commit_lsn":"00000027:00000758:0004"}'
    rows = [
        Record("t", 0, index, 0, f'{{"id":{number}}}'.encode(), row.encode(), ())
        for index, (number, row) in enumerate(((1, full), (1, value), (2, good)))
    ]
    found = decoded(*rows, unwrapped=added_by({}), source_in_key=True)
    assert "t" in found.source_tables
    assert found.events["offset"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("wide", [False, True])
def test_3_1_the_key_has_the_source_table_where_it_is_asked_for(wide: bool) -> None:
    row = {"id": 1, "v": "a", **({"more": 1} if wide else {})}
    moved = plain_change(1, row, source=of("B"))
    records = [
        plain_change(0, row, {"id": 1}, source=of("A")),
        Record("t", 0, 1, 0, b'{"id":1}', moved.value, (("__debezium.oldkey", b'{"id":7}'),)),
        plain_change(2, None, {"id": 1}, source=of("A"), op="d"),
        Record("t", 0, 3, 0, b'{"id":1}', None, ()),
        plain_change(4, row, {"id": 1}, source=of(None)),
        plain_change(5, row, {"id": None}, source=of("A")),
    ]
    found = decoded(*records, source_in_key=True)
    assert rejections(found) == {4: "no-source-table", 5: "bad-key"}
    events = events_by_place(found, "key", "old_key", "row")
    keys = [events[0, at]["key"] for at in range(4)]
    names = ["shop.dbo.A", "shop.dbo.B", "shop.dbo.A", None]
    assert keys == [{"id": 1, SOURCE_TABLE_COLUMN: name} for name in names]
    assert events[0, 1]["old_key"] == {"id": 7, SOURCE_TABLE_COLUMN: "shop.dbo.B"}
    assert [events[0, at]["row"][SOURCE_TABLE_COLUMN] for at in (0, 1)] == names[:2]
    [key] = [one for one in found.observed if one.is_key]
    assert dict(key.types) == KEY
