"""Types that `columns` names for values whose schema declares their type.

A schema declares the scale of an unscaled number and the unit of a bare number. So a value is first read by its schema,
and then converted exactly to the type in `columns`: a value that does not fit this type is a bad value. Only values
whose schema has no meaning beyond a bare type are read by the type in `columns` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import BadValue, ColumnType, Converted, convert_each, with_values
from distributary.types.bounds import Bounds
from distributary.types.calendar import FIRST_DAY, FIRST_INSTANT, LAST_DAY, LAST_INSTANT
from distributary.types.connect_schema import ConnectType
from distributary.types.decimals import MAX_PRECISION, unscaled_bytes
from distributary.types.from_name import element_of_name, fields_of_name, parts_of_map, type_of_name
from distributary.types.from_schema import DECIMAL, SEMANTIC, VARIABLE_DECIMAL, type_of_schema
from distributary.types.nested import array_of, map_of, struct_of
from distributary.types.numbers import fraction
from distributary.types.structured import of_structured
from distributary.types.text import STRING
from distributary.types.times_of_day import TIME_MICROS, TIME_MILLIS, TIME_NANOS
from distributary.types.unscaled import decimals_of_bytes

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("float", "double")
_POINTS = ("date", "timestamp_ntz", "timestamp")
_DURATIONS = {"io.debezium.time.MicroDuration": TIME_MICROS, "io.debezium.time.NanoDuration": TIME_NANOS}
_AS_NUMBERS = {"decimal.handling.mode": "string"}
_DAY = 86_400_000_000
_LAST_COUNTED_DAY = 106_751_991
"""The last day, since 1970, whose microseconds 64 bits can count."""


class NoConversion(ValueError):
    """There is no conversion from the schema's type (`sent`) to the type in the config."""

    def __init__(self, sent: ConnectType, wanted: str) -> None:
        self.sent = sent.name or sent.kind
        super().__init__(f"{self.sent} can't become {wanted}")


def type_over(sent: ConnectType, name: str, properties: Mapping[str, str], bounds: Bounds) -> ColumnType:
    """The type of values with the schema `sent` in a column for which the config names a type; `properties` are the
    connector's settings, as in types.from_name.type_of_name.

    Raises NoConversion, UnknownColumnType and NotAConnectSchema.
    """
    given = name.strip()
    if sent.kind == "array" and sent.items and (element := element_of_name(given)) is not None:
        return array_of(type_over(sent.items, element, properties, bounds))
    if sent.kind == "map" and sent.items and sent.keys and sent.keys.kind == "string":
        if (parts := parts_of_map(given)) is not None and parts[0].lower() == "string":
            return map_of(type_over(sent.items, parts[1], properties, bounds))
    elif sent.kind == "struct" and sent.name != VARIABLE_DECIMAL and (fields := fields_of_name(given)) is not None:
        return struct_of({field: _part(sent.field(field), kind, properties, bounds) for field, kind in fields})
    own = type_of_schema(sent, bounds)
    if sent.kind == "struct" and sent.name != VARIABLE_DECIMAL:
        fields_sent = [field.name for field in sent.fields]
        converted = of_structured(sent.name, own, fields_sent, type_of_name(given, properties, bounds))
        if converted is not None:
            return converted
    if sent.name in (DECIMAL, VARIABLE_DECIMAL):
        chosen = _of_decimal(own, given, bounds)
    elif sent.name in SEMANTIC:
        chosen = _of_time(sent, own, given, bounds)
    else:
        # Only bytes by the schema are Base64: text and numbers are the decimal itself.
        settings = properties if sent.kind == "bytes" else {**properties, **_AS_NUMBERS}
        wanted = type_of_name(given, settings, bounds)
        chosen = own if wanted.spark == own.spark and wanted.wire == own.wire else wanted
    if chosen is None:
        raise NoConversion(sent, given)
    return chosen


def _part(sent: ConnectType | None, name: str, properties: Mapping[str, str], bounds: Bounds) -> ColumnType:
    """A field that the schema does not have is null in every value."""
    return type_of_name(name, properties, bounds) if sent is None else type_over(sent, name, properties, bounds)


def _then(own: ColumnType, wanted: ColumnType, then: Callable[[pa.Array], Converted]) -> ColumnType:
    """The type whose columns are made as `own` makes them and then turned."""

    def convert(values: Sequence[Any]) -> Converted:
        array, bad = own.convert(values)
        converted, lost = then(array)
        return Converted(converted, sorted({*bad, *lost}))

    return replace(own, spark=wanted.spark, arrow=wanted.arrow, convert=convert)


def _of_decimal(own: ColumnType, given: str, bounds: Bounds) -> ColumnType | None:
    """A decimal, which `own` makes a DECIMAL or a text in plain notation, as the type of that name."""
    wanted = type_of_name(given, {}, bounds)
    is_variable = own.spark == "string" and own.wire is not bytes
    if is_variable and fields_of_name(given) is not None:
        return wanted  # scale and value as they are on the wire
    if wanted.spark == "string" and (wanted is STRING or given.startswith(DECIMAL) or given == VARIABLE_DECIMAL):
        return own if own.spark == "string" else _then(own, STRING, _plain_texts)
    if wanted.spark == own.spark:
        return None if own.spark == "string" else own  # a time of day is text, too
    if wanted.spark in _WHOLE:
        return _then(own, wanted, _each_text(wanted.arrow, lambda text: _whole(text, wanted)))
    if wanted.spark in _FRACTIONS:
        return _then(own, wanted, _each_text(wanted.arrow, lambda text: _float(text, wanted)))
    if not pa.types.is_decimal(wanted.arrow):
        return None
    precision, scale = wanted.arrow.precision, wanted.arrow.scale

    def rescale(array: pa.Array) -> Converted:
        return decimals_of_bytes([_unscaled(text, scale) for text in _texts(array)], precision, scale)

    return _then(own, wanted, rescale)


def _texts(array: pa.Array) -> list[str | None]:
    """Decimals as texts, in some notation."""
    return list((array if pa.types.is_string(array.type) else array.cast(pa.string())).to_pylist())


def _plain_texts(array: pa.Array) -> Converted:
    """Decimals as texts in plain notation. Arrow writes small ones with an exponent."""
    scale = array.type.scale
    wide = array.cast(pa.decimal128(MAX_PRECISION, scale))
    texts = [None if text is None else _plain(text, scale) for text in wide.cast(pa.string()).to_pylist()]
    return Converted(pa.array(texts, pa.string()), ())


def _plain(text: str, scale: int) -> str:
    if "E" not in text and "e" not in text:
        return text
    number = int.from_bytes(unscaled_bytes(text, scale), "big", signed=True)
    digits = str(abs(number)).zfill(scale + 1)
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _unscaled(text: str | None, scale: int) -> bytes | None:
    try:
        return None if text is None else unscaled_bytes(text, scale)
    except BadValue:
        return b""


def _each_text(arrow: pa.DataType, convert: Callable[[str], Any]) -> Callable[[pa.Array], Converted]:
    convert_texts = convert_each(arrow, convert)
    return lambda array: convert_texts(_texts(array))


def _whole(text: str, wanted: ColumnType) -> int:
    number = int.from_bytes(unscaled_bytes(text, 0), "big", signed=True)
    least = -(2 ** (wanted.arrow.bit_width - 1))
    if not least <= number < -least:
        raise BadValue(text)
    return number


def _float(text: str, wanted: ColumnType) -> float:
    array, bad = wanted.convert([fraction(text)])
    if bad:
        raise BadValue(text)
    return float(array[0].as_py())


def _of_time(sent: ConnectType, own: ColumnType, given: str, bounds: Bounds) -> ColumnType | None:
    """A date, a time or a duration likewise. Numbers and text are those on the wire: with all their digits."""
    wanted = type_of_name(given, _AS_NUMBERS, bounds)
    is_point, is_time_of_day = own.spark in _POINTS, own.spark == "string"
    if wanted.spark in _POINTS:
        if not is_point or own.spark == wanted.spark:
            return own if is_point else None
        return _then(own, wanted, lambda array: _point(array, wanted))
    wants_time_of_day = wanted in (TIME_MILLIS, TIME_MICROS, TIME_NANOS) or given == "io.debezium.time.IsoTime"
    if wants_time_of_day or wanted is STRING:
        if is_time_of_day:
            return own
        return wanted if wanted is STRING else _DURATIONS.get(sent.name or "")
    is_number = wanted.spark in (*_WHOLE, *_FRACTIONS) or pa.types.is_decimal(wanted.arrow)
    if not is_number or sent.kind == "string":
        return None
    return own if (wanted.wire, wanted.spark) == (own.wire, own.spark) else wanted


def _point(array: pa.Array, wanted: ColumnType) -> Converted:
    """Converts between days and points in time. Those without a zone are in UTC, as Debezium counts them. The largest
    value of one type, used for infinity, becomes the largest of the other."""
    if pa.types.is_date32(array.type):
        days = np.asarray(array.view(pa.int32()).fill_null(0)).astype(np.int64)
        far = np.abs(days) > _LAST_COUNTED_DAY
        micros = np.where(days == LAST_DAY, LAST_INSTANT, np.where(far, 0, days) * _DAY)
        micros = np.where(days == FIRST_DAY, FIRST_INSTANT, micros)
        return _without(with_values(array.view(pa.int32()), wanted.arrow, np.ascontiguousarray(micros)), far)
    counts = array.view(pa.int64())
    if wanted.spark != "date":
        return Converted(counts.view(wanted.arrow), ())
    micros = np.asarray(counts.fill_null(0))
    last = micros == LAST_INSTANT
    days = np.where(last, LAST_DAY, micros // _DAY).astype(np.int32)
    lost = (micros % _DAY != 0) & ~last
    return _without(with_values(counts, wanted.arrow, np.ascontiguousarray(days)), lost)


def _without(array: pa.Array, lost: Any) -> Converted:
    if lost.any():
        array = pc.if_else(pa.array(~lost), array, pa.scalar(None, array.type))
    return Converted(array, np.flatnonzero(lost).tolist())
