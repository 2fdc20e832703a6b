"""Finds the column's type for the database's own type, for values without a schema.

Each connector's documentation has a table of how it sends which type ("Data type mappings"); these are those tables, by
the connector's settings. Types that they lack are inferred from the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distributary.types.decimals import MAX_PRECISION
from distributary.types.from_schema import DECIMAL

PRECISION_MODE = "time.precision.mode"
DECIMAL_MODE = "decimal.handling.mode"
UNSIGNED_MODE = "bigint.unsigned.handling.mode"


@dataclass(frozen=True)
class SourceColumn:
    """A column as the database has it: the database's own name of its type, in capitals, and the arguments in brackets
    behind it, if any."""

    name: str
    type: str
    length: int | None = None
    scale: int | None = None


_Properties = Mapping[str, str]
_Rule = Callable[[SourceColumn, _Properties], str | None]

_DEFAULT_PRECISION_MODE = {"mysql": "adaptive_time_microseconds", "mariadb": "adaptive_time_microseconds"}
_TIME, _DATA = "io.debezium.time", "io.debezium.data"
_GEOMETRY = "io.debezium.data.geometry.Geometry"
_POINT = "io.debezium.data.geometry.Point"


def type_of(connector: str, column: SourceColumn, properties: Mapping[str, str]) -> str | None:
    """The type of a column's values, named as `columns` in the config names types (see types.from_name.type_of_name).

    `properties` are the connector's settings. None if the form in which the connector sends them is unknown, or if it
    sends each as an object of its parts (`time.precision.mode: structured`).
    """
    rules = _RULES.get(connector)
    if rules is None:
        return None
    settings = {PRECISION_MODE: _DEFAULT_PRECISION_MODE.get(connector, "adaptive"), DECIMAL_MODE: "precise"}
    settings |= properties
    rule = rules.get(_plain(column.type))
    type_name = rule(column, settings) if callable(rule) else rule
    in_parts = settings[PRECISION_MODE] == "structured" and type_name is not None and type_name != f"{_TIME}.Year"
    return None if in_parts and str(type_name).startswith((_TIME, "time")) else type_name


def _plain(type_name: str) -> str:
    """The name without the arguments in brackets: `TIMESTAMP(6) WITH TIME ZONE` is `TIMESTAMP WITH TIME ZONE`; and
    without how MySQL shows it."""
    return " ".join(re.sub(r"\([^)]*\)| ZEROFILL", " ", type_name).split())


def _in_brackets(column: SourceColumn) -> int | None:
    match = re.search(r"\((\d+)", column.type)
    return int(match[1]) if match else None


def _date(_column: SourceColumn, properties: _Properties) -> str:
    return f"{_TIME}.IsoDate" if properties[PRECISION_MODE] == "isostring" else f"{_TIME}.Date"


def _unit(digits: int, properties: _Properties) -> str:
    """The unit of the numbers for a time with so many digits after the second."""
    mode = properties[PRECISION_MODE]
    fixed = {"connect": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(mode)
    return fixed or ("ms" if digits <= 3 else "us" if digits <= 6 else "ns")


def _time(digits: Callable[[SourceColumn], int]) -> _Rule:
    def rule(column: SourceColumn, properties: _Properties) -> str:
        mode = properties[PRECISION_MODE]
        if mode == "isostring":
            return f"{_TIME}.IsoTime"
        return "time_us" if mode == "adaptive_time_microseconds" else f"time_{_unit(digits(column), properties)}"

    return rule


def _timestamp(digits: Callable[[SourceColumn], int]) -> _Rule:
    def rule(column: SourceColumn, properties: _Properties) -> str:
        if properties[PRECISION_MODE] == "isostring":
            return f"{_TIME}.IsoTimestamp"
        return f"timestamp_{_unit(digits(column), properties)}"

    return rule


def _fixed(digits: int) -> Callable[[SourceColumn], int]:
    return lambda _column: digits


def _by_scale(otherwise: int) -> Callable[[SourceColumn], int]:
    return lambda column: otherwise if column.scale is None else column.scale


def _by_length(otherwise: int) -> Callable[[SourceColumn], int]:
    return lambda column: otherwise if column.length is None else column.length


def _decimal(column: SourceColumn, properties: _Properties) -> str | None:
    if column.length is None:
        return None
    return _of_digits(column.length, column.scale or 0, properties)


def _of_digits(precision: int, scale: int, properties: _Properties) -> str:
    """The type of a decimal. As text or in Base64 it is exact; as a double the connector has rounded it."""
    mode = properties[DECIMAL_MODE]
    if mode == "double":
        return "double"
    if 0 <= scale <= precision <= MAX_PRECISION:
        return f"decimal({precision},{scale})"
    return "string" if mode == "string" else f"{DECIMAL}({precision},{scale})"


def _money(precision: int, scale: int) -> _Rule:
    return lambda _column, properties: _of_digits(precision, scale, properties)


def _bits(column: SourceColumn, _properties: _Properties) -> str:
    return "boolean" if column.length in (None, 1) else f"{_DATA}.Bits"


def _mysql_float(column: SourceColumn, _properties: _Properties) -> str:
    """FLOAT with digits in brackets, or of more than 24 bits, is sent as a double."""
    return "double" if column.scale is not None or (column.length or 0) > 24 else "float"


def _unsigned_bigint(_column: SourceColumn, properties: _Properties) -> str:
    """With `precise` it is Connect's Decimal without a precision, for every decimal.handling.mode."""
    is_long = properties.get(UNSIGNED_MODE, "long") == "long"
    return "bigint" if is_long else f"{DECIMAL}({MAX_PRECISION},0)"


def _oracle_number(column: SourceColumn, properties: _Properties) -> str | None:
    """NUMBER without digits in brackets is a decimal of any scale; whole numbers are sent as small as they can be."""
    if column.length in (None, 0):
        return f"{_DATA}.VariableScaleDecimal" if properties[DECIMAL_MODE] == "precise" else None
    scale = column.scale or 0
    assert column.length is not None
    whole = column.length - scale
    if scale <= 0 and whole < 19:
        return "smallint" if whole < 5 else "int" if whole < 10 else "bigint"
    if scale < 0:
        return None
    return _of_digits(column.length, scale, properties)


def _oracle_digits(column: SourceColumn) -> int:
    digits = _in_brackets(column)
    return digits if digits is not None else 6 if column.length is None else column.length


def _oracle_interval(_column: SourceColumn, properties: _Properties) -> str:
    as_text = properties.get("interval.handling.mode", "numeric") == "string"
    return f"{_TIME}.Interval" if as_text else f"{_TIME}.MicroDuration"


def _each(names: str, rule: _Rule | str) -> dict[str, _Rule | str]:
    return dict.fromkeys(names.split(","), rule)


_SQLSERVER: Mapping[str, _Rule | str] = {
    "BIT": "boolean",
    **_each("TINYINT,SMALLINT", "smallint"),
    "INT": "int",
    "BIGINT": "bigint",
    "REAL": "float",
    "FLOAT": "double",
    **_each("CHAR,VARCHAR,TEXT,NCHAR,NVARCHAR,NTEXT,UNIQUEIDENTIFIER,SYSNAME", "string"),
    "XML": f"{_DATA}.Xml",
    "DATE": _date,
    "TIME": _time(_by_scale(7)),
    "DATETIME": _timestamp(_fixed(3)),
    "SMALLDATETIME": _timestamp(_fixed(0)),
    "DATETIME2": _timestamp(_by_scale(7)),
    "DATETIMEOFFSET": f"{_TIME}.ZonedTimestamp",
    **_each("DECIMAL,NUMERIC", _decimal),
    "MONEY": _money(19, 4),
    "SMALLMONEY": _money(10, 4),
    **_each("BINARY,VARBINARY,IMAGE,ROWVERSION,TIMESTAMP", "binary"),
    **_each("GEOMETRY,GEOGRAPHY", _GEOMETRY),
    # A column that counts by itself.
    **_each("TINYINT IDENTITY,SMALLINT IDENTITY", "smallint"),
    "INT IDENTITY": "int",
    "BIGINT IDENTITY": "bigint",
    **_each("DECIMAL IDENTITY,NUMERIC IDENTITY", _decimal),
}

_DB2: Mapping[str, _Rule | str] = {
    "BOOLEAN": "boolean",
    "SMALLINT": "smallint",
    **_each("INTEGER,INT", "int"),
    "BIGINT": "bigint",
    "REAL": "float",
    **_each("DOUBLE,FLOAT", "double"),
    **_each("CHAR,CHARACTER,VARCHAR,LONG VARCHAR,CLOB,GRAPHIC,VARGRAPHIC,DBCLOB", "string"),
    "XML": f"{_DATA}.Xml",
    "DATE": _date,
    "TIME": _time(_fixed(0)),
    "TIMESTAMP": _timestamp(_by_scale(6)),
    **_each("DECIMAL,NUMERIC", _decimal),
    **_each("BINARY,VARBINARY,BLOB,CHAR FOR BIT DATA,VARCHAR FOR BIT DATA,LONG VARCHAR FOR BIT DATA", "binary"),
}

_MYSQL: Mapping[str, _Rule | str] = {
    **_each("BOOL,BOOLEAN", "boolean"),
    "BIT": _bits,
    **_each("TINYINT,TINYINT UNSIGNED,SMALLINT", "smallint"),
    **_each("SMALLINT UNSIGNED,MEDIUMINT,MEDIUMINT UNSIGNED,INT,INTEGER", "int"),
    **_each("INT UNSIGNED,INTEGER UNSIGNED,BIGINT", "bigint"),
    "BIGINT UNSIGNED": _unsigned_bigint,
    **_each("FLOAT,FLOAT UNSIGNED", _mysql_float),
    **_each("REAL,REAL UNSIGNED,DOUBLE,DOUBLE UNSIGNED,DOUBLE PRECISION", "double"),
    **_each("DECIMAL,DECIMAL UNSIGNED,NUMERIC,NUMERIC UNSIGNED,DEC,FIXED", _decimal),
    **_each("CHAR,VARCHAR,TINYTEXT,TEXT,MEDIUMTEXT,LONGTEXT,NCHAR,NVARCHAR,UUID,INET4,INET6", "string"),
    "JSON": f"{_DATA}.Json",
    "ENUM": f"{_DATA}.Enum",
    "SET": f"{_DATA}.EnumSet",
    **_each("BINARY,VARBINARY,TINYBLOB,BLOB,MEDIUMBLOB,LONGBLOB", "binary"),
    "YEAR": f"{_TIME}.Year",
    "DATE": _date,
    "TIME": _time(_by_length(0)),
    "DATETIME": _timestamp(_by_length(0)),
    "TIMESTAMP": f"{_TIME}.ZonedTimestamp",
    "POINT": _POINT,
    **_each("GEOMETRY,LINESTRING,POLYGON,MULTIPOINT,MULTILINESTRING,MULTIPOLYGON,GEOMETRYCOLLECTION", _GEOMETRY),
}

_ORACLE: Mapping[str, _Rule | str] = {
    **_each("CHAR,VARCHAR,VARCHAR2,NCHAR,NVARCHAR2,CLOB,NCLOB,LONG,ROWID,UROWID", "string"),
    "XMLTYPE": f"{_DATA}.Xml",
    **_each("NUMBER,NUMERIC,DECIMAL,INTEGER,INT,SMALLINT", _oracle_number),
    "FLOAT": lambda _column, properties: (
        f"{_DATA}.VariableScaleDecimal" if properties[DECIMAL_MODE] == "precise" else None
    ),
    "BINARY_FLOAT": "float",
    "BINARY_DOUBLE": "double",
    "DATE": _timestamp(_fixed(0)),
    "TIMESTAMP": _timestamp(_oracle_digits),
    **_each("TIMESTAMP WITH TIME ZONE,TIMESTAMP WITH LOCAL TIME ZONE", f"{_TIME}.ZonedTimestamp"),
    **_each("INTERVAL YEAR TO MONTH,INTERVAL DAY TO SECOND", _oracle_interval),
    **_each("RAW,BLOB", "binary"),
}

_RULES: Mapping[str, Mapping[str, _Rule | str]] = {
    "sqlserver": _SQLSERVER,
    "db2": _DB2,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "oracle": _ORACLE,
}
CONNECTORS_WITH_SCHEMA_TOPIC = tuple(_RULES)
"""The connectors that write a schema-change topic."""
