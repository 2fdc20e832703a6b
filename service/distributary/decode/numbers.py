"""Decimals as Connect writes them: base64 of a big-endian two's complement unscaled value.

Everything is Spark SQL text, so that it runs in the JVM and is tested without one where only the text matters.
"""

from __future__ import annotations

from distributary.decode.sql import let

_BILLION = "1000000000L"
_INVERT = "translate({h}, '0123456789ABCDEF', 'FEDCBA9876543210')"


def unscaled(binary: str, at_most_bytes: int | None = None) -> str:
    """STRING: the decimal digits (with `-`) of a BINARY two's complement number; NULL for NULL and for no bytes.

    Up to eight bytes fit in a long; longer ones (more than 18 digits) are turned into limbs of nine digits, which takes
    a long expression: `at_most_bytes` spares it where the type has no more. A longer number then gives NULL.
    """
    # Not bound by `let`: what stands in a lambda is interpreted, and each record's decimals pass through here.
    hexadecimal = f"hex({binary})"
    sign = f"CASE WHEN {hexadecimal} >= '8' THEN 'F' ELSE '0' END"  # by the first digit, which has the sign bit
    short = f"conv(lpad({hexadecimal}, 16, {sign}), 16, -10)"
    # NULL for no bytes at all, too.
    cases = f"WHEN octet_length({binary}) BETWEEN 1 AND 8 THEN {short}"
    if at_most_bytes is None or at_most_bytes > 8:
        inverted = let("flipped_", _INVERT.format(h="hex_"), _digits("flipped_", plus_one=True))
        long = f"CASE WHEN hex_ >= '8' THEN concat('-', {inverted}) ELSE {_digits('hex_', plus_one=False)} END"
        cases += f" WHEN octet_length({binary}) > 8 THEN {let('hex_', hexadecimal, long)}"
    return f"CASE {cases} END"


def _digits(hexadecimal: str, *, plus_one: bool) -> str:
    """The decimal digits of an unsigned hexadecimal number, plus one where a complement is undone."""
    width = f"(8 * CAST(ceil(length({hexadecimal}) / 8) AS INT))"
    padded = f"lpad({hexadecimal}, {width}, '0')"
    chunks = (
        f"transform(sequence(0, {width} div 8 - 1),"
        f" i -> CAST(conv(substring({padded}, CAST(1 + i * 8 AS INT), 8), 16, 10) AS BIGINT))"
    )
    limbs = f"aggregate({chunks}, array(0L), (limbs_, chunk_) -> {_times_plus('limbs_', 'chunk_')})"
    exact = _carried(limbs, "1L" if plus_one else "0L")
    joined = f"array_join(transform(reverse({exact}), part -> lpad(CAST(part AS STRING), 9, '0')), '')"
    return f"coalesce(nullif(ltrim('0', {joined}), ''), '0')"


def _times_plus(limbs: str, addend: str) -> str:
    """limbs * 2^32 + addend, limbs being base 10^9, lowest first; each may be a little more than its base.

    Two passes hand every limb's carry to the next one, all at once: one after the other, the array would be copied for
    each limb, and a number of some thousand digits would take minutes.
    """
    first = f"CASE WHEN i = 0 THEN {addend} ELSE 0L END"
    grown = f"concat(transform({limbs}, (x, i) -> x * 4294967296L + {first}), array(0L, 0L))"

    def handed_on(name: str) -> str:
        carry = f"CASE WHEN i > 0 THEN {name}[i - 1] div {_BILLION} ELSE 0L END"
        return f"transform({name}, (x, i) -> x % {_BILLION} + {carry})"

    trimmed = "CASE WHEN element_at(done_, -1) = 0 THEN slice(done_, 1, size(done_) - 1) ELSE done_ END"
    return let("grown_", grown, let("once_", handed_on("grown_"), let("done_", handed_on("once_"), trimmed)))


def _carried(limbs: str, addend: str) -> str:
    """limbs + addend with every limb below its base."""
    return (
        f"aggregate({limbs},"
        f" named_struct('carry', {addend}, 'done', CAST(array() AS ARRAY<BIGINT>)),"
        f" (s, limb) -> named_struct('carry', (limb + s.carry) div {_BILLION},"
        f" 'done', concat(s.done, array((limb + s.carry) % {_BILLION}))),"
        f" s -> concat(s.done, array(s.carry)))"
    )


def to_decimal(digits: str, precision: int, scale: int) -> str:
    """DECIMAL(precision, scale) of an unscaled STRING; NULL where it does not fit."""
    return f"try_cast(concat({digits}, 'E', '{-scale}') AS DECIMAL({precision}, {scale}))"


def to_plain(digits: str, scale: str) -> str:
    """STRING in plain notation, exact, of an unscaled STRING and an INT scale (negative: zeros are appended)."""
    bare = "ltrim('-', digits_)"
    padded = f"lpad({bare}, greatest(length({bare}), {scale} + 1), '0')"
    pointed = f"concat(left(padded_, length(padded_) - ({scale})), '.', right(padded_, {scale}))"
    body = (
        f"CASE WHEN {scale} = 0 THEN digits_"
        f" WHEN {scale} < 0 THEN"
        f" CASE WHEN digits_ = '0' THEN '0' ELSE concat(digits_, repeat('0', -({scale}))) END"
        f" ELSE concat(CASE WHEN startswith(digits_, '-') THEN '-' ELSE '' END, {let('padded_', padded, pointed)}) END"
    )
    return let("digits_", digits, body)


def exact_decimal(number: str, precision: int, scale: int) -> str:
    """DECIMAL(precision, scale) of a STRING in any notation; NULL where it would have to be rounded or is too large."""
    plain = f"number_ RLIKE '^\\\\s*[+-]?[0-9]*([.][0-9]{{0,{scale}}}0*)?\\\\s*$'"
    # Of 12.50E-3 the digits that count lie as far behind the point as those of 12.5 do, and three places more.
    mantissa, exponent = (f"substring_index(lower(number_), 'e', {part})" for part in (1, -1))
    behind = (
        f"length(regexp_extract({mantissa}, '[.]([0-9]*)', 1))"
        f" - length(regexp_extract(replace({mantissa}, '.', ''), '0*$', 0)) - try_cast({exponent} AS BIGINT)"
    )
    exponential = f"number_ RLIKE '[eE]' AND (number_ RLIKE '^\\\\s*[+-]?[0.]+[eE]' OR {behind} <= {scale})"
    cast = f"try_cast(number_ AS DECIMAL({precision}, {scale}))"
    return let("number_", number, f"CASE WHEN {plain} OR ({exponential}) THEN {cast} END")


def exact_whole(number: str, kind: str) -> str:
    """A whole number's type (TINYINT to BIGINT) of a STRING in any notation; NULL where it has a fraction or is too
    large."""
    return f"try_cast({exact_decimal(number, 38, 0)} AS {kind})"


def has_more_than_15_digits(number: str) -> str:
    """BOOLEAN, of a STRING that shows a DOUBLE: more than every number keeps that was made a DOUBLE of."""
    return f"{number} RLIKE '^-?[0.]*[1-9]([.]?[0-9]){{15}}'"


def plain_number(number: str) -> str:
    """STRING in plain notation, exact, of a STRING in any notation; NULL where it is no number that JSON has."""
    mantissa, exponent = (f"substring_index(number_, 'E', {part})" for part in (1, -1))
    places = f"length(regexp_extract({mantissa}, '[.]([0-9]*)', 1)) - CAST({exponent} AS INT)"
    exponential = let("places_", places, to_plain(f"replace({mantissa}, '.', '')", "places_"))
    body = f"CASE WHEN number_ RLIKE '^-?[0-9.]+E' THEN {exponential} WHEN number_ RLIKE '^-?[0-9]' THEN number_ END"
    # A DOUBLE shows a zero behind the point where there is nothing.
    return let("number_", f"regexp_replace({number}, '[.]0(?=E|$)', '')", body)


def plain(decimal: str, scale: int) -> str:
    """STRING in plain notation of a DECIMAL of that scale."""
    # By a cast a small number of many digits would be written with an exponent: 1E-10.
    return f"CAST({decimal} AS STRING)" if scale <= 6 else f"format_number({decimal}, '0.{'0' * scale}')"
