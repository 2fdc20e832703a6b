"""Types that `columns` names for values whose schema tells what they are.

A schema says what stands on the wire: at which scale an unscaled number is, what a bare number counts, and since when.
So a value is read as its schema says, and then turned into the type that is wanted, exactly: one that does not fit it
comes out NULL, as with every codec. Only what has no meaning over its bare type is read by the wanted type alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from distributary.decode import numbers, sql
from distributary.decode.connect import ConnectType
from distributary.decode.type_names import codec_named, element_named, fields_named, value_named
from distributary.decode.types import (
    DECIMAL,
    SEMANTIC,
    STRING,
    TIME_MICROS,
    TIME_MILLIS,
    TIME_NANOS,
    TIME_TEXT,
    VARIABLE,
    VARIABLE_DECIMAL,
    Codec,
    array_of,
    cast,
    codec_of,
    map_of,
    struct_of,
)

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("float", "double")
_POINTS = ("date", "timestamp_ntz", "timestamp")
_TIMES_OF_DAY = (TIME_MILLIS, TIME_MICROS, TIME_NANOS, TIME_TEXT)
_DURATIONS = {"io.debezium.time.MicroDuration": TIME_MICROS, "io.debezium.time.NanoDuration": TIME_NANOS}
# Days since 1970 whose microseconds fit in a long; of others Spark can't make a timestamp, and fails.
_LAST_DAY = 106_751_991
_LAST_TIME = "9999-12-31 23:59:59.999999"
_AS_NUMBERS = {"decimal.handling.mode": "string"}


class NoConversion(ValueError):
    """Nothing makes the wanted type of what the schema tells; `sent` is what it calls that."""

    def __init__(self, sent: ConnectType, wanted: str) -> None:
        self.sent = sent.name or sent.kind
        super().__init__(f"{self.sent} can't become {wanted}")


def codec_over(sent: ConnectType, type_name: str, properties: Mapping[str, str]) -> Codec:
    """The codec of values of the Connect type `sent` for a column of a type that the config names; `properties` are
    the connector's settings, as in type_names.codec_named.

    Raises NoConversion, and UnknownColumnType.
    """
    given = type_name.strip()
    if sent.kind == "array" and sent.items and (element := element_named(given)) is not None:
        return array_of(codec_over(sent.items, element, properties))
    if sent.kind == "map" and sent.items and sent.keys and sent.keys.kind == "string":
        if (value := value_named(given)) is not None:
            return map_of(codec_over(sent.items, value, properties))
    elif sent.kind == "struct" and sent.name != VARIABLE_DECIMAL and (fields := fields_named(given)) is not None:
        return struct_of({name: _field(sent.field(name), kind, properties) for name, kind in fields})
    own = codec_of(sent)
    if sent.name in (DECIMAL, VARIABLE_DECIMAL):
        found = _of_decimal(own, given)
    elif sent.name in SEMANTIC:
        found = _of_time(sent, own, given)
    else:
        # Only what the schema calls bytes is Base64: text and numbers are the decimal itself.
        wanted = codec_named(given, properties if sent.kind == "bytes" else {**properties, **_AS_NUMBERS})
        found = own if (wanted.wire, wanted.target) == (own.wire, own.target) else wanted
    if found is None:
        raise NoConversion(sent, given)
    return found


def _field(sent: ConnectType | None, type_name: str, properties: Mapping[str, str]) -> Codec:
    """A field that the schema does not have is NULL in every value."""
    return codec_named(type_name, properties) if sent is None else codec_over(sent, type_name, properties)


def _then(codec: Codec, target: str, turned: Callable[[str], str]) -> Codec:
    """The codec whose values are turned into another type; `turned` makes SQL of that type from SQL of such a value."""
    usual = None if codec.usual is None else _then(codec.usual, target, turned)
    return replace(codec, target=target, sql=lambda x: turned(codec.sql(x)), usual=usual)


def _of_decimal(own: Codec, given: str) -> Codec | None:
    """A decimal, which `own` reads as DECIMAL or as text in plain notation, as the type of that name; None where
    nothing makes it."""
    wanted = codec_named(given, {})
    kind = wanted.target
    if own is VARIABLE and fields_named(given) is not None:
        return wanted  # scale and value as they are on the wire
    if kind == "string" and (wanted in (STRING, VARIABLE) or given.startswith(DECIMAL)):
        return own if own.target == "string" else _then(own, kind, lambda x: numbers.plain(x, _digits(own.target)[1]))
    if kind == own.target != "string":
        return own
    if kind in _WHOLE:
        return _then(own, kind, lambda x: numbers.exact_whole(_text(x, own), kind.upper()))
    if kind in _FRACTIONS:
        if own.target == "string":
            return _then(own, kind, lambda x: sql.let("read_", x, cast(kind).sql("read_")))
        return _then(own, kind, lambda x: f"CAST({x} AS {kind.upper()})")
    if not kind.startswith("decimal("):
        return None
    precision, scale = _digits(kind)
    if own.target != "string" and _digits(own.target)[1] <= scale:
        return _then(own, kind, lambda x: f"try_cast({x} AS DECIMAL({precision}, {scale}))")
    return _then(own, kind, lambda x: numbers.exact_decimal(_text(x, own), precision, scale))


def _text(x: str, own: Codec) -> str:
    """STRING, in some notation, of a decimal that was read."""
    return x if own.target == "string" else f"CAST({x} AS STRING)"


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = re.findall(r"\d+", decimal)
    return int(precision), int(scale)


def _of_time(sent: ConnectType, own: Codec, given: str) -> Codec | None:
    """A date, a time or a duration likewise. Numbers and text are those on the wire: with all their digits."""
    wanted = codec_named(given, _AS_NUMBERS)
    is_point, is_time_of_day = own.target in _POINTS, own.target == "string"
    wants_time_of_day = any(wanted is one for one in _TIMES_OF_DAY)
    if wanted.target in _POINTS:
        if not is_point or own.target == wanted.target:
            return own if is_point else None
        return _then(own, wanted.target, lambda x: _point(x, own.target, wanted.target))
    if wants_time_of_day or wanted is STRING:
        if is_time_of_day:
            return own
        return wanted if wanted is STRING else _DURATIONS.get(sent.name or "")
    is_number = wanted.target in (*_WHOLE, *_FRACTIONS) or wanted.target.startswith("decimal(")
    if not is_number or sent.kind == "string":
        return None
    return own if (wanted.wire, wanted.target) == (own.wire, own.target) else wanted


def _point(x: str, sent: str, wanted: str) -> str:
    """A day or a point in time as another one of _POINTS. Without a zone it is in UTC, as Debezium counts it. The
    largest of one type, which stands for infinity, is the largest of the other."""
    if wanted == "date":
        last = f"time_ = {sent.upper()} '{_LAST_TIME}'"
        midnight = "unix_micros(CAST(time_ AS TIMESTAMP)) % 86400000000 = 0"
        return sql.let("time_", x, f"CASE WHEN {midnight} OR {last} THEN CAST(time_ AS DATE) END")
    if sent == "date":
        last = f"WHEN day_ = DATE '{_LAST_TIME[:10]}' THEN {wanted.upper()} '{_LAST_TIME}'"
        fits = f"unix_date(day_) BETWEEN -{_LAST_DAY} AND {_LAST_DAY}"
        return sql.let("day_", x, f"CASE {last} WHEN {fits} THEN CAST(day_ AS {wanted.upper()}) END")
    return f"CAST({x} AS {wanted.upper()})"
