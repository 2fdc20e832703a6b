"""Types of the source's columns, after the connectors' documentation."""

from __future__ import annotations

import json

import pytest
from tests.support.decoding import base64_number, read_values, type_named, type_of_connect
from tests.support.recorded import Scenario

from distributary.config.column_types import parse
from distributary.consume.schema_changes import changed_tables
from distributary.decode.row_shape import row_of_schema
from distributary.types.announced_types import SourceColumn, type_of
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name
from distributary.types.from_schema import type_of_schema

MARIADB = Scenario("maria_json_schema")


def of(
    connector: str, type_: str, length: int | None = None, scale: int | None = None, **properties: str
) -> str | None:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    found = type_of(connector, SourceColumn("c", type_, length, scale), named)
    if found is not None:
        assert parse(found) == found  # one that `columns` takes
        type_of_name(found, named, Bounds())
    return found


def test_what_mariadb_tells_is_what_its_schemas_say() -> None:
    result = {
        (table.name.replace(" ", "_"), column.name): column
        for record in MARIADB.records
        if record.topic == MARIADB.prefix
        for table in changed_tables(record.value) or ()
        for column in table.columns
    }
    compared = set()
    for record in MARIADB.records:
        table = record.topic.partition(".")[2]
        if record.value is None or not table or table == "shop.evo":  # whose columns changed their types
            continue
        schema = json.dumps(json.loads(record.value)["schema"]).encode()
        for field in row_of_schema(schema, Bounds(), unwrapped=False).fields:
            kind = type_of("mariadb", result[table, field.name], {})
            assert kind is not None, result[table, field.name]
            assert type_named(kind).spark == type_of_schema(field.type, Bounds()).spark, result[table, field.name]
            compared.add(result[table, field.name].type)
    assert len(compared) >= 35


@pytest.mark.parametrize(
    ("connector", "type_", "length", "scale", "expected"),
    [
        ("sqlserver", "datetime2", 27, 7, "timestamp_ns"),
        ("sqlserver", "datetime2", 23, 3, "timestamp_ms"),
        ("sqlserver", "datetime", 23, 3, "timestamp_ms"),
        ("sqlserver", "time", 15, 6, "time_us"),
        ("sqlserver", "datetimeoffset", 34, 7, "io.debezium.time.ZonedTimestamp"),
        ("sqlserver", "money", 19, 4, "decimal(19,4)"),
        ("sqlserver", "int identity", 10, 0, "int"),
        ("sqlserver", "hierarchyid", 892, None, None),
        ("db2", "TIMESTAMP", 26, 6, "timestamp_us"),
        ("db2", "TIMESTAMP", 32, 12, "timestamp_ns"),
        ("db2", "DECIMAL", 31, 31, "decimal(31,31)"),
        ("mysql", "INT UNSIGNED ZEROFILL", 10, None, "bigint"),
        ("mysql", "FLOAT", 24, None, "float"),
        ("mysql", "FLOAT", 25, None, "double"),
        ("mysql", "TIME", None, None, "time_us"),
        ("mysql", "DATETIME", 3, None, "timestamp_ms"),
        ("oracle", "NUMBER", 38, 0, "decimal(38,0)"),
        ("oracle", "NUMBER", 9, 0, "int"),
        ("oracle", "NUMBER", 4, None, "smallint"),
        ("oracle", "NUMBER", 10, 2, "decimal(10,2)"),
        ("oracle", "NUMBER", 10, -2, "bigint"),
        ("oracle", "NUMBER", None, None, "io.debezium.data.VariableScaleDecimal"),
        ("oracle", "DATE", 7, None, "timestamp_ms"),
        ("oracle", "TIMESTAMP(9)", 9, None, "timestamp_ns"),
        ("oracle", "TIMESTAMP(6) WITH TIME ZONE", 6, None, "io.debezium.time.ZonedTimestamp"),
        ("oracle", "INTERVAL DAY(2) TO SECOND(6)", 2, 6, "io.debezium.time.MicroDuration"),
        ("postgresql", "INTEGER", None, None, None),
    ],
)
def test_each_connectors_types(
    connector: str, type_: str, length: int | None, scale: int | None, expected: str | None
) -> None:
    assert of(connector, type_.upper(), length, scale) == expected


@pytest.mark.parametrize(
    ("mode", "date", "time", "timestamp"),
    [
        ("adaptive", "io.debezium.time.Date", "time_ns", "timestamp_ns"),
        ("connect", "io.debezium.time.Date", "time_ms", "timestamp_ms"),
        ("microseconds", "io.debezium.time.Date", "time_us", "timestamp_us"),
        ("nanoseconds", "io.debezium.time.Date", "time_ns", "timestamp_ns"),
        ("isostring", "io.debezium.time.IsoDate", "io.debezium.time.IsoTime", "io.debezium.time.IsoTimestamp"),
    ],
)
def test_times_follow_the_connectors_precision(mode: str, date: str, time: str, timestamp: str) -> None:
    found = [of("sqlserver", kind, None, 7, time_precision_mode=mode) for kind in ("DATE", "TIME", "DATETIME2")]
    assert found == [date, time, timestamp]


@pytest.mark.parametrize(
    ("connector", "type_"),
    [
        *(("sqlserver", name) for name in ("DATE", "TIME", "DATETIME2", "DATETIMEOFFSET", "SMALLDATETIME")),
        *(("mysql", name) for name in ("DATE", "TIME", "DATETIME", "TIMESTAMP")),
        *(("oracle", name) for name in ("DATE", "TIMESTAMP(6)", "TIMESTAMP(6) WITH TIME ZONE")),
        ("db2", "TIMESTAMP"),
    ],
)
def test_times_that_come_in_parts_have_no_type_of_numbers_or_texts(connector: str, type_: str) -> None:
    assert of(connector, type_, 3, 3) is not None
    assert of(connector, type_, 3, 3, time_precision_mode="structured") is None
    assert of("mysql", "YEAR", time_precision_mode="structured") == "io.debezium.time.Year"
    assert of("mysql", "INT", time_precision_mode="structured") == "int"


@pytest.mark.parametrize(
    ("mode", "small", "large"),
    [
        ("precise", "decimal(10,2)", "org.apache.kafka.connect.data.Decimal(65,30)"),
        ("string", "decimal(10,2)", "string"),
        ("double", *["double"] * 2),
    ],
)
def test_decimals_follow_the_connectors_handling(mode: str, small: str, large: str) -> None:
    assert of("mysql", "DECIMAL", 10, 2, decimal_handling_mode=mode) == small
    assert of("mysql", "DECIMAL", 65, 30, decimal_handling_mode=mode) == large


@pytest.mark.parametrize("decimals", ["precise", "string", "double"])
def test_unsigned_bigints_that_are_sent_precisely_are_what_a_schema_says_of_them(decimals: str) -> None:
    properties = {"bigint.unsigned.handling.mode": "precise", "decimal.handling.mode": decimals}
    found = type_of("mysql", SourceColumn("c", "BIGINT UNSIGNED", 20, None), properties)
    assert found is not None
    by_schema = type_of_connect(
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "0"}}
    )
    by_name = type_of_name(found, properties, Bounds())
    sent = [*map(base64_number, (0, 2**64 - 1, 10**38)), "18446744073709551615", "null"]
    assert by_name.spark == by_schema.spark
    assert read_values(by_name, sent) == read_values(by_schema, sent)
    assert of("mysql", "BIGINT UNSIGNED", 20, bigint_unsigned_handling_mode="precise") == found
    assert of("mysql", "BIGINT UNSIGNED", 20) == "bigint"


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"no JSON", b"[]", b"{}", b'{"tableChanges": 1}', b'{"tableChanges": []}'),
        b'{"source": {}, "tableChanges": []}',
    ],
)
def test_what_is_no_schema_change_has_no_effect(value: bytes | None) -> None:
    assert changed_tables(value) is None


def test_what_can_not_be_understood_of_a_change_is_left_out() -> None:
    column = {"name": "a", "typeName": "int", "length": 10, "scale": None}
    changes = [
        {"type": "DROP", "id": '"d"."s"."gone"', "table": None},
        {"type": "ALTER", "id": '"d"."s"."t ""x"""', "table": {"columns": [column, {"name": "b"}, 7]}},
        {"type": "ALTER", "id": "none", "table": {"columns": [column]}},
    ]
    value = json.dumps({"payload": {"source": {"connector": "sqlserver"}, "tableChanges": changes}}).encode()
    found = changed_tables(value)
    assert found is not None
    (table,) = found
    assert (table.connector, table.name) == ("sqlserver", 'd.s.t "x"')
    assert table.columns == (SourceColumn("a", "INT", 10, None),)


def test_the_bytes_of_a_geometry_are_base64_whatever_those_of_columns_are() -> None:
    for connector, type_, name in (("mysql", "POINT", "Point"), ("sqlserver", "GEOGRAPHY", "Geometry")):
        assert of(connector, type_, binary_handling_mode="hex") == f"io.debezium.data.geometry.{name}"
        kind = type_named(f"io.debezium.data.geometry.{name}", binary_handling_mode="hex")
        [shape] = read_values(kind, ['{"wkb":"+/8="}'])
        assert shape["wkb"] == b"\xfb\xff"
