"""The schema of a table from its records: all of their columns, each with the widest type."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from distributary.decode.decoder import Decoded, Decoder
from distributary.types.record_schema import RecordSchema

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0)}
"""Digits before and behind the point."""


def learn(decoder: Decoder, raw: pa.RecordBatch | pa.Table) -> RecordSchema:
    """The schema of all columns of the records."""
    return learn_and_decode(decoder, raw)[1]


def learn_and_decode(decoder: Decoder, raw: pa.RecordBatch | pa.Table) -> tuple[Decoded, RecordSchema]:
    """The records decoded with all columns that they have: decodes until a schema has them all."""
    schema = RecordSchema()
    while True:
        decoded = decoder.decode(raw, schema)
        row, key = _extended(decoded, schema.row, is_key=False), _extended(decoded, schema.key, is_key=True)
        if RecordSchema(row, key) == schema:
            return decoded, schema
        schema = RecordSchema(row, key)


def unread_columns(decoded: Decoded, row: Mapping[str, str]) -> set[str]:
    """The columns of the records' rows that the schema lacks, or has with a type that does not hold their values."""
    return {name for name, kind in _extended(decoded, row, is_key=False).items() if kind != row.get(name)}


def _extended(decoded: Decoded, known: Mapping[str, str], *, is_key: bool) -> dict[str, str]:
    found = dict(known)
    for one in decoded.observed:
        if one.is_key == is_key:
            found.update({name: _wider(found.get(name, kind), kind) for name, kind in one.types.items()})
    return found


def _wider(one: str, other: str) -> str:
    """The Spark type that holds the values of both types exactly; `string` where no other does."""
    if one == other:
        return one
    if one in _WHOLE and other in _WHOLE:
        return max(one, other, key=_WHOLE.index)
    if {one, other} == {"float", "double"}:
        return "double"
    digits = [_DIGITS.get(kind) or _decimal_digits(kind) for kind in (one, other)]
    if None in digits:
        return "string"
    (whole, scale), (other_whole, other_scale) = (pair for pair in digits if pair is not None)
    whole, scale = max(whole, other_whole), max(scale, other_scale)
    return f"decimal({whole + scale},{scale})" if whole + scale <= 38 else "string"


def _decimal_digits(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", kind)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None
