"""Dates and times as Debezium writes them, as Spark SQL text; infinities as the largest and smallest date.

PostgreSQL's infinities on the wire: dates as day counts that differ between stream and snapshot, timestamps as
fixed numbers or texts (seen in events recorded from Debezium 3.6).
"""

from __future__ import annotations

_LAST_DATE = "DATE'9999-12-31'"
_FIRST_DATE = "DATE'0001-01-01'"
_LAST = "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
_FIRST = "TIMESTAMP_NTZ'0001-01-01 00:00:00'"
# Spark's casts take less: of `2024` or `2024-02` they make the first day, of `12:00:00-05:00` this day's hour; and a
# DATE of whatever begins with a day.
_DAY = "^\\\\s*[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"


def date_of_days(days: str) -> str:
    """DATE of an INT count of days since 1970-01-01."""
    return (
        f"CASE WHEN {days} IN (-2147472692, -622191234) THEN {_LAST_DATE}"
        f" WHEN {days} IN (-2147472691, -625821272) THEN {_FIRST_DATE}"
        f" ELSE date_from_unix_date({days}) END"
    )


def date_of_text(iso: str) -> str:
    """DATE of an ISO date, with or without a closing Z, or of an ISO timestamp at midnight in UTC.

    Infinities as in date_of_days: of the snapshot, the stream.
    """
    moment = f"try_cast({iso} AS TIMESTAMP)"
    return (
        f"CASE WHEN {iso} IN ('+292278994-08-16Z', '-5877611-06-21Z') THEN {_LAST_DATE}"
        f" WHEN {iso} IN ('+292269055-12-02Z', '-5877611-06-22Z') THEN {_FIRST_DATE}"
        f" ELSE CASE WHEN {iso} RLIKE '{_DAY}Z?\\\\s*$' THEN try_cast(rtrim('Z', {iso}) AS DATE)"
        f" WHEN {iso} RLIKE '{_DAY}' AND unix_micros({moment}) % 86400000000 = 0 THEN CAST({moment} AS DATE) END END"
    )


def ntz_of_millis(n: str) -> str:
    """TIMESTAMP_NTZ of a BIGINT count of milliseconds."""
    return (
        f"CASE WHEN {n} IN (9223372036825200, 9223372036854775) THEN {_LAST}"
        f" WHEN {n} = -9223372036832400 THEN {_FIRST}"
        f" WHEN {n} BETWEEN -9223372036854774 AND 9223372036854774"
        f" THEN CAST(timestamp_millis({n}) AS TIMESTAMP_NTZ) END"
    )


def ntz_of_micros(n: str) -> str:
    """TIMESTAMP_NTZ of a BIGINT count of microseconds."""
    return (
        f"CASE {n} WHEN 9223372036825200000 THEN {_LAST} WHEN -9223372036832400000 THEN {_FIRST}"
        f" ELSE CAST(timestamp_micros({n}) AS TIMESTAMP_NTZ) END"
    )


def ntz_of_nanos(n: str) -> str:
    """TIMESTAMP_NTZ of a BIGINT count of nanoseconds, floored to the microsecond."""
    return (
        f"CASE WHEN {n} = 9223372036854775807 THEN {_LAST} WHEN {n} < -9223372036854775000 THEN {_FIRST}"
        f" ELSE CAST(timestamp_micros(({n} - pmod({n}, 1000)) div 1000) AS TIMESTAMP_NTZ) END"
    )


def ntz_of_text(iso: str) -> str:
    """TIMESTAMP_NTZ of an ISO timestamp: the one in UTC, which is what it is in where it tells no offset."""
    return (
        f"CASE {iso} WHEN '+294247-01-10T04:00:25.2Z' THEN {_LAST} WHEN '-290308-12-21T19:59:27.6Z' THEN {_FIRST}"
        f" ELSE CASE WHEN {iso} RLIKE '{_DAY}' THEN CAST(try_cast({iso} AS TIMESTAMP) AS TIMESTAMP_NTZ) END END"
    )


def timestamp_of_text(iso: str) -> str:
    """TIMESTAMP of an ISO timestamp with its offset; digits below the microsecond are floored."""
    return (
        f"CASE {iso} WHEN 'infinity' THEN TIMESTAMP'9999-12-31 23:59:59.999999Z'"
        f" WHEN '-infinity' THEN TIMESTAMP'0001-01-01 00:00:00Z'"
        f" ELSE CASE WHEN {iso} RLIKE '{_DAY}' THEN try_cast({iso} AS TIMESTAMP) END END"
    )


def time_of_text(iso: str) -> str:
    """STRING of an ISO time, as it is but for a closing Z: the source's column has no zone."""
    return f"regexp_replace({iso}, 'Z$', '')"


def time_of(n: str, digits: int) -> str:
    """STRING, ISO 8601 time with 3, 6 or 9 fraction digits, of a BIGINT count of such units.

    MySQL's TIME may be negative or longer than a day: the hours then have a sign or more digits.
    """
    unit = 10**digits
    hours = f"CAST(abs({n}) div {3600 * unit} AS STRING)"
    parts = [
        f"CASE WHEN {n} < 0 THEN '-' ELSE '' END",
        f"lpad({hours}, greatest(2, length({hours})), '0')",
        "':'",
        f"lpad(CAST(abs({n}) div {60 * unit} % 60 AS STRING), 2, '0')",
        "':'",
        f"lpad(CAST(abs({n}) div {unit} % 60 AS STRING), 2, '0')",
        "'.'",
        f"lpad(CAST(abs({n}) % {unit} AS STRING), {digits}, '0')",
    ]
    return f"concat({', '.join(parts)})"
