"""Reads the live table of a SQL Server. The statements were not run on one: tests compare their
text, and run a part of them on H2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributary.verify.source import ReadPoint, at_lsn
from distributary.verify.sql_source import Ask, Dialect

_COLUMNS = (
    "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION"
    " FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DECIMALS = ("decimal", "numeric", "money", "smallmoney")
_TEXTS = ("char", "varchar", "nchar", "nvarchar", "text", "ntext")
_TIMES = ("datetime", "smalldatetime", "datetime2")
_BYTES = ("binary", "varbinary", "timestamp")
_ISO_UTC = "CONVERT(varchar(30), CAST(SWITCHOFFSET({}, '+00:00') AS datetime2(7)), 121) + 'Z'"
_LSN_DIGITS = 20


def _declared(row: Sequence[Any]) -> str:
    kind, length, precision, scale, fraction = (str(row[0]).lower(), *row[1:5])
    if kind in ("decimal", "numeric"):
        return f"{kind}({precision},{scale})"
    if kind in ("datetime2", "datetimeoffset"):
        return f"{kind}({fraction})"
    if kind in ("char", "varchar", "nchar", "nvarchar", "binary", "varbinary"):
        return f"{kind}({'max' if length in (None, -1) else length})"
    return kind


def begin(ask: Ask) -> str:
    """Reads as of one moment where the database allows that."""
    rows = ask("SELECT snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()")
    if rows and rows[0][0] == 1:
        ask("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
        return ""
    return "; its rows are not of one moment (ALLOW_SNAPSHOT_ISOLATION is off)"


def read_point(ask: Ask) -> ReadPoint:
    """The last change that the capture job has read. Changes that were committed after the read have higher LSNs."""
    rows = ask("SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 2)")
    return at_lsn(rows[0][0] if rows else None, _LSN_DIGITS, "change data capture is off")


DIALECT = Dialect(
    name="SQL Server",
    extra="sqlserver",
    connectors=("sqlserver",),
    schemes={"mssql": "mssql+pymssql", "sqlserver": "mssql+pymssql", "mssql+pyodbc": "mssql+pyodbc"},
    columns=_COLUMNS,
    declared=_declared,
    texts={
        **dict.fromkeys((*_WHOLE, "bit"), "CONVERT(varchar(20), {})"),
        "decimal": "CONVERT(varchar(60), {})",
        "numeric": "CONVERT(varchar(60), {})",
        "money": "CONVERT(varchar(60), CONVERT(decimal(19, 4), {}))",
        "smallmoney": "CONVERT(varchar(60), CONVERT(decimal(19, 4), {}))",
        "float": "CONVERT(varchar(40), {}, 3)",  # all digits
        "real": "CONVERT(varchar(40), {}, 3)",
        **dict.fromkeys(_TEXTS, "CONVERT(nvarchar(max), {})"),
        "uniqueidentifier": "CONVERT(char(36), {})",
        "date": "CONVERT(char(10), {}, 23)",
        **dict.fromkeys(_TIMES, "CONVERT(varchar(30), {}, 121)"),
        "datetimeoffset": _ISO_UTC,
        **dict.fromkeys(_BYTES, "CONVERT(varchar(max), CONVERT(varbinary(max), {}), 2)"),
    },
    comparable={
        **dict.fromkeys(("smallint", "int", "bigint"), _WHOLE),
        "boolean": ("bit",),
        "decimal": _DECIMALS,
        "float": ("real",),
        "double": ("float", "real"),
        "string": (*_TEXTS, "uniqueidentifier"),
        "date": ("date",),
        "timestamp_ntz": _TIMES,
        "timestamp": ("datetimeoffset", *(_TIMES)),  # those without a zone by `timestamps: utc`
        "binary": _BYTES,
    },
    begin=begin,
    point=read_point,
    values={"boolean": "({text} = '1')", "binary": "unhex({text})"},
)
SQLSERVER = DIALECT.source()
