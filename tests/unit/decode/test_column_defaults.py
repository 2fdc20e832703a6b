"""Defaults of columns that a source gets later: which ones count, and which rows get them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.support.changes import DAY, INSTANT, INT, TEXT, Row, Topic, decimal
from tests.support.comparable import column_values
from tests.support.decoding import connect_type, decode_all, in_avro, raw_table, struct_rows
from tests.support.every_type import EVERY_TYPE
from tests.support.recorded import Record, Scenario

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.ingest.table_columns import defaults_in
from distributary.types.bounds import Bounds
from distributary.types.column_default import ColumnDefault, array_of_text, default_text
from distributary.types.connect_schema import ConnectField
from distributary.types.from_schema import type_of_schema
from distributary.types.record_schema import RecordSchema

OLD: dict[str, Row] = {"id": INT}
ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}


def default_of(schema: Row, default: Any, connector: str = "postgresql", *, optional: bool = False) -> str | None:
    connect = connect_type(schema)
    field = ConnectField("c", connect, default, optional)
    return default_text(field, type_of_schema(connect, Bounds()), connector)


def records(*changes: tuple[int, int, int, dict[str, Row], Row], connector: str = "sqlserver") -> list[Record]:
    """Creates, each (offset, place in the source's log, id, types of its columns, further values)."""
    topic, found = Topic("t", connector), []
    for offset, at, number, types, more in changes:
        one = topic.with_schema(topic.change("c", {"id": number}, {"id": number, **more}, at=at), types)
        found.append(Record("t", 0, offset, 0, one.key, one.value, ()))
    return found


def decoded(found: list[Record], options: DecodeOptions, **columns: str) -> Decoded:
    schema = RecordSchema({"id": "int", **columns}, {"id": "int"})
    return Decoder(options).decode(raw_table(found), schema)


def test_a_default_of_any_plain_type_is_a_text_that_stands_for_the_same_value() -> None:
    compared = 0
    for one in EVERY_TYPE:
        kind = type_of_schema(connect_type(one.schema), Bounds())
        for sent, value in one.values:
            text = default_of(one.schema, sent)
            if pa.types.is_nested(kind.arrow):
                assert text is None
            elif text is not None:
                assert column_values(pa.chunked_array([array_of_text(text, kind.arrow)])) == [value], one.name
                compared += 1
    assert compared > len(EVERY_TYPE)


@pytest.mark.parametrize(
    ("schema", "default", "text"),
    [
        (INT, 5, "5"),
        (INT, 0, "0"),
        (TEXT, "", ""),
        (TEXT, "it's \\ ü", "it's \\ ü"),
        ({"type": "boolean"}, False, "false"),
        (decimal(10, 2), "Bdw=", "15.00"),
        ({"type": "bytes"}, "AQI=", "0102"),
        (DAY, 19782, "2024-02-29"),
        (INSTANT, 1709210096789012, "2024-02-29 12:34:56.789012"),
        (ZONED, "2024-02-29T13:00:00+01:00", "2024-02-29 12:00:00"),
        ({"type": "double"}, 2.5, "2.5"),
        ({"type": "string"}, None, None),
        (INT, "no number", None),
        (DAY, 0, None),
        (INSTANT, 0, None),
        (ZONED, "1970-01-01T00:00:00.000000Z", None),
    ],
)
def test_which_defaults_count(schema: Row, default: Any, text: str | None) -> None:
    assert default_of(schema, default) == text


@pytest.mark.parametrize(("connector", "text"), [("postgresql", "5"), ("mysql", "5"), ("sqlserver", None)])
def test_a_database_that_leaves_null_in_older_rows_tells_no_default_of_columns_that_may_be_null(
    connector: str, text: str | None
) -> None:
    assert default_of(INT, 5, connector, optional=True) == text
    assert default_of(INT, 5, connector) == "5"


NEW: dict[str, Row] = {**OLD, "c": {**INT, "optional": False, "default": 5}}
CHANGES = records(
    (0, 1, 1, OLD, {}), (1, 4, 2, NEW, {"c": 7}), (2, 3, 3, NEW, {"c": None}), (3, 2, 4, OLD, {}), (4, 9, 5, OLD, {})
)


@pytest.mark.parametrize("avro", [False, True])
def test_the_lowest_position_of_the_records_that_have_the_column_is_reported(avro: bool) -> None:
    options = DecodeOptions("sqlserver", defaults={})
    found = CHANGES
    if avro:
        found, schemas = in_avro(CHANGES[:2] + CHANGES[3:])
        options = DecodeOptions("sqlserver", defaults={}, avro=schemas)
    rows = [one for one in decoded(found, options).observed if not one.is_key]
    (new,) = [one for one in rows if one.defaults]
    assert new.defaults == {"c": "5"}
    assert new.since is not None
    events = decoded(found, options).events
    has = [offset in (1, 2) for offset in events["offset"].to_pylist()]
    assert new.since == min(at for at, there in zip(events["position"].to_pylist(), has, strict=True) if there)


def test_rows_from_before_a_column_get_its_default_and_no_others() -> None:
    before = min(decoded(CHANGES[1:3], DecodeOptions("sqlserver")).events["position"].to_pylist())
    options = DecodeOptions(
        "sqlserver", defaults={"c": ColumnDefault("5", before), "other": ColumnDefault("1", before)}
    )
    events = decoded(CHANGES, options, c="bigint").events
    # 3 says NULL; 5 comes after the column, which was dropped then.
    rows = {row["id"]: row["c"] for row in struct_rows(events["row"]) if row is not None}
    assert rows == {1: 5, 2: 7, 3: None, 4: 5, 5: None}


def failed_over() -> list[Record]:
    """A MySQL server gets a row; the one that takes over, whose files begin anew, gets the column and two rows more. A
    row of the first one's comes after that, by another partition."""
    found = []
    for record, (server, number) in zip(
        records((0, 905, 1, OLD, {}), (1, 104, 2, NEW, {"c": 7}), (2, 103, 3, NEW, {"c": 8}), (3, 908, 4, OLD, {}),
                connector="mysql"),
        [(1, 7), (2, 21), (2, 20), (1, 9)], strict=True,
    ):  # fmt: skip
        value = json.loads(record.value or b"")
        value["payload"]["source"] |= {"server_id": server, "gtid": f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}"}
        fields = next(one for one in value["schema"]["fields"] if one["field"] == "source")["fields"]
        fields.append({"type": "string", "optional": True, "field": "gtid"})
        found.append(replace(record, value=json.dumps(value).encode()))
    return found


def test_rows_of_a_server_that_another_one_took_over_from_are_older_than_its_columns() -> None:
    (new,) = [one for one in decoded(failed_over(), DecodeOptions("mysql", defaults={})).observed if one.defaults]
    result = defaults_in([new], "mysql")["c"]
    assert "00000000000000000020" in result.before
    options = DecodeOptions("mysql", defaults={"c": ColumnDefault(result.value, result.before)})
    events = decoded(failed_over(), options, c="bigint").events
    rows = {row["id"]: row["c"] for row in struct_rows(events["row"]) if row is not None}
    assert rows == {1: 5, 2: 7, 3: 8, 4: 5}


def test_of_schemas_of_two_servers_the_one_of_the_older_server_has_the_default() -> None:
    observed = decoded(failed_over(), DecodeOptions("mysql", defaults={})).observed
    older, newer = (one for one in observed if not one.is_key)
    assert (older.defaults, newer.defaults) == ({}, {"c": "5"})
    with_column = replace(older, types=newer.types)  # it had the column already, and no default of it
    assert defaults_in([newer, with_column], "mysql") == {}


def test_a_masked_column_has_a_masked_default() -> None:
    options = DecodeOptions("sqlserver", defaults={}, masks=Masks({"c": "redact"}, ""))
    (new,) = [one for one in decoded(CHANGES, options).observed if one.defaults]
    assert new.defaults == {"c": "***"}


@pytest.mark.parametrize("kind", [DAY, INSTANT, ZONED])
@pytest.mark.parametrize("options", [{"masks": Masks({"c": "hash"}, "salt")}, {"types": TypeSources({"c": "string"})}])
def test_a_default_that_is_an_expression_stays_unknown_as_a_hash_and_as_a_text(kind: Row, options: Any) -> None:
    zero = 0 if kind is not ZONED else "1970-01-01T00:00:00Z"
    for default, is_known in ((zero, False), (19782 if kind is not ZONED else "2024-02-29T12:00:00Z", True)):
        struct = {"id": INT, "c": {**kind, "optional": False, "default": default}}
        found = records((0, 4, 2, struct, {"c": default}))
        result = [one.defaults for one in decoded(found, DecodeOptions("sqlserver", defaults={}, **options)).observed]
        assert any("c" in defaults for defaults in result) == is_known


def test_a_text_of_which_the_config_makes_a_day_has_its_default_1970() -> None:
    text = {**TEXT, "optional": False, "default": "1970-01-01"}
    found = records((0, 4, 2, {**OLD, "c": text}, {"c": "2024-02-29"}))
    options = DecodeOptions("sqlserver", defaults={}, types=TypeSources({"c": "date"}))
    (new,) = [one for one in decoded(found, options).observed if one.defaults]
    assert new.defaults == {"c": "1970-01-01"}


def test_recorded_rows_of_before_a_column_are_as_the_source_has_them() -> None:
    scenario = Scenario("pg_schema_evolution")
    table = scenario.tables["evo"]
    records = [one for one in scenario.records if one.topic.endswith(".evo")]
    options = DecodeOptions("postgresql", exclude=frozenset({"gone"}), defaults={})
    found, schema = decode_all(records, options)
    result = defaults_in(found.observed, "postgresql")
    # c_null got its default later, and that of c_ts is now().
    assert {name: one.value for name, one in result.items()} == {"c_nn": "42"}
    filled = replace(options, defaults={name: ColumnDefault(one.value, one.before) for name, one in result.items()})
    events = Decoder(filled).decode(raw_table(records), schema).events
    last = {row["id"]: row["c_nn"] for row in struct_rows(events["row"]) if row is not None}
    truth = {int(row["id"] or 0): None if row["c_nn"] is None else int(row["c_nn"]) for row in table.rows}
    assert len(truth) > 100
    # The converter sent the default in place of this row's NULL (replace.null.with.default).
    assert (truth.pop(90007), last[90007]) == (None, 42)
    assert {number: last[number] for number in truth} == truth


@pytest.mark.parametrize(
    "default", [[], {}, {"a": [1]}, "x", "", True, -1, 10**400, 1.5e308, 2**63, "9" * 5_000, "é\ud800"]
)
def test_no_default_is_too_strange_to_be_looked_at(default: Any) -> None:
    for one in EVERY_TYPE:
        text = default_of(one.schema, default)
        assert text is None or isinstance(text, str)
        for bad in one.bad:
            assert default_of(one.schema, bad) is None or isinstance(default_of(one.schema, bad), str)
