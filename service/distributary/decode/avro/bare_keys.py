"""Reads Avro keys that are no records: the bare value of one column (ExtractField$Key)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from distributary.decode.avro.compiler import Read, compile_reader
from distributary.decode.avro.framing import FramingHeaders, find_address, unread_form
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema
from distributary.decode.avro.targets import AS_JSON
from distributary.decode.avro.values import UNREAD
from distributary.decode.options import DecodeOptions
from distributary.types.strict_json import json_text

_UNREADABLE = b""


def bare_keys_as_json(
    keys: Sequence[bytes | None],
    indexes: Iterable[int],
    framing: FramingHeaders,
    unknown_schemas: set[str],
    options: DecodeOptions,
) -> list[bytes | None]:
    """The keys, with the Avro keys at these indexes as JsonConverter would write them; b"" for a key that can't be
    read. Addresses of schemas that the options lack are added to `unknown_schemas`."""
    as_json = list(keys)
    for index in indexes:
        key = as_json[index]
        if key is not None:
            as_json[index] = _as_json(key, index, framing, unknown_schemas, options)
    return as_json


def _as_json(
    key: bytes, index: int, framing: FramingHeaders, unknown_schemas: set[str], options: DecodeOptions
) -> bytes:
    headers = framing.get(index, {})
    address_and_begin = find_address(key, headers, "key", long_ids=options.long_ids)
    if address_and_begin is None:  # a text of another converter, or Avro whose schema is not known
        return key if unread_form(key, headers, "key") is None else _UNREADABLE
    address, begin = address_and_begin
    schema = (options.avro or {}).get(address)
    if schema is None:
        unknown_schemas.add(address)
    if schema is None or isinstance(schema, NotAnAvroSchema):
        return _UNREADABLE
    try:
        return json_text(_reader_of(schema)(key, begin)).encode()
    except UNREAD:
        return _UNREADABLE


@lru_cache(maxsize=256)
def _reader_of(schema: AvroSchema) -> Read:
    return compile_reader(schema, AS_JSON)
