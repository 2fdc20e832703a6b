"""Reads the live table of an Oracle. The statements were not run on one: tests compare their
text, and run a part of them on H2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributary.verify.source import ReadPoint
from distributary.verify.sql_source import Ask, Dialect

_COLUMNS = (
    "SELECT COLUMN_NAME, REGEXP_REPLACE(DATA_TYPE, '[(][0-9]+[)]', ''), DATA_TYPE, DATA_LENGTH, CHAR_LENGTH,"
    " DATA_PRECISION, DATA_SCALE FROM ALL_TAB_COLUMNS WHERE OWNER = {schema} AND TABLE_NAME = {table}"
)
_TEXTS = ("varchar2", "nvarchar2", "char", "nchar")
_NUMBER = "TO_CHAR({}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
_TIME = "TO_CHAR({}, 'YYYY-MM-DD HH24:MI:SS.FF9')"
_UTC = "TO_CHAR(SYS_EXTRACT_UTC({}), 'YYYY-MM-DD HH24:MI:SS.FF9') || 'Z'"
_ZONED = ("timestamp with time zone", "timestamp with local time zone")


def _declared(row: Sequence[Any]) -> str:
    kind, whole, length, characters, precision, scale = (str(row[0]).lower(), *row[1:6])
    if kind in ("varchar2", "char"):
        return f"{kind}({characters} char)"
    if kind in ("nvarchar2", "nchar"):
        return f"{kind}({characters})"
    if kind == "raw":
        return f"raw({length})"
    if kind == "number":
        return "number" if precision is None else f"number({precision},{scale or 0})"
    return str(whole).lower()


def begin(ask: Ask) -> str:
    """Texts of keys are read in these forms. A statement of Oracle reads all its rows as of one moment."""
    for setting, form in (
        ("NLS_DATE_FORMAT", "YYYY-MM-DD HH24:MI:SS"),
        ("NLS_TIMESTAMP_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF"),
        ("NLS_TIMESTAMP_TZ_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF"),
        ("NLS_NUMERIC_CHARACTERS", ".,"),
        ("TIME_ZONE", "+00:00"),
    ):
        ask(f"ALTER SESSION SET {setting} = '{form}'")
    return ""


def read_point(ask: Ask) -> ReadPoint:
    rows = ask("SELECT TO_CHAR(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER) FROM DUAL")
    scn = int(rows[0][0])
    return ReadPoint(f"SCN {scn}", lambda position: f"substring({position}, 5, 20) > '{scn:020}'")


DIALECT = Dialect(
    name="Oracle",
    extra="oracle",
    connectors=("oracle",),
    schemes={"oracle": "oracle+oracledb"},
    columns=_COLUMNS,
    declared=_declared,
    texts={
        "number": _NUMBER,
        **dict.fromkeys(_TEXTS, "{}"),
        "date": "TO_CHAR({}, 'YYYY-MM-DD HH24:MI:SS')",
        "timestamp": _TIME,
        **dict.fromkeys(_ZONED, _UTC),
        "raw": "RAWTOHEX({})",
    },
    comparable={
        **dict.fromkeys(("smallint", "int", "bigint", "decimal", "double"), ("number",)),
        "string": (*_TEXTS, "number"),
        "timestamp_ntz": ("date", "timestamp"),
        "timestamp": (*_ZONED, "date", "timestamp"),  # those without a zone by `timestamps: utc`
        "binary": ("raw",),
    },
    begin=begin,
    point=read_point,
    # TM9 writes no zero before the point.
    values={"binary": "unhex({text})", "number string": "regexp_replace({text}, '^(-?)[.]([0-9]+)$', '$10.$2')"},
)
ORACLE = DIALECT.source()
