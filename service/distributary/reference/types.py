"""docs/types.md: which type of the source arrives as which type of the lake, computed by the code that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from distributary.config.column_types import parse
from distributary.types import days, decimals, instants, nested, numbers, text, times_of_day
from distributary.types.announced_types import (
    DECIMAL_MODE,
    PRECISION_MODE,
    UNSIGNED_MODE,
    SourceColumn,
    type_of,
)
from distributary.types.bounds import Bounds
from distributary.types.connect_schema import ConnectField, ConnectType
from distributary.types.decimals import decimal_schema
from distributary.types.from_name import type_of_name
from distributary.types.from_schema import type_of_schema

_HEAD = """\
# Types

The type in the lake for each type of the source. `make docs` writes this page from the code.

A value that its column's type can't hold is never rounded, cut or made NULL: the record goes to the quarantine table,
with the column's name in the reason. `columns` in the config sets another type for a column; see
[config.md](config.md#tables-and-defaults). [Where a column's type comes from](#where-a-columns-type-comes-from) is
explained below the tables.

A point in time without a zone is a `timestamp_ntz` in these tables. With `timestamps: utc`, under `defaults` or for one
table, it is a `timestamp`, also within arrays, maps and structs: `2026-01-02 03:04:05` at the source becomes that
moment in UTC. Readers that know no `timestamp_ntz` read such tables. A type that `columns` names `timestamp_ntz` stays.
A table that has such columns halts when the setting changes (`timestamps-changed`), until it is set back or the table
is filled again (`resume --rebuild`).
"""
_WIRE = """
## By the type in the record

| Connect type, or its semantic name | sent as | Spark type | special values |
| --- | --- | --- | --- |
"""
_ORIGIN = """
## Where a column's type comes from

**With a schema** (JSON with the Connect schema beside the payload, or Avro) the type comes from the schema.

**Without a schema** JSON has only numbers and texts: a date is a number of days. The type comes from the first of these
that has one:

1. `columns` in the config.
2. The connector's schema-change topic, whose name is `topic.prefix`. The connectors of SQL Server, Db2, MySQL, MariaDB
   and Oracle write the database's types there (`include.schema.changes`, on by default). The service stores them in
   `<target.path>/_distributary/source-types/<topic_prefix>.json`, so Kafka may remove the records. If the connector's
   `time.precision.mode`, `decimal.handling.mode`, `bigint.unsigned.handling.mode` or `binary.handling.mode` is not the
   default, add it to `source.connector_properties`. A type that does not fit the table's column is ignored.
3. The existing column of the table.
4. The values: whole numbers are `bigint` (`string` if one needs more than 64 bits), fractions `double`, then
   `boolean`, everything else `string`. The log has a warning.

`distributary init` writes types that are inferred from values under `columns`, with a comment if they may be something
else: `created: bigint # looks like timestamp_us`. Check them before the first run: a table keeps the types that it
was created with, and `columns` overrides the schema-change topic. They are inferred from the first 20 records of each
partition and the 20 newest: if other records of a whole-number column have fractions, set `double` or `decimal(p,s)`.

The schema-change topic is read again when records have unknown columns, or values that no longer fit. The column is
then widened if possible.

## What `columns` does

With a schema `columns` does not change how a value is read, but converts it:

| from | to |
| --- | --- |
| a decimal | any other decimal, a whole number or text (exactly), `float`, `double` |
| a date or time | any other date or time, if nothing is lost. Without a zone it counts as UTC |
| a date or timestamp | a number or `string`, as it is in the record |
| a text | `date`, `timestamp_ntz`, `timestamp`: year, month and day as in ISO 8601. A text with an offset is \
converted to UTC; for a `date` the time must be midnight |

A value that does not fit exactly goes to the quarantine table. If a type can't be converted to the other, the
table halts (`no-conversion`).

## When a type changes without a schema

Some changes of a type can't be recognized without a schema, because the same text then means another value: a decimal
of another scale in Base64, or a time in another unit. After such a change at the source [take a
snapshot](snapshots.md) and fill the table again (`resume --rebuild`), or use schemas.

The same is true if schemas are switched off for a table that was filled with them: times of day and decimals without a
fixed scale are text in the table, and get the record's own form from then on. Set their types under `columns`.
"""
_TIME, _DATA, _KAFKA = "io.debezium.time", "io.debezium.data", "org.apache.kafka.connect.data"
_BOUNDS = Bounds()
_TEXT, _LONG = ConnectType("string"), ConnectType("int64")
_VARIABLE = f"{_DATA}.VariableScaleDecimal"
_POINT = ConnectType(
    "struct",
    f"{_DATA}.geometry.Point",
    fields=(
        ConnectField("x", ConnectType("double")),
        ConnectField("y", ConnectType("double")),
        ConnectField("wkb", ConnectType("bytes")),
        ConnectField("srid", ConnectType("int32")),
    ),
)
NOTES = tuple(one for family in (numbers, text, nested, decimals, days, instants, times_of_day) for one in family.NOTES)

_Example = tuple[str, str, int | None, int | None]
_OF_CONNECTOR: Mapping[str, tuple[str, tuple[_Example, ...]]] = {
    "sqlserver": (
        "SQL Server",
        (
            *((n, n, None, None) for n in ("bit", "tinyint", "smallint", "int", "bigint", "real", "float")),
            ("decimal(12,2)", "decimal", 12, 2),
            ("money", "money", 19, 4),
            ("smallmoney", "smallmoney", 10, 4),
            *(
                (n, n, None, None)
                for n in ("char", "varchar", "text", "nchar", "nvarchar", "ntext", "uniqueidentifier", "xml")
            ),
            ("date", "date", None, None),
            ("time(3)", "time", 12, 3),
            ("time(7)", "time", 16, 7),
            ("datetime", "datetime", 23, 3),
            ("smalldatetime", "smalldatetime", 16, 0),
            ("datetime2(3)", "datetime2", 23, 3),
            ("datetime2(7)", "datetime2", 27, 7),
            ("datetimeoffset", "datetimeoffset", 34, 7),
            *((n, n, None, None) for n in ("binary", "varbinary", "image", "rowversion", "geometry", "geography")),
        ),
    ),
    "db2": (
        "Db2",
        (
            *((n, n, None, None) for n in ("boolean", "smallint", "integer", "bigint", "real", "double")),
            ("decimal(31,5)", "decimal", 31, 5),
            *((n, n, None, None) for n in ("char", "varchar", "clob", "graphic", "vargraphic", "dbclob", "xml")),
            *((n, n, None, None) for n in ("date", "time")),
            ("timestamp(6)", "timestamp", 26, 6),
            ("timestamp(12)", "timestamp", 32, 12),
            *((n, n, None, None) for n in ("binary", "varbinary", "blob", "char for bit data")),
        ),
    ),
    "mysql": (
        "MySQL and MariaDB",
        (
            ("bit(1)", "bit", 1, None),
            ("bit(8)", "bit", 8, None),
            *(
                (n, n, None, None)
                for n in ("tinyint", "smallint", "smallint unsigned", "mediumint", "int", "int unsigned")
            ),
            *((n, n, None, None) for n in ("bigint", "bigint unsigned", "float", "double")),
            ("float(7,3)", "float", 7, 3),
            ("decimal(12,2)", "decimal", 12, 2),
            ("decimal(65,30)", "decimal", 65, 30),
            *((n, n, None, None) for n in ("char", "varchar", "text", "json", "enum", "set", "uuid")),
            *((n, n, None, None) for n in ("binary", "varbinary", "blob", "year", "date", "time")),
            ("datetime(3)", "datetime", 3, None),
            ("datetime(6)", "datetime", 6, None),
            *((n, n, None, None) for n in ("timestamp", "point", "geometry")),
        ),
    ),
    "oracle": (
        "Oracle",
        (
            ("number(4)", "number", 4, 0),
            ("number(9)", "number", 9, 0),
            ("number(18)", "number", 18, 0),
            ("number(38)", "number", 38, 0),
            ("number(12,2)", "number", 12, 2),
            *((n, n, None, None) for n in ("number", "float", "binary_float", "binary_double")),
            *((n, n, None, None) for n in ("char", "varchar2", "nvarchar2", "clob", "nclob", "rowid", "xmltype")),
            ("date", "date", 7, None),
            ("timestamp(6)", "timestamp(6)", 6, None),
            ("timestamp(9)", "timestamp(9)", 9, None),
            ("timestamp with time zone", "timestamp(6) with time zone", 6, None),
            ("interval day to second", "interval day(2) to second(6)", 2, 6),
            *((n, n, None, None) for n in ("raw", "blob")),
        ),
    ),
}
_OTHERWISE: tuple[tuple[str, str, SourceColumn, str, tuple[str, ...]], ...] = (
    (
        "datetime2(7)",
        "sqlserver",
        SourceColumn("c", "DATETIME2", 27, 7),
        PRECISION_MODE,
        ("connect", "isostring", "microseconds", "nanoseconds"),
    ),
    ("decimal(12,2)", "sqlserver", SourceColumn("c", "DECIMAL", 12, 2), DECIMAL_MODE, ("string", "double")),
    ("bigint unsigned", "mysql", SourceColumn("c", "BIGINT UNSIGNED", 20, None), UNSIGNED_MODE, ("precise",)),
)
_POSTGRESQL: tuple[tuple[str, ConnectType, str], ...] = (
    ("smallint", ConnectType("int16"), "smallint"),
    ("integer", ConnectType("int32"), "int"),
    ("bigint, oid", _LONG, "bigint"),
    ("real", ConnectType("float"), "float"),
    ("double precision", ConnectType("double"), "double"),
    ("numeric(12,2)", decimal_schema(12, 2), "decimal(12,2)"),
    ("numeric(60,20)", decimal_schema(60, 20), f"{_KAFKA}.Decimal(60,20)"),
    ("numeric", ConnectType("struct", _VARIABLE), _VARIABLE),
    ("money", decimal_schema(None, 2), "decimal(38,2)"),
    ("boolean, bit(1)", ConnectType("boolean"), "boolean"),
    ("bit(n), bit varying", ConnectType("bytes", f"{_DATA}.Bits"), f"{_DATA}.Bits"),
    ("text, varchar, char, citext, inet, cidr, macaddr, ranges", _TEXT, "string"),
    ("uuid", ConnectType("string", f"{_DATA}.Uuid"), "string"),
    ("json, jsonb, hstore", ConnectType("string", f"{_DATA}.Json"), "string"),
    ("xml", ConnectType("string", f"{_DATA}.Xml"), "string"),
    ("ltree", ConnectType("string", f"{_DATA}.Ltree"), "string"),
    ("enums", ConnectType("string", f"{_DATA}.Enum"), "string"),
    ("bytea", ConnectType("bytes"), "binary"),
    ("date", ConnectType("int32", f"{_TIME}.Date"), "date"),
    ("time", ConnectType("int64", f"{_TIME}.MicroTime"), "time_us"),
    ("time(3)", ConnectType("int32", f"{_TIME}.Time"), "time_ms"),
    ("timetz", ConnectType("string", f"{_TIME}.ZonedTime"), "string"),
    ("timestamp", ConnectType("int64", f"{_TIME}.MicroTimestamp"), "timestamp_us"),
    ("timestamp(3)", ConnectType("int64", f"{_TIME}.Timestamp"), "timestamp_ms"),
    ("timestamptz", ConnectType("string", f"{_TIME}.ZonedTimestamp"), "timestamp"),
    ("interval", ConnectType("int64", f"{_TIME}.MicroDuration"), "bigint"),
    ("integer[]", ConnectType("array", items=ConnectType("int32")), "array<int>"),
    (
        "timestamp[]",
        ConnectType("array", items=ConnectType("int64", f"{_TIME}.MicroTimestamp")),
        "array<timestamp_us>",
    ),
    ("point", _POINT, "struct<x:double,y:double,wkb:binary,srid:int>"),
)


def as_markdown() -> str:
    """The page."""
    return _HEAD + "\n".join([*_by_source(), ""]) + _WIRE + "\n".join([*_by_wire(), ""]) + _ORIGIN


def _by_wire() -> Iterator[str]:
    for one in NOTES:
        targets = {type_of_schema(connect, _BOUNDS).spark for connect in one.types}
        names = one.shown or ", ".join(f"`{connect.name or connect.kind}`" for connect in one.types)
        assert len(targets) == 1, f"{names} would be {sorted(targets)}"
        yield f"| {names} | {one.wire} | {targets.pop()} | {one.edges} |"


def _by_source() -> Iterator[str]:
    yield "\n## By the source's type\n"
    yield "With the connector's default settings. *As `columns` names it* is the type in JSON without schema."
    yield "\n### PostgreSQL\n"
    yield "PostgreSQL's connector writes no schema-change topic: without schema set the types under `columns`.\n"
    yield from _table(("type", "as `columns` names it", "Spark type"), _postgresql())
    for connector, (title, examples) in _OF_CONNECTOR.items():
        yield f"\n### {title}\n"
        rows = []
        for shown, name, length, scale in examples:
            kind = type_of(connector, SourceColumn("c", name.upper(), length, scale), {})
            assert kind is not None, f"{connector}: {shown}"
            rows.append((shown, _as_configured(kind), type_of_name(kind, {}, _BOUNDS).spark))
        yield from _table(("type", "as `columns` names it", "Spark type"), rows)
    yield f"\nWith another `{PRECISION_MODE}`, `{DECIMAL_MODE}` or `{UNSIGNED_MODE}` they have other types:\n"
    rows = []
    for shown, connector, column, name, modes in _OTHERWISE:
        for mode in modes:
            kind = type_of(connector, column, {name: mode}) or ""
            found = type_of_name(kind, {name: mode}, _BOUNDS).spark
            rows.append((f"{shown}, `{name}: {mode}`", _as_configured(kind), found))
    yield from _table(("SQL Server, MySQL", "as `columns` names it", "Spark type"), rows)


def _postgresql() -> Iterator[tuple[str, ...]]:
    for shown, connect, kind in _POSTGRESQL:
        with_schema, without = type_of_schema(connect, _BOUNDS).spark, type_of_name(kind, {}, _BOUNDS).spark
        assert with_schema == without, f"{shown}: {with_schema} with a schema, {without} as {kind}"
        yield shown, _as_configured(kind), without


def _as_configured(kind: str) -> str:
    """A type as `columns` takes it."""
    assert parse(kind) == kind, kind
    return f"`{kind}`"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
