"""Differences that each scenario's tables can't avoid because the records lack something, each with its reason.

Each shows in the recorded bytes. The comparison fails when one of them is no longer needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

from tests.support.comparable import Value
from tests.support.instants import days, instant
from tests.support.limit import CellLimit, Limit, MissingColumn, MissingRow
from tests.support.postgres_types import ABSENT, postgres_type
from tests.support.recorded import Scenario

_DEFAULT = "the converter writes a NULL as the column's default (replace.null.with.default is on by default)"
_LONG = "bigint.unsigned.handling.mode=long, the connector's default, wraps what a long can't hold"
_NAME = "the connector does not read the type `name` from the stream"
_SQUARE = "the connector does not read arrays of more than one dimension"
_NO_DECIMAL = "a decimal on the wire has no NaN and no infinity"
_OLD_CALENDAR = "the snapshot counts in the calendar that changed in October 1582, or loses the era"
_ZERO_DATE = "a date with a zero part is not a date to the connector"
_INEXACT = "intervals are counted in floating point, or end at the largest long"
_MIDNIGHT = "the connector takes the end of the day for its beginning"
_FAR = "no timestamp of the lake is that far away: the record is in quarantine"


_KNOWN_DEFAULTS = (
    *("smallint", "integer", "bigint", "numeric", "real", "double", "boolean", "bit", "bpchar", "character", "text"),
    *("date", "time", "timestamp", "interval", "uuid", "json", "jsonb", "mood"),
)
_UNKNOWN_DEFAULTS = ("numeric", "time with time zone")
"""PostgreSQL's connector knows the defaults of the types that begin with these words, but for two; the first it knows
where it writes decimals as text."""


_ADDRESSES = {
    "pg_types": (("7fc3c2ff", "28b16a4b"), ("454eb32f", "37da381e")),
    "pg_types_iso": (("361833d4", "b2ef190"), ("57017826", "50acb416")),
    "pg_types_string": (("69fb9a1", "e8acd1c"), ("4afbe35d", "7c2ff827")),
    "pg_types_plain": (("3f79004f", "275377d6"), ("b9ec1d7", "3fafc0c0")),
}
"""Where Java had the inner arrays when it wrote an array of two dimensions of texts, in each recording's rows."""


_MARIADB_DEFAULTS: dict[str, Value] = {
    "i": 5,
    "s": "x",
    "d": Decimal("1.500"),
    "dt": instant("2020-01-01 00:00:00"),
    "e": "q",
    "b": b"\x05",
    "u": 2**63 - 1,
}
"""The defaults of MariaDB's table `dflt`."""


def limits(scenario: str) -> tuple[Limit, ...]:
    """The limits of a scenario's tables, in no particular order."""
    return tuple(_BY_SCENARIO[scenario]())


def _active() -> Iterator[Limit]:
    yield CellLimit("customers", "active", None, True, _DEFAULT)


def _none() -> Iterator[Limit]:
    yield from ()


def _toast() -> Iterator[Limit]:
    literal = "the text is the placeholder itself: nothing tells it from a value that was not sent"
    yield CellLimit("docs", "body", "__debezium_unavailable_value", None, literal)
    yield CellLimit("toasty", "t_def", None, "dflt", _DEFAULT)


def _mariadb() -> Iterator[Limit]:
    for text, number in (("18446744073709551615", -1), ("9223372036854775808", -(2**63))):
        yield CellLimit("big_ids", "id", text, number, _LONG)
    yield CellLimit("all_types", "c_ubig", "18446744073709551615", -1, _LONG)
    yield CellLimit("special", "c_ubig", "9223372036854775808", -(2**63), _LONG)
    yield CellLimit("dflt", "u", "18446744073709551615", -1, _LONG)
    yield CellLimit("all_types", "c_enum", "b,c", "b\\,c", "the stream escapes the comma of an enum's value")
    for column, value in _MARIADB_DEFAULTS.items():
        yield CellLimit("dflt", column, None, value, _DEFAULT)
    for column, text in (
        ("c_date", "0000-00-00"),
        ("c_date", "2024-00-00"),
        ("c_dt", "0000-00-00 00:00:00"),
        ("c_dt6", "0000-00-00 00:00:00.000000"),
        ("c_ts", "0000-00-00 00:00:00"),
    ):
        yield CellLimit("special", column, text, None, _ZERO_DATE)
    yield CellLimit("special", "c_ts", "0000-00-00 00:00:00", 0, "the stream sends a zero timestamp as 1970-01-01")
    overflow = "the connector counts on past the end of the month"
    yield CellLimit("special", "c_date", "2024-02-30", days("2024-03-01"), overflow)
    yield CellLimit("special", "c_dt3", "2024-02-30 01:02:03.000", instant("2024-03-01 01:02:03"), overflow)
    adjusted = "enable.time.adjuster, on by default, adds centuries to years below 100"
    yield CellLimit("special", "c_date", "0001-01-01", days("2001-01-01"), adjusted)
    yield CellLimit("special", "c_year", "0000", 1900, "the connector takes the zero of a year for 1900")
    yield CellLimit("special", "c_dt6", "1582-10-10 00:00:00.000000", instant("1582-10-20 00:00:00"), _OLD_CALENDAR)


def _postgres_types(recording: Scenario) -> Iterator[Limit]:
    for table in ("all_types", "rfull", "special"):
        for column in recording.tables[table].columns:
            if column.type in ABSENT:
                yield MissingColumn(table, column.name, "the connector does not know the type and leaves it out")
    for table in ("all_types", "rfull"):
        yield CellLimit(table, "c_name", "nm", None, _NAME)
        yield CellLimit(table, "a_2d", "{{1,2},{3,4}}", [None, None], _SQUARE)
        for sign, text in (
            (1, "1000 years 11 mons 30 days 23:59:59.999999"),
            (-1, "-1000 years -11 mons -30 days -23:59:59.999999"),
        ):
            yield CellLimit(table, "c_interval", text, sign * 31_589_206_200_000_000, _INEXACT)
    yield CellLimit("nn", "c_name", "nm", "", f"{_NAME}; NOT NULL makes it empty")
    yield from _postgres_special(recording)
    yield from _postgres_defaults(recording)


def _postgres_special(recording: Scenario) -> Iterator[Limit]:
    mode = recording.connector.get("time.precision.mode", "adaptive")

    def cell(column: str, truth: str, lake: Value, reason: str) -> CellLimit:
        return CellLimit("special", column, truth, lake, reason)

    yield cell("c_date", "4713-01-01 BC", days("4713-01-01"), _OLD_CALENDAR)
    yield cell("c_date", "0001-12-31 BC", days("0001-12-31"), _OLD_CALENDAR)
    yield cell("c_date", "1582-10-10", days("1582-10-20"), _OLD_CALENDAR)
    last, rows = "294276-12-31 23:59:59.999999", ["15", "1015", "22", "1022"]
    if mode == "adaptive":
        yield cell("c_ts", last, -9_223_372_036_853_775_810, "overflows in the connector")
    else:
        rows += ["11", "1011"]
    for key in rows:
        yield MissingRow("special", (key,), _FAR)
    yield cell("c_interval", "178000000 years", 2**63 - 1, _INEXACT)
    yield cell("c_interval", "2147483647 days", 2**63 - 1, _INEXACT)
    text = _decimals_as_text(recording)
    for truth, sent in (("NaN", "NAN"), ("Infinity", "POSITIVE_INFINITY"), ("-Infinity", "NEGATIVE_INFINITY")):
        yield cell("c_num", truth, sent if text else None, _NO_DECIMAL)
    yield cell("c_num_10_2", "NaN", "NAN" if text else None, _NO_DECIMAL)
    yield cell("c_num_20_0", "NaN", "NAN" if text else None, _NO_DECIMAL)
    yield cell("a_num", "{NaN}", None, _NO_DECIMAL)
    yield cell("a_2d", "{{1},{2}}", [None, None], _SQUARE)
    for addresses in _ADDRESSES[recording.name]:
        names = [f"[Ljava.lang.String;@{address}" for address in addresses]
        yield cell("a_text", "{{a,b},{c,d}}", names, f"{_SQUARE}: it writes the addresses of Java's arrays")
    midnight = {"adaptive": "00:00:00.000000", "connect": "00:00:00.000", "isostring": "00:00:00"}[mode]
    yield cell("a_time", "{24:00:00}", [midnight], _MIDNIGHT)
    if mode == "isostring":
        yield cell("c_time", "24:00:00", midnight, _MIDNIGHT)
        yield cell("c_time3", "24:00:00", midnight, _MIDNIGHT)


def _decimals_as_text(recording: Scenario) -> bool:
    return recording.connector.get("decimal.handling.mode") == "string"


def _postgres_defaults(recording: Scenario) -> Iterator[Limit]:
    """Table `dflt` has a default on every column, as its first rows show; the connector knows those of some types."""
    truth = recording.tables["dflt"]
    unknown = _UNKNOWN_DEFAULTS[1:] if _decimals_as_text(recording) else _UNKNOWN_DEFAULTS
    for column in truth.columns:
        word = re.split(r"\W", column.type)[0]
        text = next((row[column.name] for row in truth.rows if row[column.name] is not None), None)
        if column.name == "c_char":
            yield CellLimit("dflt", "c_char", None, "abc", f"{_DEFAULT}, without the blanks that pad the type")
        elif word in _KNOWN_DEFAULTS and column.type not in unknown and not column.in_key:
            yield CellLimit(
                "dflt", column.name, None, postgres_type(column.type, recording.connector).read(text or ""), _DEFAULT
            )
    yield CellLimit("dflt", "c_name", "nm", None, _NAME)
    zero = f"{_DEFAULT}, and a function's as zero"
    yield CellLimit("fn_dflt", "ts", None, 0, zero)
    yield CellLimit("fn_dflt", "u", None, "00000000-0000-0000-0000-000000000000", zero)
    yield CellLimit("fn_dflt", "g", "2", None, "a stored generated column is in the snapshot only")


def _evolution() -> Iterator[Limit]:
    for key in ("4", "5", "6", "7", "8", "9", "10", "216", "5216"):
        yield MissingRow("evo_renamed", (key,), "written before the table was renamed, to the old name's topic")


_BY_SCENARIO: dict[str, Callable[[], Iterator[Limit]]] = {
    "pg_json_schema": _active,
    "pg_json_plain": _active,
    "pg_full_truncate": _active,
    "pg_incremental": _active,
    "pg_unwrap": _active,
    "pg_unwrap_rewrite": _active,
    "pg_extra": _none,
    "pg_toast": _toast,
    "maria_json_schema": _mariadb,
    **{name: partial(_postgres_types, Scenario(name)) for name in _ADDRESSES},
    "pg_schema_evolution": _evolution,
}
