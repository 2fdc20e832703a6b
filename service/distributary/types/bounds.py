"""Limits of one record, checked before the work that they bound."""

from __future__ import annotations

from dataclasses import dataclass


class TooMuchText(Exception):
    """These records, inflated, or their values become more text than the bounds allow: fewer are to be decoded at
    once."""


@dataclass(frozen=True)
class Bounds:
    """A record beyond one of these bounds is rejected; other records are not affected.

    `record_bytes`: of the key and of the value. `decimal_bytes`: of a decimal's unscaled number (PostgreSQL's numeric
    has up to 147,455 digits, which are 61,233 bytes). `decimal_scale`: digits behind the point, or zeros before it.
    `text_bytes`: of the decimals' texts of one record and column, as a few bytes may become 20 kB, and eight times that
    of all its columns. `nesting`: of a schema's types, and of a value that has to be read with care. `columns`: of one
    struct. `schemas`: new ones in one batch, or in the part of one task if several tasks decode a batch.
    """

    record_bytes: int = 128 * 2**20
    decimal_bytes: int = 61_440
    decimal_scale: int = 20_000
    text_bytes: int = 64 * 2**20
    nesting: int = 64
    columns: int = 5_000
    schemas: int = 200
