"""Functions that compiled readers call for values that take more than a line."""

from __future__ import annotations

import base64
import struct

from distributary.types.java_numbers import double_text, float_text
from distributary.types.strict_json import Number

_FURTHER = tuple((shift, 128 << shift - 7) for shift in range(7, 70, 7))
"""For the second to the tenth byte of a number: how far its bits are shifted, and the value of the continuation bit of
the byte before, which the sum contains and which has to be subtracted."""


class BrokenAvro(ValueError):
    """The bytes do not match the schema."""


BROKEN = (BrokenAvro, IndexError, struct.error)
"""Errors that a reader raises for bytes that do not match the schema."""
UNREAD = (*BROKEN, UnicodeDecodeError)
"""BROKEN, and the error that a reader raises for texts that are not UTF-8."""


def read_more(data: bytes, at: int, n: int) -> tuple[int, int]:
    """Reads a number that begins with the byte `n`. Returns it in zigzag form (the last bit is the sign), and the
    position behind it."""
    for shift, mark in _FURTHER:
        byte = data[at]
        at += 1
        n += (byte << shift) - mark
        if byte < 128:
            if n >> 64:
                break
            return n, at
    raise BrokenAvro


def read_length(data: bytes, at: int, n: int) -> tuple[int, int]:
    """Reads twice a length. Raises BrokenAvro if it is negative."""
    if n > 127:
        n, at = read_more(data, at, n)
    if n & 1:
        raise BrokenAvro
    return n, at


def read_more_32(data: bytes, at: int, n: int) -> tuple[int, int]:
    """As read_more, of a number of 32 bits."""
    n, at = read_more(data, at, n)
    if n >> 32:
        raise BrokenAvro
    return n, at


def json_number(value: int) -> Number:
    return Number(value)


def json_float(value: float) -> str:
    return _json_fraction(float_text(value))


def json_double(value: float) -> str:
    return _json_fraction(double_text(value))


def _json_fraction(text: str) -> str:
    """JsonConverter writes NaN and the infinities as texts."""
    return text if text.endswith(("NaN", "Infinity")) else Number(text)


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()
