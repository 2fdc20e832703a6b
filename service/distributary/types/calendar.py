"""Days and instants of ISO texts, counted in the Gregorian calendar of any year: Python's dates end at 9999."""

from __future__ import annotations

import re
from calendar import isleap

from distributary.types.base import BadValue

LAST_DAY, FIRST_DAY = 2_932_896, -719_162
"""9999-12-31 and 0001-01-01, in days since 1970-01-01."""
LAST_INSTANT, FIRST_INSTANT = 253_402_300_799_999_999, -62_135_596_800_000_000
"""9999-12-31 23:59:59.999999 and 0001-01-01 00:00:00, in microseconds since 1970-01-01."""

_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_INSTANT = re.compile(
    r"[ \t\r\n]*([+-]?[0-9]{4,7})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:[.]([0-9]{0,18}))?)?)?)?"
    r"[ ]?(Z|UTC|[+-][0-9]{1,2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?[ \t\r\n]*"
)
_DAY = 24 * 3600
"""Seconds. An offset is shorter, as for Arrow, which reads whole columns of usual texts."""


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01. Raises BadValue if there is no such day."""
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (month == 2 and isleap(year)):
        raise BadValue(f"{year}-{month}-{day}")
    # Years that begin in March have the leap day last.
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469


def read_instant(text: str) -> int:
    """Microseconds since 1970-01-01 of an ISO timestamp; in UTC where it names no offset. Finer digits are cut.

    Raises BadValue, also for an instant that 64 bits can't count.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise BadValue(text)
    year, month, day, hour, minute, second, part, zone = match.groups()
    hours, minutes, seconds = (int(unit or 0) for unit in (hour, minute, second))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise BadValue(text)
    count = day_number(int(year), int(month), int(day)) * _DAY + hours * 3600 + minutes * 60 + seconds
    micros = (count - _offset(zone)) * 1_000_000 + int((part or "").ljust(6, "0")[:6])
    if not -(2**63) <= micros < 2**63:
        raise BadValue(text)
    return micros


def _offset(zone: str | None) -> int:
    """Seconds that the zone's clock is ahead of UTC. Raises BadValue."""
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None
    digits = zone[1:].replace(":", "")
    digits = digits.zfill(2 if len(digits) <= 2 else len(digits) + len(digits) % 2)
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    ahead = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or ahead >= _DAY:
        raise BadValue(zone)
    return -ahead if zone[0] == "-" else ahead


def date_of_day(day: int) -> str:
    """The ISO date of a count of days since 1970-01-01, as Spark writes it."""
    shifted = day + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{of_year - (153 * shifted_month + 2) // 5 + 1:02d}"
