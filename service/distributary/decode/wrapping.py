"""Cuts a key or a value into its Connect schema and its payload, if JsonConverter wrote a schema beside it."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from distributary import reasons
from distributary.reasons import Rejected
from distributary.types.bounds import Bounds
from distributary.types.strict_json import has_field_twice, parse_object

_OPEN = b'{"schema":'
_CUT = b',"payload":'
_BLANKS = b" \t\r\n"
_MAY_BE_WRAPPED = re.compile(rb'[ \t\r\n]*{[ \t\r\n]*"(?:schema|payload)"')


class Wrapped(NamedTuple):
    """`schema` is None if there is none; `begin` is the common beginning of all records with that schema, None if it
    does not identify the schema."""

    schema: bytes | None
    payload: bytes
    begin: bytes | None = None


class _Loose(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


_LOOSE = msgspec.json.Decoder(_Loose)


def unwrap(data: bytes, bounds: Bounds) -> Wrapped:
    """Cuts `{"schema":…,"payload":…}`, without spaces as JsonConverter writes it, with spaces, or with the payload
    first. Anything else has no schema.

    Raises Rejected for a wrapping that can be read in two ways.
    """
    if data.startswith(_OPEN):
        schema, cut, behind = data[len(_OPEN) :].partition(_CUT)
        if cut and schema == b"null":
            return Wrapped(None, without_last_brace(behind))
        if cut and schema.startswith(b"{") and _is_json(schema):
            return Wrapped(schema, without_last_brace(behind), data[: len(data) - len(behind)])
    if not _MAY_BE_WRAPPED.match(data):
        return Wrapped(None, data)
    try:
        loose = _LOOSE.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Wrapped(None, data)
    schema, payload = bytes(loose.schema), bytes(loose.payload)
    if schema != b"null" and not schema.startswith(b"{"):
        return Wrapped(None, data)
    if has_field_twice(parse_object(data, bounds)):
        raise Rejected(reasons.AMBIGUOUS)
    return Wrapped(None if schema == b"null" else schema, payload)


def are_never_wrapped(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each text (BINARY) whether its beginning shows that `unwrap` finds no schema. False for some others, too."""
    is_object, *may_be_wrapped = (pc.starts_with(column, start) for start in (b'{"', b'{"s', b'{"p'))
    plain = pc.and_(is_object, pc.invert(pc.or_(*may_be_wrapped)))
    found: npt.NDArray[np.bool_] = np.asarray(pc.fill_null(plain, False))
    return found


def without_last_brace(behind: bytes) -> bytes:
    """A payload without the brace that closes its wrapping; unchanged if the brace is missing, which is a fault."""
    if behind.endswith(b"}"):
        return behind[:-1]
    trimmed = behind.rstrip(_BLANKS)
    return trimmed[:-1] if trimmed.endswith(b"}") else trimmed


def is_null(payload: bytes) -> bool:
    """Whether a payload is JSON's null."""
    return len(payload) < 64 and payload.strip(_BLANKS) == b"null"


def _is_json(schema: bytes) -> bool:
    """Whether the text before the cut is JSON. If it is not, it is no schema, and the cut is wrong."""
    try:
        msgspec.json.decode(schema, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
