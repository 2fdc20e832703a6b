"""Dates and times as structs of their parts (`time.precision.mode: structured`, Debezium 3.7), for columns to which the
config gives a type of their own: else they stay structs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from distributary.types.base import TIME, BadValue, ColumnType, Converted, convert_each
from distributary.types.calendar import FIRST_DAY, FIRST_INSTANT, LAST_DAY, LAST_INSTANT, day_number

_DATE, _TIME = f"{TIME}.StructuredDate", f"{TIME}.StructuredTime"
_TIMESTAMP, _ZONED = f"{TIME}.StructuredTimestamp", f"{TIME}.StructuredZonedTimestamp"
_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time, only to compute its zone's offset
_Parts = Mapping[str, Any]


def of_structured(name: str | None, own: ColumnType, fields: Sequence[str], wanted: ColumnType) -> ColumnType | None:
    """The type that converts a struct to a date, a time or a point in time; None if there is no such conversion. `own`:
    the struct's type, with these fields."""
    of_parts = _OF_PARTS.get((name or "", wanted.spark))
    if of_parts is None:
        return None

    def of_value(value: Any) -> Any:
        return of_parts(dict(zip(fields, msgspec.structs.astuple(value), strict=True)))

    convert = convert_each(wanted.arrow, of_value)
    return replace(own, spark=wanted.spark, arrow=wanted.arrow, convert=lambda values: Converted(*convert(values)))


def _infinite(parts: _Parts, low: int, high: int) -> int | None:
    special = parts.get("specialValue")
    if special is None:
        return None
    if special not in ("POSITIVE_INFINITY", "NEGATIVE_INFINITY"):
        raise BadValue(special)
    return high if special == "POSITIVE_INFINITY" else low


def _number(parts: _Parts, name: str) -> int:
    number = parts.get(name)
    if not isinstance(number, int):
        raise BadValue(name)
    return number


def _days(parts: _Parts) -> int:
    infinite = _infinite(parts, FIRST_DAY, LAST_DAY)
    if infinite is not None:
        return infinite
    return _within(32, day_number(_number(parts, "year"), _number(parts, "month"), _number(parts, "day")))


def _within(bits: int, number: int) -> int:
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise BadValue(number)
    return number


def _day_micros(parts: _Parts, last_hour: int = 23) -> int:
    hour, minute, second = (_number(parts, name) for name in ("hour", "minute", "second"))
    nanos = parts.get("nanos") or 0
    if not (0 <= hour <= last_hour and 0 <= minute < 60 and 0 <= second < 61 and 0 <= nanos < 10**9):
        raise BadValue(parts)
    return ((hour * 60 + minute) * 60 + second) * 10**6 + nanos // 1000


def _instant(parts: _Parts) -> int:
    infinite = _infinite(parts, FIRST_INSTANT, LAST_INSTANT)
    return infinite if infinite is not None else _within(64, _days(parts) * _SECONDS * 10**6 + _day_micros(parts))


def _zoned(parts: _Parts) -> int:
    infinite = _infinite(parts, FIRST_INSTANT, LAST_INSTANT)
    if infinite is not None:
        return infinite
    local, offset = _instant(parts), parts.get("offsetSeconds")
    if offset is None:
        try:
            zone = ZoneInfo(parts["zoneId"])
            delta = (_EPOCH + timedelta(seconds=local // 10**6)).replace(tzinfo=zone).utcoffset()
        except (KeyError, TypeError, ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
            raise BadValue(parts) from None
        offset = 0 if delta is None else int(delta.total_seconds())
    return _within(64, local - int(offset) * 10**6)


def _time_text(parts: _Parts) -> str:
    """ISO 8601 with 3, 6 or 9 digits, as the precision has it."""
    micros = _day_micros(parts, last_hour=24)  # 24:00 is the end of a day
    precision = parts.get("precision")
    digits = 9 if precision is None or precision > 6 else 6 if precision > 3 else 3
    nanos = f"{parts.get('nanos') or 0:09}"
    if nanos[digits:].strip("0"):
        digits = 9
    seconds = micros // 10**6
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{nanos[:digits]}"


_OF_PARTS: Mapping[tuple[str, str], Callable[[_Parts], Any]] = {
    (_DATE, "date"): _days,
    (_TIME, "string"): _time_text,
    (_TIMESTAMP, "timestamp_ntz"): _instant,
    (_TIMESTAMP, "timestamp"): _instant,
    (_ZONED, "timestamp"): _zoned,
}
