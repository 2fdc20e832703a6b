"""MariaDB's types by their names in `information_schema`, with the expected type in the lake."""

from __future__ import annotations

import re

import pyarrow as pa
from tests.support import geometry, instants
from tests.support.comparable import Value, float32
from tests.support.source_type import FLOAT64, INT16, INT32, INT64, NTZ, TEXT, UTC, SourceType, decimal

_INTEGERS = {
    # signed, unsigned: the smallest type that holds every value
    "tinyint": (INT16, INT16),
    "smallint": (INT16, INT32),
    "mediumint": (INT32, INT32),
    "int": (INT32, INT64),
    # An unsigned bigint stays a long under the connector's default, and wraps: wire_limits.py names where.
    "bigint": (INT64, INT64),
}
_BINARIES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "uuid")


def mariadb_type(name: str) -> SourceType:
    """What a column of MariaDB's type `name` becomes. Raises KeyError for a type that is not known here."""
    match = re.match(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?", name)
    if match is None:
        raise KeyError(name)
    word, first, second = match.group(1), int(match.group(2) or 0), int(match.group(3) or 0)
    if word in _INTEGERS:
        return _INTEGERS[word]["unsigned" in name]
    if word in _TEXTS:
        return TEXT
    if word in _BINARIES:
        return SourceType(pa.binary(), lambda text: bytes.fromhex(text.removeprefix("0x")))
    if word == "decimal":
        return decimal(first, second)
    if word == "float":
        return _float(has_scale=first > 0)
    if word == "bit":
        return _bit(first)
    if word == "datetime":
        return SourceType(NTZ, instants.instant)
    return _BY_NAME[word]


def _float(has_scale: bool) -> SourceType:
    """MariaDB writes six digits of a FLOAT as text; FLOAT(M,D) leaves the connector as a double of the same value."""

    def same(truth: Value, lake: Value) -> bool:
        return float32(lake) == lake and float(f"{lake:.6g}") == float(truth)

    return SourceType(pa.float64() if has_scale else pa.float32(), float, same)


def _bit(length: int) -> SourceType:
    if length == 1:
        return SourceType(pa.bool_(), lambda text: text == "0x1")
    return SourceType(pa.binary(), lambda text: int(text, 16).to_bytes((length + 7) // 8, "little"))


_BY_NAME = {
    "double": FLOAT64,
    "year": INT32,
    "date": SourceType(pa.date32(), instants.days),
    "time": SourceType(pa.string(), lambda text: instants.time_text(instants.clock(text), 6)),
    "timestamp": SourceType(UTC, instants.instant),
    "point": SourceType(geometry.POINT, geometry.point_text),
    "geometry": SourceType(geometry.GEOMETRY, geometry.geometry_text),
}
