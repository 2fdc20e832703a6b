"""Reads the live table of a Db2 for Linux, Unix and Windows. The statements were not run on one: tests compare their
text, and run a part of them on H2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributary.verify.source import ReadPoint, at_lsn
from distributary.verify.sql_source import Ask, Dialect

_COLUMNS = (
    "SELECT COLNAME, CASE WHEN CODEPAGE = 0 AND TYPENAME IN ('CHARACTER', 'VARCHAR') THEN TYPENAME || ' FOR BIT DATA'"
    " ELSE TYPENAME END, LENGTH, SCALE FROM SYSCAT.COLUMNS WHERE TABSCHEMA = {schema} AND TABNAME = {table}"
)
_WHOLE = ("smallint", "integer", "bigint")
_TEXTS = ("character", "varchar", "graphic", "vargraphic")
_BYTES = ("character for bit data", "varchar for bit data", "binary", "varbinary")
_POINT = (
    "SELECT HEX(MAX(t.SYNCHPOINT)) FROM (SELECT CD_NEW_SYNCHPOINT AS SYNCHPOINT FROM ASNCDC.IBMSNAP_REGISTER UNION ALL"
    " SELECT SYNCHPOINT FROM ASNCDC.IBMSNAP_REGISTER) t"
)
_LSN_DIGITS = 32


def _declared(row: Sequence[Any]) -> str:
    kind, length, scale = str(row[0]).lower(), row[1], row[2]
    if kind == "decimal":
        return f"decimal({length},{scale})"
    if kind.endswith("for bit data"):
        return f"{kind.partition(' ')[0]}({length}) for bit data"
    if kind in (*_TEXTS, "binary", "varbinary"):
        return f"{kind}({length})"
    return f"timestamp({scale})" if kind == "timestamp" else kind


def begin(_ask: Ask) -> str:
    return "; its rows are not of one moment"


def read_point(ask: Ask) -> ReadPoint:
    """The last change that the capture agent has read. Changes that were committed after the read have higher LSNs."""
    rows = ask(_POINT)
    return at_lsn(rows[0][0] if rows else None, _LSN_DIGITS, "nothing is captured")


DIALECT = Dialect(
    name="Db2",
    extra="db2",
    connectors=("db2",),
    schemes={"db2": "db2+ibm_db", "ibm_db_sa": "db2+ibm_db"},
    columns=_COLUMNS,
    declared=_declared,
    texts={
        **dict.fromkeys((*_WHOLE, "decimal"), "VARCHAR({})"),
        **dict.fromkeys(_TEXTS, "{}"),
        "date": "CHAR({}, ISO)",
        "timestamp": "VARCHAR_FORMAT({}, 'YYYY-MM-DD HH24:MI:SS.FF6')",
        "boolean": "CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END",
        **dict.fromkeys(_BYTES, "HEX({})"),
    },
    comparable={
        **dict.fromkeys(("smallint", "int", "bigint"), _WHOLE),
        "boolean": ("boolean",),
        "decimal": ("decimal",),
        "string": _TEXTS,
        "date": ("date",),
        "timestamp_ntz": ("timestamp",),
        "timestamp": ("timestamp",),  # by `timestamps: utc`
        "binary": _BYTES,
    },
    begin=begin,
    point=read_point,
    values={"binary": "unhex({text})"},
)
DB2 = DIALECT.source()
