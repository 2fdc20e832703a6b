"""Keys as fixed-width numbers, which an index sorts and compares.

A key of one column of whole numbers, dates or timestamps is that number. Every other key is the 128-bit xxh3 of a
canonical encoding. Two of n keys share such a hash with a chance of about n² / 2¹²⁹: 1 in 10¹⁸ for 10 billion keys,
less than that of an undetected memory error. The keys themselves are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from distributary.arrow_errors import DATA_ERRORS

_VERSION = 1  # of the encoding: part of the signature, so that no index of another version is ever read
_CHUNK = 65_536  # rows whose encodings are in memory at a time
_NULL = -1  # as a length


@dataclass(frozen=True)
class Keys:
    """Keys as numbers. `words`: one int64 array, or two uint64 arrays (the high and the low half of the hash). `null`:
    whether each key is NULL, which a number can't show; None if there is no such key, and for hashes."""

    words: tuple[npt.NDArray[Any], ...]
    null: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.words[0])

    def part(self, start: int, stop: int) -> Keys:
        """The keys from number `start` to before `stop`."""
        null = None if self.null is None else self.null[start:stop]
        return Keys(tuple(word[start:stop] for word in self.words), null)

    def repeated(self) -> int:
        """How many keys are equal to one before them."""
        words, nulls = self.words, 0
        if self.null is not None:
            words, nulls = tuple(word[~self.null] for word in words), int(self.null.sum())
        order = np.lexsort(words[::-1])
        same = np.logical_and.reduce([word[order][1:] == word[order][:-1] for word in words])
        return int(same.sum()) + max(nulls - 1, 0)


class KeyCodec:
    """Encodes the key columns `columns` (name, the table's Arrow type), in that order. Raises ValueError if a type
    can't be part of a key.
    """

    def __init__(self, columns: Sequence[tuple[str, pa.DataType]]) -> None:
        if not columns:
            raise ValueError("a key needs at least one column")
        self.columns = tuple(columns)
        for name, kind in self.columns:
            if not _is_key_type(kind):
                raise ValueError(f"the key column {name} has the type {kind}, which can't be part of a key")
        self.is_number = len(self.columns) == 1 and _is_number(self.columns[0][1])

    @property
    def names(self) -> list[str]:
        """The names of the key columns."""
        return [name for name, _ in self.columns]

    @property
    def word_count(self) -> int:
        """How many arrays `Keys.words` has."""
        return 1 if self.is_number else 2

    @property
    def signature(self) -> str:
        """Says which numbers come out: equal signatures make equal numbers of equal keys."""
        form = "number" if self.is_number else "xxh3"
        return f"{_VERSION};{form};" + ";".join(f"{len(name)}:{name}:{kind}" for name, kind in self.columns)

    def fitted(self, rows: pa.Table) -> pa.Table:
        """The key columns of the rows, of the table's types. Raises as `encode`."""
        return pa.table({name: self._column(rows, name, kind) for name, kind in self.columns})

    def encode(self, rows: pa.Table) -> Keys:
        """The keys of the rows. Types are widened to the table's.

        Raises ValueError if a value does not fit into the table's type.
        """
        columns = [self._column(rows, name, kind) for name, kind in self.columns]
        if self.is_number:
            return _numbers(columns[0])
        high = np.empty(rows.num_rows, np.uint64)
        low = np.empty(rows.num_rows, np.uint64)
        for start in range(0, rows.num_rows, _CHUNK):
            encoded = _encoded([_plain(column.slice(start, _CHUNK)) for column in columns])
            hashed = b"".join(map(xxhash.xxh3_128_digest, encoded.to_pylist()))
            words = np.frombuffer(hashed, ">u8").reshape(-1, 2)
            high[start : start + _CHUNK], low[start : start + _CHUNK] = words[:, 0], words[:, 1]
        return Keys((high, low))

    @staticmethod
    def _column(rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        column = rows.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.type == kind:
            return column
        try:
            return column.cast(kind)
        except DATA_ERRORS as error:  # its text may quote a value
            raise ValueError(f"a value of the key column {name} ({column.type}) does not fit into {kind}") from error


def _is_number(kind: pa.DataType) -> bool:
    whole = pa.types.is_signed_integer(kind)
    return bool(whole or pa.types.is_date32(kind) or kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")))


def _is_key_type(kind: pa.DataType) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    real = pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return bool(_is_number(kind) or text or binary or real or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind))


def _numbers(column: pa.ChunkedArray) -> Keys:
    null = None
    if column.null_count:
        null = column.is_null().to_numpy()
    values = _plain(column)
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        values = values.view(pa.int64() if pa.types.is_timestamp(values.type) else pa.int32())
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return Keys((numbers,), null)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _encoded(columns: Sequence[pa.Array]) -> pa.Array:
    """One binary value per row: for each column its value's length as 8 bytes (-1 for NULL), then the value's bytes.

    The lengths make it unambiguous: ("a", "bc") and ("ab", "c") differ, and so do NULL and the empty text.
    """
    parts: list[pa.Array] = []
    for column in columns:
        values = _value_bytes(column)
        lengths = pc.cast(pc.binary_length(values), pa.int64()).fill_null(_NULL)
        parts += [_fixed_bytes(lengths, 8), values.fill_null(b"")]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _value_bytes(column: pa.Array) -> pa.Array:
    """The values as large_binary, NULL where they are NULL. Equal values have equal bytes."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_large_binary(kind):
        return column
    if pa.types.is_decimal128(kind):
        return _fixed_bytes(column, 16)
    if pa.types.is_floating(kind):
        return _fixed_bytes(_canonical_floats(column), 8)
    if pa.types.is_timestamp(kind):
        return _fixed_bytes(column.view(pa.int64()), 8)
    if pa.types.is_date(kind):
        column = column.view(pa.int32())
    return _fixed_bytes(column.cast(pa.int64()), 8)


def _canonical_floats(column: pa.Array) -> pa.Array:
    """Zero has one sign and NaN one form, as Spark compares them in keys."""
    column = pc.add(column.cast(pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(column), float("nan"), column)


def _fixed_bytes(column: pa.Array, width: int) -> pa.Array:
    """The bytes of an array of values of `width` bytes, as large_binary."""
    validity, data = column.buffers()
    kind = pa.binary(width)
    return pa.Array.from_buffers(kind, len(column), [validity, data], offset=column.offset).cast(pa.large_binary())
