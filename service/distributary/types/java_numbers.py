"""Floating-point numbers as the texts that Java 17 makes of them (Double.toString, Float.toString).

Hashes of masked columns are made of these texts, and tables that Spark has filled keep them. Up to Java 18 they are not
always the shortest that identify the number: 2^60 has two digits more, and 2E23 is 1.9999999999999998E23. So the digits
are generated as Java does: one by one, until the remainder is less than half the distance to the next number, with the
same estimates and the same comparisons.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

_LONGEST_TABLE = 27
"""Java has so many sizes of powers of five in a table, and beyond guesses three bits a power."""
_SMALL_EXPONENTS = range(63)
"""Of whole numbers that a long holds."""


class _Number(NamedTuple):
    """fraction * 2 ** (exponent - 52), the fraction having 53 bits; `precision` of them are the type's."""

    fraction: int
    exponent: int
    precision: int


def double_text(value: float) -> str:
    """The text of a double."""
    return _special(value) or _text(value, _double_parts(abs(value)))


def float_text(value: float) -> str:
    """The text of a number that a float holds: one of 32 bits."""
    return _special(value) or _text(value, _float_parts(abs(value)))


def _special(value: float) -> str | None:
    """The text of a value without digits: NaN, an infinity or zero; None for all others."""
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: float, number: _Number) -> str:
    minus = "-" if value < 0 else ""
    digits, point = _digits(number)
    if 0 < point < 8:
        return f"{minus}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    return f"{minus}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _double_parts(value: float) -> _Number:
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    return _normalized(bits & (1 << 52) - 1, bits >> 52, 52, 1023)


def _float_parts(value: float) -> _Number:
    (bits,) = struct.unpack(">I", struct.pack(">f", value))
    return _normalized(bits & (1 << 23) - 1, bits >> 23, 23, 127)


def _normalized(fraction: int, exponent: int, width: int, bias: int) -> _Number:
    precision = width + 1
    if exponent:
        fraction |= 1 << width
    else:  # a subnormal number has fewer bits
        precision = fraction.bit_length()
        exponent = 1 - (width + 1 - precision)
        fraction <<= width + 1 - precision
    return _Number(fraction << 52 - width, exponent - bias, precision)


def _digits(number: _Number) -> tuple[str, int]:
    """The digits, and the index of the point among them."""
    zeros = (number.fraction & -number.fraction).bit_length() - 1
    bits = 53 - zeros
    behind = max(0, bits - number.exponent - 1)
    if not behind and number.exponent in _SMALL_EXPONENTS:
        return _whole_digits(number)
    return _generated_digits(number, number.fraction >> zeros, bits, behind)


def _whole_digits(number: _Number) -> tuple[str, int]:
    """Of a whole number all digits, but for the last that the type's precision does not reach."""
    fraction, exponent, precision = number
    whole = fraction << exponent - 52 if exponent >= 52 else fraction >> 52 - exponent
    beyond = exponent - precision - 1
    cut = len(str(1 << beyond)) - 1 if beyond > 1 else 0
    if cut:
        whole, rest = divmod(whole, 10**cut)
        whole += rest >= 10**cut // 2
    digits = str(whole)
    return digits.rstrip("0"), len(digits) + cut


def _generated_digits(number: _Number, fraction: int, bits: int, behind: int) -> tuple[str, int]:
    exponent = _estimated_exponent(number)
    # The number is left / unit * 10 ** exponent; `half` is half the distance to the next number in the same measure.
    fives_left, fives_unit = max(0, -exponent), max(0, exponent)
    twos_left = fives_left + behind + number.exponent
    twos_unit = fives_unit + behind
    twos_half = twos_left - number.precision
    twos_left -= bits - 1
    common = min(twos_left, twos_unit)
    twos_left, twos_unit, twos_half = twos_left - common, twos_unit - common, twos_half - common
    if bits == 1:  # a power of two: the number below it is nearer
        twos_half -= 1
    if twos_half < 0:
        twos_left, twos_unit, twos_half = twos_left - twos_half, twos_unit - twos_half, 0
    width = _width(bits + twos_left + _five_bits(fives_left), twos_unit + 1 + _five_bits(fives_unit + 1))
    remainder, unit = fraction * 5**fives_left << twos_left, 5**fives_unit << twos_unit
    half = 5**fives_left << twos_half
    tens = 10 * unit

    digits: list[int] = []
    low = high = False
    is_first = True
    while is_first or not (low or high):
        digit, remainder = divmod(remainder, unit)
        remainder *= 10
        half = _wrapped(10 * half, width)
        if half > 0:
            low = remainder < half
            # Java's own large numbers are compared in another way than its ints and longs.
            high = remainder + half >= tens if width is None else _wrapped(remainder + half, width) > tens
        else:
            low = high = True
        if digit or high or not is_first:
            digits.append(digit)
        else:  # the estimate was one too high
            exponent -= 1
        # Behind the point there is a digit at least, also where an exponent follows.
        if is_first and not -3 <= exponent < 8:
            low = high = False
        is_first = False
    if high and (not low or 2 * remainder > tens or (2 * remainder == tens and digits[-1] % 2)):
        return _rounded_up(digits, exponent + 1)
    return "".join(map(str, digits)), exponent + 1


def _estimated_exponent(number: _Number) -> int:
    mantissa = number.fraction / (1 << 52)
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + number.exponent * 0.301029995663981)


def _five_bits(power: int) -> int:
    return (5**power).bit_length() if 0 < power < _LONGEST_TABLE else 3 * power


def _width(left: int, tens: int) -> int | None:
    """The bits of the type in which Java counts; None for numbers of any size."""
    return next((bits for bits in (32, 64) if left < bits and tens < bits), None)


def _wrapped(number: int, width: int | None) -> int:
    """The number wrapped to so many bits."""
    if width is None:
        return number
    number &= (1 << width) - 1
    return number - (1 << width) if number >> width - 1 else number


def _rounded_up(digits: list[int], point: int) -> tuple[str, int]:
    index = len(digits) - 1
    while digits[index] == 9 and index:
        digits[index] = 0
        index -= 1
    if digits[index] == 9:
        digits[index], point = 1, point + 1
    else:
        digits[index] += 1
    return "".join(map(str, digits)), point
