"""Decimals: Connect's Decimal (Base64 of the unscaled number) and Debezium's VariableScaleDecimal, always exact.

A Decimal whose precision and scale DECIMAL can have becomes one; others become text in plain notation. Without a schema
decimals may also be JSON numbers or texts, by `decimal.handling.mode`. The bounds are checked before any digit is
written: a scale of two thousand million costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from distributary.types.base import (
    DATA,
    KAFKA,
    BadValue,
    ColumnType,
    Convert,
    Converted,
    TypeNote,
    WrongKind,
    convert_each,
    note,
    only_text,
)
from distributary.types.bounds import Bounds, TooMuchText
from distributary.types.connect_schema import ConnectType
from distributary.types.numbers import whole_number
from distributary.types.strict_json import Json, Number
from distributary.types.text import base64_bytes
from distributary.types.unscaled import decimals_of_bytes

MAX_PRECISION = 38
_LITERAL = re.compile(r"[ \t\r\n]*([+-]?)([0-9]*)(?:[.]([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?[ \t\r\n]*")
_LONGEST_LITERAL = 200_000
_SHORT_DIGITS = 4_000
"""CPython makes text of longer numbers in time that grows with the square, and refuses to from 4,300 digits on."""


class ScaledNumber(msgspec.Struct, gc=False):
    """A VariableScaleDecimal."""

    scale: int
    value: bytes


def decimal(precision: int, scale: int, bounds: Bounds) -> ColumnType:
    """The type of Connect's Decimal of that precision and scale. A JSON number is taken as the decimal itself."""
    if not (0 < precision <= MAX_PRECISION and 0 <= scale <= precision):
        return _wide(scale, bounds)

    def convert(values: Sequence[Any]) -> Converted:
        return decimals_of_bytes(values, precision, scale)

    def restate(value: Json) -> bytes:
        return unscaled_bytes(value, scale) if isinstance(value, Number) else base64_bytes(value)

    return ColumnType(f"decimal({precision},{scale})", pa.decimal128(precision, scale), bytes, convert, restate)


def decimal_of_text(precision: int, scale: int) -> ColumnType:
    """The type DECIMAL(precision, scale) of texts and JSON numbers that are the decimal itself."""

    def convert(values: Sequence[Any]) -> Converted:
        unscaled = [None if raw is None else _unscaled_or_none(raw, scale) for raw in values]
        array, bad = decimals_of_bytes(unscaled, precision, scale)
        return Converted(array, bad)

    def restate(value: Json) -> bytes:
        return unscaled_bytes(value, scale)

    return ColumnType(f"decimal({precision},{scale})", pa.decimal128(precision, scale), msgspec.Raw, convert, restate)


def _wide(scale: int, bounds: Bounds) -> ColumnType:
    def convert_value(value: bytes | str) -> str:
        return value if isinstance(value, str) else plain_text(value, scale, bounds)

    def restate(value: Json) -> bytes | str:
        return plain_literal(value, bounds) if isinstance(value, Number) else base64_bytes(value)

    return ColumnType("string", pa.string(), bytes, _texts(convert_value, bounds), restate)


def variable_decimal(bounds: Bounds) -> ColumnType:
    """The type of VariableScaleDecimal."""

    def convert_value(value: ScaledNumber) -> str:
        return plain_text(value.value, value.scale, bounds)

    def restate(value: Json) -> ScaledNumber:
        if not isinstance(value, dict):
            raise WrongKind
        unscaled, scale = value.get("value"), value.get("scale")
        if unscaled is None or scale is None:
            raise BadValue(value)
        return ScaledNumber(whole_number(scale), base64_bytes(unscaled))

    return ColumnType("string", pa.string(), ScaledNumber, _texts(convert_value, bounds), restate)


def _texts(convert_value: Callable[[Any], str], bounds: Bounds) -> Convert:
    """The converter to texts. It raises TooMuchText."""

    def convert(values: Sequence[Any]) -> Converted:
        size = 0

        def counted(value: Any) -> str:
            nonlocal size
            text = convert_value(value)
            size += len(text)
            if size > bounds.text_bytes:
                raise TooMuchText
            return text

        return convert_each(pa.string(), counted)(values)

    return convert


def plain_text(unscaled: bytes, scale: int, bounds: Bounds) -> str:
    """An unscaled number in plain notation. Raises BadValue for no bytes, and beyond the bounds."""
    if not unscaled or len(unscaled) > bounds.decimal_bytes or abs(scale) > bounds.decimal_scale:
        raise BadValue("beyond the bounds of decimals")
    number = int.from_bytes(unscaled, "big", signed=True)
    return _placed(number < 0, digits_of(abs(number)), scale)


def _placed(is_negative: bool, digits: str, scale: int) -> str:
    sign = "-" if is_negative else ""
    if scale <= 0:
        return sign + digits + ("" if digits == "0" else "0" * -scale)
    digits = digits.zfill(scale + 1)
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def digits_of(number: int) -> str:
    """The decimal digits of a number that is not negative, of any length."""
    length = int(number.bit_length() * 0.30103) + 1
    if length <= _SHORT_DIGITS:
        return str(number)
    half = length // 2
    high, low = divmod(number, 10**half)
    return digits_of(high) + digits_of(low).zfill(half) if high else digits_of(low)


def _literal(text: str) -> tuple[bool, str, int]:
    """Sign, digits and scale of a number as it is written. Raises BadValue."""
    match = _LITERAL.fullmatch(text) if len(text) <= _LONGEST_LITERAL else None
    if match is None or not (match[2] or match[3]):
        raise BadValue(text)
    behind = match[3] or ""
    return match[1] == "-", (match[2] + behind).lstrip("0") or "0", len(behind) - int(match[4] or 0)


def plain_literal(text: str, bounds: Bounds) -> str:
    """A number as it is written, in plain notation. Raises BadValue for a text that is no number, or beyond the
    bounds."""
    is_negative, digits, scale = _literal(text)
    if abs(scale) > bounds.decimal_scale:
        raise BadValue("beyond the bounds of decimals")
    return _placed(is_negative, digits, scale)


def unscaled_bytes(value: Json, scale: int) -> bytes:
    """The unscaled number, at that scale, of a number that is written as a JSON number or as text.

    Raises BadValue for one that would have to be rounded, or has more digits than any DECIMAL.
    """
    if not isinstance(value, str):
        raise BadValue(value)
    is_negative, digits, own_scale = _literal(value)
    if digits == "0":
        return b"\0"
    missing = scale - own_scale
    if missing < 0:
        if missing < -len(digits) or digits[missing:].strip("0"):
            raise BadValue(value)
        digits, missing = digits[:missing], 0
    if len(digits) + missing > MAX_PRECISION:
        raise BadValue(value)
    number = int(digits or "0") * 10**missing
    signed: int = -number if is_negative else number
    return signed.to_bytes(17, "big", signed=True)[-16:]


def _unscaled_or_none(raw: Any, scale: int) -> bytes | None:
    """The unscaled number of a raw JSON value as bytes; None for null, and empty, which is a bad value, for any other
    value."""
    if isinstance(raw, bytes):
        return raw
    text = bytes(raw).decode(errors="replace").strip()
    if text == "null":
        return None
    try:
        if text.startswith('"'):
            return unscaled_bytes(only_text(msgspec.json.decode(text)), scale)
        return unscaled_bytes(text, scale) if text[:1] in "-0123456789" else b""
    except (BadValue, msgspec.DecodeError):
        return b""


def decimal_schema(precision: int | None, scale: int) -> ConnectType:
    """The schema of Connect's Decimal; without a precision as some connectors write it."""
    parameters = {"scale": str(scale)} | ({"connect.decimal.precision": str(precision)} if precision else {})
    return ConnectType("bytes", f"{KAFKA}.Decimal", parameters)


_UNSCALED = "the unscaled number: its bytes in Base64 in JSON, bytes in Avro"
NOTES: tuple[TypeNote, ...] = (
    TypeNote((decimal_schema(12, 2),), _UNSCALED, "exact; more digits: quarantine", "Decimal(12, 2)"),
    TypeNote(
        (decimal_schema(None, 2),),
        _UNSCALED,
        "exact; more digits: quarantine",
        "Decimal of scale 2 without a precision",
    ),
    TypeNote((decimal_schema(65, 30),), _UNSCALED, "exact, as text: no DECIMAL has so many digits", "Decimal(65, 30)"),
    note(
        "struct",
        f"{DATA}.VariableScaleDecimal",
        wire="the scale and the unscaled number",
        edges="exact, as text in plain notation",
    ),
)
