"""Keys that are not JSON objects: the bare value of one column (ExtractField$Key), or a text (StringConverter).

A bare key does not name its column. That is the column under `key` in the config, if the rows of such records have the
key's value in this column. The value is read by the column's schema in rows, not by the key's own schema, so that key
and row give equal values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import msgspec

from distributary.decode.envelope import TOMBSTONE
from distributary.decode.options import BareKey, DecodeOptions
from distributary.decode.readers import Readers
from distributary.decode.row_reader import REFUSED
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.wire_records import WireRecords
from distributary.decode.wrapping import is_null, unwrap
from distributary.reasons import NO_KEY_COLUMNS, Rejected
from distributary.types.bounds import Bounds

_SCALAR = re.compile(rb"\s*[-0-9\"tf]")
_STRUCT = re.compile(r"Struct\{(?P<name>[^=]*)=(?P<value>.*)\}", re.DOTALL)
"""A Struct of Kafka Connect with one field, as text. With several fields the end of the first value would be
unknown."""


def bare_key(data: bytes, column: str, bounds: Bounds) -> str | None:
    """The JSON of the column's value in a bare key; None for an object, for null, and for text from which no value can
    be read."""
    try:
        payload = unwrap(data, bounds).payload
        if is_null(payload):
            return None
        parsed = msgspec.json.decode(payload, type=msgspec.Raw)
        return bytes(parsed).decode() if _SCALAR.match(payload) else None
    except (Rejected, RecursionError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text.startswith(("{", "[")) or text[:1] < " ":  # broken JSON; Avro
        return None
    struct = _STRUCT.fullmatch(text)
    if struct is None:
        return None if text.startswith("Struct{") else json.dumps(text)
    return json.dumps(struct["value"]) if struct["name"] == column else None


def read_bare_keys(
    keys: list[bytes | None], nothings: list[int], batch: WireRecords, readers: Readers, options: DecodeOptions
) -> None:
    """Reads the keys of the records at `nothings`, which have no value. In a table with `key_from_row` only the bare
    key identifies the row that such a record deletes. A record whose key can't be read is rejected, unless the topic's
    deletes have rows of their own."""
    bare = options.bare_key
    schema = None if bare is None else _schema_of_rows(bare, options)
    for index in nothings:
        key = keys[index]
        if key is None or index in batch.faults.found:
            continue
        text = None if bare is None else bare_key(key, bare.column, options.bounds)
        if bare is not None and options.lake_name(bare.column) not in readers.schema.row:
            text = None  # the key is a text without a type, so a row has to show the column's type first
        if bare is None or text is None:
            if options.unwrapped is not None and not options.unwrapped.has_delete_rows:
                batch.faults.add(index, NO_KEY_COLUMNS, ", and its key can't be read as the column under `key`")
            continue
        sent = f"{{{json.dumps(bare.column)}:{text}}}".encode()
        payload = sent if options.unwrapped is not None else b'{"op":"d","before":' + sent + b"}"
        try:
            reader = readers.of_bare_key(schema)
            bad: Iterable[int] = ()
            try:
                change = reader.read(payload)
            except REFUSED:
                change = reader.read_with_care(payload)
                bad = change.bad if change.after is not None else change.bad_before
        except Rejected as rejected:
            batch.faults.add(index, rejected.reason, rejected.detail)
            continue
        batch.operations[index] = "d" if options.connector == BY_OFFSET else TOMBSTONE
        row = change.before if change.after is None else change.after
        batch.before.put(index, reader, row, bad)


def _schema_of_rows(key: BareKey, options: DecodeOptions) -> str | None:
    """The schema of rows that have the key's column alone; None if rows have no schema."""
    if key.schema is None:
        return None
    row = {"type": "struct", "fields": [{**json.loads(key.schema), "field": key.column}]}
    if options.unwrapped is None:
        row = {"type": "struct", "fields": [{**row, "field": name} for name in ("before", "after")]}
    return json.dumps(row)
