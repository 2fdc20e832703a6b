"""Dates: counts of days since 1970-01-01, and ISO texts. Both become DATE, in any year that 32 bits of days reach.

PostgreSQL's infinite dates, which stream and snapshot write differently (seen in recorded events of Debezium 3.6),
become 9999-12-31 and 0001-01-01.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from distributary.types.base import (
    KAFKA,
    TIME,
    BadValue,
    ColumnType,
    Converted,
    TypeNote,
    convert_each,
    note,
    only_text,
    with_values,
)
from distributary.types.calendar import FIRST_DAY, LAST_DAY, day_number, read_instant
from distributary.types.numbers import INT, whole_number
from distributary.types.strict_json import Json, Number

_INFINITE_DAYS = {
    -2147472692: LAST_DAY,
    -622191234: LAST_DAY,
    -2147472691: FIRST_DAY,
    -625821272: FIRST_DAY,
}
_INFINITE_TEXTS = {
    "+292278994-08-16Z": LAST_DAY,
    "-5877611-06-21Z": LAST_DAY,
    "+292269055-12-02Z": FIRST_DAY,
    "-5877611-06-22Z": FIRST_DAY,
}
_DAY = re.compile(r"[ \t\r\n]*([+-]?[0-9]{4,7})-([0-9]{1,2})-([0-9]{1,2})Z?[ \t\r\n]*")
_MICROSECONDS = 86_400_000_000
_BITS_32 = range(-(2**31), 2**31)


def _convert_days(values: Sequence[Any]) -> Converted:
    numbers, bad = INT.convert(values)
    days = numbers.to_numpy(zero_copy_only=False) if not numbers.null_count else np.asarray(numbers.fill_null(0))
    if len(days) and days.min() <= max(_INFINITE_DAYS):
        days = days.copy()
        for sent, day in _INFINITE_DAYS.items():
            days[days == sent] = day
    return Converted(with_values(numbers, pa.date32(), np.ascontiguousarray(days)), bad)


def days_of_text(text: str) -> int:
    """Days since 1970-01-01 of an ISO date, or of an ISO timestamp at midnight in UTC. Raises BadValue."""
    if text in _INFINITE_TEXTS:
        return _INFINITE_TEXTS[text]
    if match := _DAY.fullmatch(text):
        day = day_number(*map(int, match.groups()))
    else:
        day, rest = divmod(read_instant(text), _MICROSECONDS)
        if rest:
            raise BadValue(text)
    if day not in _BITS_32:
        raise BadValue(text)
    return day


def _convert_texts(values: Sequence[Any]) -> Converted:
    days, bad = convert_each(pa.int32(), days_of_text)(values)
    return Converted(days.view(pa.date32()), bad)


def _convert_either(values: Sequence[Any]) -> Converted:
    """Days as numbers and as texts of numbers, and ISO texts."""
    if any(type(value) is str for value in values):
        values = [_day_number_or_text(value) if isinstance(value, str) else value for value in values]
        bad = [index for index, value in enumerate(values) if value is _BAD]
        days, too_large = _convert_days([None if value is _BAD else value for value in values])
        return Converted(days, sorted([*bad, *too_large]))
    return _convert_days(values)


_BAD = object()


def _day_number_or_text(text: str) -> Any:
    try:
        return int(text) if re.fullmatch(r"-?[0-9]{1,12}", text) else days_of_text(text)
    except BadValue:
        return _BAD


def _restate_either(value: Json) -> Any:
    return whole_number(value) if isinstance(value, Number) else only_text(value)


DATE = ColumnType("date", pa.date32(), int, _convert_days, whole_number)
DATE_TEXT = ColumnType("date", pa.date32(), str, _convert_texts, only_text, True)
DATE_NAMED = ColumnType("date", pa.date32(), int | str, _convert_either, _restate_either, True)
"""A column that `columns` declares as a date: its values may be numbers or texts."""

_EDGES = "infinity: 9999-12-31, -infinity: 0001-01-01; any year that 32 bits of days reach, beyond: quarantine"
NOTES: tuple[TypeNote, ...] = (
    note("int32", f"{TIME}.Date", f"{KAFKA}.Date", wire="a number of days since 1970", edges=_EDGES),
    note("string", f"{TIME}.IsoDate", wire="ISO 8601", edges=_EDGES),
)
