"""Finds keys and values that are not UTF-8. The reader of JSON checks only the texts that it returns, not those it
skips."""

from __future__ import annotations

import pyarrow as pa


def find_bad_utf8(column: pa.ChunkedArray) -> list[int]:
    """The indexes of values that are not UTF-8. `column` has bytes."""
    bad: list[int] = []
    begin = 0
    for array in column.chunks:
        if not _is_utf8(array):
            bad += [begin + index for index in range(len(array)) if not _is_utf8(array.slice(index, 1))]
        begin += len(array)
    return bad


def _is_utf8(array: pa.Array) -> bool:
    text = pa.large_string() if pa.types.is_large_binary(array.type) else pa.string()
    as_text = pa.Array.from_buffers(text, len(array), array.buffers(), array.null_count, array.offset)
    try:
        as_text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
