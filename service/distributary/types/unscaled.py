"""Unscaled numbers, big-endian two's complement as Connect's Decimal has them, to a DECIMAL column: whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distributary.types.base import Converted

_LONG_DIGITS = 18
"""As many digits as always fit in eight bytes."""
_WORD = 2**64


def decimals_of_bytes(values: Sequence[Any], precision: int, scale: int) -> Converted:
    """A column DECIMAL(precision, scale), precision being 38 at most, from bytes or None.

    No bytes at all, and a number of more digits, is a bad value.
    """
    packed = pa.array(values, pa.binary())
    count = len(packed)
    arrow = pa.decimal128(precision, scale)
    offsets = np.frombuffer(packed.buffers()[1], np.int32)[: count + 1].astype(np.int64) if count else np.zeros(1, int)
    lengths = np.diff(offsets)
    null = np.asarray(packed.is_null()) if packed.null_count else np.zeros(count, bool)
    width = 8 if precision <= _LONG_DIGITS else 16
    bad = ((lengths == 0) | (lengths > 16)) & ~null
    widest = int(np.where(bad, 0, lengths).max()) if count else 0
    if widest == 0:
        return Converted(pa.nulls(count, arrow), np.flatnonzero(bad).tolist())
    width = max(width, 8 if widest <= 8 else 16)
    padded = _right_aligned(packed, offsets, np.where(bad, 0, lengths), width)
    low, high, beyond = _words(padded, width, 10**precision)
    bad |= beyond & ~null
    words = np.empty((count, 2), np.int64)
    words[:, 0], words[:, 1] = low, high
    valid = ~(bad | null)
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    array = pa.Array.from_buffers(arrow, count, [validity, pa.py_buffer(words)])
    return Converted(array, np.flatnonzero(bad).tolist())


def _right_aligned(
    packed: pa.Array, offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.uint8]:
    """The numbers' bytes, `width` of each, with the sign in front."""
    data = np.frombuffer(packed.buffers()[2], np.uint8)
    starts = offsets[:-1]
    index = np.arange(width) - (width - lengths)[:, None]
    digits = data[np.clip(starts[:, None] + index, 0, len(data) - 1)]
    first = data[np.minimum(starts, len(data) - 1)]
    sign = np.where((first >= 128) & (lengths > 0), 255, 0).astype(np.uint8)
    return np.ascontiguousarray(np.where(index < 0, sign[:, None], digits))


def _words(
    padded: npt.NDArray[np.uint8], width: int, limit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The low and the high word of each number, and whether it is as large as the limit."""
    if width == 8:
        short = padded.view(">i8").reshape(-1).astype(np.int64)
        most = min(limit, 2**63 - 1)
        beyond = (short >= most) | (short <= -most) if limit < 2**63 else np.zeros(len(short), bool)
        return short, short >> 63, beyond
    high = np.ascontiguousarray(padded[:, :8]).view(">i8").reshape(-1).astype(np.int64)
    low = np.ascontiguousarray(padded[:, 8:]).view(">u8").reshape(-1).astype(np.uint64)
    negative = high < 0
    size_low = np.where(negative, ~low + np.uint64(1), low)
    size_high = np.where(negative, ~high + (low == 0), high)
    most_high, most_low = divmod(limit, _WORD)
    beyond = (size_high > most_high) | ((size_high == most_high) & (size_low >= np.uint64(most_low))) | (size_high < 0)
    return low.view(np.int64), high, beyond
