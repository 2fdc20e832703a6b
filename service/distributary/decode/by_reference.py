"""Detects references to large values that the connector stores elsewhere. A reference must not be taken for the value.

Debezium's S3LargeMessagePostProcessor (3.7) puts texts and bytes of more than a limit into a bucket, and writes
`__debezium:s3:ref:v1:BUCKET|KEY` instead; the transform EnforceRecordSize stores whole records, and writes JSON that
begins with the field `__debezium_claim_check` into the configured columns. In JSON, bytes have the form that
binary.handling.mode sets, even in a column that is read as text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from distributary.types.base import ColumnType

_REFERENCE = re.compile(rb'__debezium:[a-z0-9]+:ref:v[0-9]+:|{"__debezium_claim_check":true[,}]')
# The start of a reference: as bytes; as text, in Base64 (also that of URLs), and in hexadecimal digits.
_IN_BYTES = (b"__debezium:", b'{"__debezium_claim_check"')
_IN_TEXT = (*(begin.decode() for begin in _IN_BYTES), "X19kZWJleml1b", "eyJfX2RlYmV6aXVtX2NsYWltX2NoZWNr")
_IN_DIGITS = tuple(begin.hex() for begin in _IN_BYTES)
_BEGINNINGS = f"^(?:{'|'.join(map(re.escape, _IN_TEXT))}|(?i:{'|'.join(_IN_DIGITS)}))"
_MAY_BE = re.compile(_BEGINNINGS)


def find_references(kind: ColumnType, values: Sequence[Any], array: pa.Array, bad: Iterable[int]) -> list[int]:
    """The indexes of references among the wire values of a column. `array`: its decoded values; `bad`: indexes of
    values that the type can't hold."""
    if kind.wire is not str and kind.wire is not bytes:
        return []
    if kind.mark is not None:  # the array has hashes
        indexes: Iterable[int] = range(len(values))
    elif pa.types.is_string(array.type):
        indexes = {*np.flatnonzero(np.asarray(_may_be(array))).tolist(), *bad}
    elif pa.types.is_binary(array.type):
        begins = (pc.equal(pc.binary_slice(array, 0, len(begin)), begin).fill_null(False) for begin in _IN_BYTES)
        indexes = {*(at for some in begins for at in np.flatnonzero(np.asarray(some)).tolist()), *bad}
    else:
        indexes = bad
    return sorted(index for index in indexes if is_reference(values[index]))


def is_reference(value: Any) -> bool:
    """Whether a wire value is a reference."""
    if isinstance(value, bytes):
        return _REFERENCE.match(value) is not None
    if not isinstance(value, str) or _MAY_BE.match(value) is None:
        return False
    forms = (str.encode, _from_base64, bytes.fromhex)
    return any(_REFERENCE.match(_formed(form, value)) is not None for form in forms)


def _may_be(array: pa.Array) -> pa.Array:
    return pc.match_substring_regex(array, _BEGINNINGS).fill_null(False)


def _from_base64(value: str) -> bytes:
    return base64.urlsafe_b64decode(value.replace("+", "-").replace("/", "_"))


def _formed(form: Any, value: str) -> bytes:
    try:
        return bytes(form(value))
    except (ValueError, binascii.Error):
        return b""
