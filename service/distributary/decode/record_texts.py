"""The keys or values of a batch as bytes, without the Connect schema that most of them begin with.

A schema in JSON is often several times as long as its payload. It is removed from the whole column at once, before each
text becomes a bytes object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.decode.wrapping import are_never_wrapped
from distributary.reasons import Rejected

_MOST_SCHEMAS = 8
"""Schemas of one batch that are removed from the whole column; records with other schemas are cut one by one."""

FindReader = Callable[[bytes], tuple[Any, bytes]]


@dataclass(frozen=True)
class RecordTexts:
    """`data` has the text of each record; only its payload if `readers` has the reader of its schema."""

    data: list[bytes | None]
    readers: list[Any]

    def drop(self, index: int) -> None:
        """Removes a text that can't be read."""
        self.data[index] = None


def whole_texts(column: pa.ChunkedArray) -> RecordTexts:
    """All texts as they are."""
    return RecordTexts(column.to_pylist(), [None] * len(column))


def texts_without_schema(column: pa.ChunkedArray, find_reader: FindReader) -> RecordTexts:
    """The texts (BINARY) without their schemas. `find_reader` returns the reader of a whole text and the text's
    payload; the reader's `begin` is the common beginning of all texts with its schema, or it
    `reads_all_without_schema`. It may raise Rejected."""
    readers = np.full(len(column), None, object)
    is_missing = np.asarray(column.is_null())
    uncut = ~is_missing
    texts = column
    for _ in range(_MOST_SCHEMAS):
        if not uncut.any():
            break
        first = int(uncut.argmax())
        uncut[first] = False
        try:
            reader, _payload = find_reader(column[first].as_py())
        except Rejected:
            continue
        if reader.begin is None:
            if reader.reads_all_without_schema:
                are_plain = are_never_wrapped(column)
                readers[are_plain] = reader
                uncut &= ~are_plain
            continue
        # Blanks behind the value's last brace are rare: such texts are cut one by one.
        is_known = pc.and_(pc.starts_with(column, reader.begin), pc.ends_with(column, b"}"))
        mine = np.asarray(pc.fill_null(is_known, False))
        payloads = pc.binary_slice(column, len(reader.begin), -1)
        # A choice by record would copy all texts once more.
        texts = payloads if (mine | is_missing).all() else pc.if_else(pa.array(mine), payloads, texts)
        readers[mine] = reader
        uncut &= ~mine
    return RecordTexts(texts.to_pylist(), readers.tolist())
