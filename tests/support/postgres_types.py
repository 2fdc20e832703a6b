"""PostgreSQL's types by their names in `format_type`, with the expected type in the lake.

`settings` are the connector's: in some modes it sends text for a number, or fewer digits than the source has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

import pyarrow as pa
from tests.support import geometry, instants, postgres_literals
from tests.support.comparable import Value, identical
from tests.support.source_type import (
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    NTZ,
    TEXT,
    UNSCALED,
    UTC,
    SourceType,
    decimal,
)


def postgres_type(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SourceType:
    """What a column of PostgreSQL's type `name` becomes. Raises KeyError for a type that is not known here."""
    if name.endswith("[]"):
        return _array(postgres_type(name.removesuffix("[]"), settings))
    word, numbers, rest = _parts(name)
    if settings.get("decimal.handling.mode") == "string" and word in _DECIMALS:
        return _DECIMALS[word]
    if word == "numeric" and numbers:
        return decimal(numbers[0], numbers[1])
    if word == "character" and rest == "" and numbers:
        return _padded(numbers[0])
    if word == "bit":
        return BIT_STRING if rest or numbers != [1] else SourceType(pa.bool_(), lambda text: text == "1")
    mode = settings.get("time.precision.mode", "adaptive")
    if word == "time" and rest == "without time zone":
        return TEXT if mode == "isostring" else _time_of_day(3 if mode == "connect" else numbers[0] if numbers else 6)
    if word == "timestamp" and rest == "without time zone":
        return _IN_MILLISECONDS if mode == "connect" else SourceType(NTZ, instants.instant)
    if word == "timestamp":
        return SourceType(UTC, instants.instant)
    return _BY_NAME[f"{word} {rest}".strip()]


def _parts(name: str) -> tuple[str, list[int], str]:
    """`timestamp(3) with time zone` as its first word, the numbers in the brackets, and what follows."""
    match = re.fullmatch(r'("?\w+"?)\s*(?:(varying|precision)?\s*(?:\((-?\d+(?:,-?\d+)*)\))?\s*(.*))', name)
    if match is None:
        raise KeyError(name)
    word, second, numbers, rest = match.groups()
    return word, [int(number) for number in numbers.split(",")] if numbers else [], f"{second or ''} {rest}".strip()


def _array(element: SourceType) -> SourceType:
    def read(text: str) -> Value:
        return postgres_literals.array(text, element.read)

    def same(truth: Value, lake: Value) -> bool:
        return len(truth) == len(lake) and all(
            one is other is None or (one is not None and other is not None and element.same(one, other))
            for one, other in zip(truth, lake, strict=True)
        )

    return SourceType(pa.list_(element.arrow), read, same)


def _padded(length: int) -> SourceType:
    """`character(n)` is blank-padded; the truth was written without the blanks, because the cast to text cuts them."""
    return SourceType(pa.string(), lambda text: text.ljust(length))


def _blank_padded_same(truth: Value, lake: Value) -> bool:
    return identical(truth, lake.rstrip(" "))


def _time_of_day(digits: int) -> SourceType:
    """Milliseconds on the wire up to three digits, microseconds beyond."""
    return SourceType(pa.string(), lambda text: instants.time_text(instants.clock(text), 3 if digits <= 3 else 6))


def _zoned_time(text: str) -> Value:
    """The connector moves the time to UTC, within the day, and writes no fraction that is zero."""
    local, offset = re.fullmatch(r"([\d:.]+)([+-].*)", text).groups()  # type: ignore[union-attr]
    return (instants.clock(local) - instants.zone(offset)) % instants.DAY


def _same_zoned_time(truth: Value, lake: Value) -> bool:
    return bool(re.fullmatch(r"[\d:.]+Z", lake)) and identical(truth, instants.clock(lake.removesuffix("Z")))


def _money(text: str) -> Value:
    return Decimal(text.replace("$", "").replace(",", ""))


def _bit_string(text: str) -> Value:
    """Little-endian; the zero bytes above the highest set bit don't cross the wire."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _interval(text: str) -> Value:
    """Microseconds, a month being a twelfth of 365.25 days, as the connector counts by default."""
    second = 1_000_000
    unit = {"year": 12 * 2_629_800, "mon": 2_629_800, "day": 86_400}
    count = 0
    for amount, name in re.findall(r"([+-]?\d+) (year|mon|day)s?", text):
        count += int(amount) * unit[name] * second
    clock = re.search(r"[+-]?\d+:\d\d:\d\d(\.\d+)?$", text)
    return count + (instants.clock(clock.group().removeprefix("+")) if clock else 0)


def _hstore_same(truth: Value, lake: Value) -> bool:
    return identical(truth, json.loads(lake))


def _address(text: str) -> Value:
    """`inet` of one host: the truth's cast to text adds the mask that the value itself is written without."""
    return text.removesuffix("/128" if ":" in text else "/32")


def _whole_milliseconds(text: str) -> Value:
    """Microseconds, of which the connector cuts what is below the millisecond; infinity is stored as in other types."""
    count = instants.instant(text)
    return count if text.endswith("infinity") else count // 1000 * 1000


_IN_MILLISECONDS = SourceType(NTZ, _whole_milliseconds)

BIT_STRING = SourceType(pa.binary(), _bit_string)

_DECIMALS = {
    "numeric": UNSCALED,
    "domnum": TEXT,
    "money": SourceType(pa.string(), lambda text: str(_money(text))),
}
"""The lake's value of decimals that the connector writes as text: that text."""

_BY_NAME: dict[str, SourceType] = {
    "smallint": INT16,
    "integer": INT32,
    "bigint": INT64,
    "oid": INT64,
    "numeric": UNSCALED,
    "money": SourceType(pa.decimal128(38, 2), _money),
    "real": FLOAT32,
    "double precision": FLOAT64,
    "boolean": SourceType(pa.bool_(), lambda text: {"true": True, "t": True, "false": False, "f": False}[text]),
    "bpchar": SourceType(pa.string(), str, _blank_padded_same),
    "bytea": SourceType(pa.binary(), lambda text: bytes.fromhex(text.removeprefix("\\x"))),
    "date": SourceType(pa.date32(), instants.days),
    "time with time zone": SourceType(pa.string(), _zoned_time, _same_zoned_time),
    "interval": SourceType(pa.int64(), _interval),
    "inet": SourceType(pa.string(), _address),
    "hstore": SourceType(pa.string(), postgres_literals.hstore, _hstore_same),
    "point": SourceType(geometry.POINT, geometry.postgres_point),
    # The domains and the enum that the recordings declare.
    "posint": INT32,
    "domtext": TEXT,
    "domnum": decimal(8, 3),
    "mood": TEXT,
    **dict.fromkeys(
        (
            *('"char"', "character varying", "text", "name", "citext", "ltree", "uuid", "json", "jsonb", "xml"),
            *("cidr", "macaddr", "macaddr8", "tsvector"),
            *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
        ),
        TEXT,
    ),
}

ABSENT = ("line", "box", "path", "polygon", "circle", "comp", "pg_lsn", "int4multirange", "jsonpath")
"""Types that the connector does not know and leaves out of every record."""
