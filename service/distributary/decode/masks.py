"""Masked columns: a value is replaced by its keyed hash, or by a constant. The value itself never leaves the decoder.

A hash is HMAC-SHA-256 (RFC 2104) of the value's text in UTF-8, as 64 hexadecimal digits, with the salt as its key:
equal values have equal hashes, in every table of the same salt, and without the salt nobody can try values out.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import ColumnType, Converted
from distributary.types.spark_text import spark_texts

REDACTED = "***"
MADE_OF = " of "
"""Separates the two parts of a mark: how the column is masked, and the spelling of the text that is hashed."""
_WHOLE = ("string", "tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Masks:
    """How columns are masked: `how` by the source's name, hash or redact. `salt` keys the hashes."""

    how: Mapping[str, str] = field(default_factory=dict)
    salt: str = field(default="", repr=False)

    def over(self, column: str, kind: ColumnType) -> ColumnType:
        """The type of a column with its mask; the type itself if the column has no mask."""
        how = self.how.get(column)
        if how is None:
            return kind
        if how == "hash":
            return _masked(kind, self._hashed, f"{self.mark(column)}{MADE_OF}{_spelling(kind.spark)}")
        return _masked(kind, _redacted, how)

    def mark(self, column: str) -> str | None:
        """How the config masks a column; None if it does not. It contains a fingerprint of the salt, so that another
        salt is noticed."""
        how = self.how.get(column)
        if how != "hash":
            return how
        return f"hash {hmac.new(self.salt.encode(), b'distributary', 'sha256').hexdigest()[:16]}"

    def _hashed(self, array: pa.Array, spark: str) -> pa.Array:
        salt = self.salt.encode()
        texts: Sequence[str | None] = spark_texts(array, spark)
        hashes = [None if text is None else hmac.digest(salt, text.encode(), "sha256").hex() for text in texts]
        return pa.array(hashes, pa.string())


NO_MASKS = Masks()


def _redacted(array: pa.Array, _spark: str) -> pa.Array:
    return pc.if_else(array.is_valid(), pa.scalar(REDACTED), pa.scalar(None, pa.string()))


def _masked(kind: ColumnType, mask: Any, mark: str) -> ColumnType:
    def convert(values: Sequence[Any]) -> Converted:
        array, bad = kind.convert(values)
        return Converted(mask(array, kind.spark), bad)

    return replace(kind, spark="string", arrow=pa.string(), convert=convert, mark=mark)


def _spelling(spark: str) -> str:
    """A name for the spelling of a type's values as text. Whole numbers are spelled alike, as numbers and as text;
    decimals by their scale, and without a schema as Base64."""
    if spark in _WHOLE:
        return "text or whole numbers"
    decimal = re.fullmatch(r"decimal\([0-9]+,([0-9]+)\)", spark)
    return f"decimals of scale {decimal[1]}" if decimal else f"values of the type {spark}"
