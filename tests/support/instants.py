"""Dates and times as databases write them, converted to counts: all years, minimum and maximum included.

The calendar is the Gregorian one throughout, as PostgreSQL's and Spark's are. Python's own dates begin at the year 1
and end at 9999, so the counting is done here.
"""

from __future__ import annotations

import calendar
import re

DAY = 86_400_000_000
"""Microseconds of a day."""

LAST_DATE, FIRST_DATE = 2_932_896, -719_162
"""9999-12-31 and 0001-01-01, which stand for the infinite dates, as days."""

LAST_INSTANT, FIRST_INSTANT = (LAST_DATE + 1) * DAY - 1, FIRST_DATE * DAY
"""9999-12-31 23:59:59.999999 and 0001-01-01 00:00:00, which stand for the infinite timestamps, as microseconds."""

_DATE = re.compile(r"([+-]?\d{4,})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(-?)(\d{2,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE = re.compile(r"Z|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?")


def days(text: str) -> int:
    """`2024-02-29`, `4713-01-01 BC`, `infinity` as days since 1970-01-01. Raises ValueError for anything else."""
    if text in ("infinity", "-infinity"):
        return LAST_DATE if text == "infinity" else FIRST_DATE
    before_christ = text.endswith(" BC")
    match = _DATE.fullmatch(text.removesuffix(" BC"))
    if match is None:
        raise ValueError(f"not a date: {text}")
    year, month, day = (int(part) for part in match.groups())
    year = 1 - year if before_christ else year
    if not 1 <= month <= 12 or not 1 <= day <= _month_days(year, month):
        raise ValueError(f"no such day: {text}")
    return _days(year, month, day)


def clock(text: str) -> int:
    """`12:34:56.5`, `24:00:00`, `-838:59:59` as microseconds. Raises ValueError for anything else."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text}")
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    count = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -count if sign else count


def zone(text: str) -> int:
    """`+05:30`, `-05`, `Z` as the microseconds that local time is ahead of UTC. Raises ValueError for anything else."""
    match = _ZONE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a zone: {text}")
    if text == "Z":
        return 0
    sign, hours, minutes, seconds = match.groups()
    count = clock(f"{hours}:{minutes or '00'}:{seconds or '00'}")
    return -count if sign == "-" else count


def instant(text: str) -> int:
    """`2024-02-29 12:34:56.5`, with or without a zone, also with `T`, `BC`, or infinite: microseconds since 1970-01-01.

    With a zone it is the instant, without one the wall clock. Raises ValueError for anything else.
    """
    if text in ("infinity", "-infinity"):
        return LAST_INSTANT if text == "infinity" else FIRST_INSTANT
    era = " BC" if text.endswith(" BC") else ""
    date, _, rest = text.removesuffix(" BC").replace("T", " ").partition(" ")
    match = _CLOCK.match(rest)
    if match is None:
        raise ValueError(f"not a timestamp: {text}")
    ahead = zone(rest[match.end() :]) if match.end() < len(rest) else 0
    return days(date + era) * DAY + clock(match.group()) - ahead


def time_text(microseconds: int, digits: int) -> str:
    """A time of day as ISO 8601 with `digits` fraction digits; hours beyond 23 and negative times are kept."""
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}"[: len(sign) + 9 + digits + (hours > 99)]


def _month_days(year: int, month: int) -> int:
    return calendar.monthrange(2000 if calendar.isleap(year) else 2001, month)[1]


def _days(year: int, month: int, day: int) -> int:
    """Counted in years that begin in March, so that the leap day is the last one."""
    if month < 3:
        year, month = year - 1, month + 12
    leap_days = year // 4 - year // 100 + year // 400
    return year * 365 + leap_days + (153 * month - 457) // 5 + day - 719_469
