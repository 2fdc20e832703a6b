"""The `columns` that a user writes for PostgreSQL tables whose records have no schema.

The connector has its defaults.
"""

from __future__ import annotations

import re

from tests.support.recorded import TruthTable

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_POINT = "struct<x:double,y:double,wkb:binary,srid:int>"
_BY_NAME = {
    "smallint": "smallint",
    "integer": "int",
    "posint": "int",
    "bigint": "bigint",
    "oid": "bigint",
    "interval": "bigint",
    "numeric": "io.debezium.data.VariableScaleDecimal",
    "numeric(60,20)": f"{_DECIMAL}(60,20)",
    # The connector takes the negative scale for a positive one, modulo 2048.
    "numeric(5,-2)": f"{_DECIMAL}(5,2046)",
    "domnum": "decimal(8,3)",
    "money": "decimal(38,2)",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "bit(1)": "boolean",
    "bytea": "binary",
    "date": "date",
    "point": _POINT,
}


def columns_of(table: TruthTable) -> dict[str, str]:
    """The type of every column. Text needs one too where all values may be NULL, because no value shows its type
    then."""
    return {column.name: _type(column.type) for column in table.columns}


def _type(name: str) -> str:
    if name.endswith("[]"):
        return f"array<{_type(name.removesuffix('[]'))}>"
    if name in _BY_NAME:
        return _BY_NAME[name]
    if digits := re.fullmatch(r"numeric(\(\d+,\d+\))", name):
        return f"decimal{digits[1]}"
    if name.startswith("bit"):
        return "io.debezium.data.Bits"
    if digits := re.fullmatch(r"(time|timestamp)(?:\((\d)\))? without time zone", name):
        return f"{digits[1]}_{'ms' if int(digits[2] or 6) <= 3 else 'us'}"
    return "timestamp" if name.startswith("timestamp") else "string"
