"""The placeholder for values that the source did not send (PostgreSQL: unchanged TOAST values; Oracle: LOBs).

This module recognizes it; rules/pointers.py finds the record that has the value.

The placeholder's form depends on the column's type (seen in recorded events): text-like types hold the placeholder
itself, bytes its Base64 (or hexadecimal digits, by binary.handling.mode), arrays of text or bytes a list of it, arrays
of numbers and dates a list of its bytes, arrays of uuid one uuid that is derived from it, hstore a map of it to itself.
Unavailable values of numeric arrays and some other types come as null: they can't be distinguished from a NULL of the
source.

The column's type in the lake may be unable to hold the placeholder: a text that `columns` calls a variant or a
timestamp. If a list or a map is read as text, its placeholder is a text, too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import ColumnType
from distributary.types.strict_json import Json, Number


class Placeholder:
    """All forms of a placeholder. `given` is the connector's setting; behind `hex:` it has the placeholder's bytes in
    hexadecimal digits."""

    def __init__(self, given: str) -> None:
        text = bytes.fromhex(given[4:]).decode("utf-8", "replace") if given.startswith("hex:") else given
        self.text = text
        self.data = text.encode()
        plain = [
            text,
            base64.b64encode(self.data).decode(),
            base64.urlsafe_b64encode(self.data).decode(),
            self.data.hex(),
            self.data.hex().upper(),
        ]
        # Java's UUID.nameUUIDFromBytes: a version 3 uuid of the bytes alone.
        derived = str(uuid.UUID(bytes=hashlib.md5(self.data, usedforsecurity=False).digest(), version=3))
        self._lists: list[list[Any]] = [[plain[0]], [plain[1]], [derived], [self.data], list(self.data)]
        written = [{text: text}, *([form] for form in (*plain[:2], derived)), list(self.data)]
        as_json = [json.dumps(form, separators=(",", ":"), ensure_ascii=False) for form in written]
        self._texts = frozenset((*plain, *as_json))
        self._known = pa.array(sorted(self._texts), pa.string())

    def is_wire(self, value: Any) -> bool:
        """Whether a wire value is a placeholder."""
        if isinstance(value, str):
            return value in self._texts
        if isinstance(value, bytes):
            return value == self.data
        if isinstance(value, list):
            return value in self._lists
        return isinstance(value, dict) and self.text in value

    def is_json(self, value: Json) -> bool:
        """Whether a JSON value (see strict_json) is a placeholder, in a record that is read with care."""
        if isinstance(value, list):
            value = [
                int(item) if isinstance(item, Number) and len(item) < 4 and item.isdigit() else item for item in value
            ]
        return not isinstance(value, Number) and self.is_wire(value)

    def find(self, kind: ColumnType, values: Sequence[Any], array: pa.Array, bad: Sequence[int]) -> list[int]:
        """The indexes of placeholders in a column. `array`: its decoded values; `bad`: indexes of values that the type
        can't hold."""
        if not kind.may_be_unavailable:
            return []
        if kind.mark is not None or pa.types.is_nested(array.type):
            return self._find_in(values, range(len(values)))
        indexes = self._find_in(values, bad)
        if pa.types.is_string(array.type):
            indexes += np.flatnonzero(np.asarray(pc.is_in(array, value_set=self._known))).tolist()
        elif pa.types.is_binary(array.type):
            same = pc.equal(array, pa.scalar(self.data, array.type))
            indexes += np.flatnonzero(np.asarray(same.fill_null(False))).tolist()
        return sorted(set(indexes))

    def _find_in(self, values: Sequence[Any], places: Sequence[int]) -> list[int]:
        return [place for place in places if values[place] is not None and self.is_wire(values[place])]
