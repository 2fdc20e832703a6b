"""Converts MongoDB's change events to envelopes of rows with two columns: `_id` and `document`, both as the text that
the connector sends (extended JSON).

Only whole documents can be kept: an update without one (`capture.mode: change_streams`) has no row.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MONGODB = "mongodb"
DOCUMENT_COLUMNS: Mapping[str, str] = {"_id": "string", "document": "string"}
"""The columns' types, unless `columns` in the config has others."""

_NULL = b"null"
_FIELDS = dict[str, msgspec.Raw]
_OBJECT = msgspec.json.Decoder(_FIELDS)
_KEPT = ("op", "source", "ts_ms", "transaction")


def key_of_document(key: bytes | None) -> bytes | None:
    """The key with its field `id` renamed to the column's name; any other key unchanged."""
    id_ = _id_of(key)
    return key if id_ is None else b'{"_id":%s}' % id_


def change_of_document(value: bytes | None, key: bytes | None) -> bytes | None:
    """The envelope with a row instead of the document; any other value unchanged."""
    event = _payload(value)
    if event is None or "op" not in event or "source" not in event:
        return value
    id_ = _id_of(key) or _NULL
    fields = {name: bytes(event[name]) for name in _KEPT if name in event}
    for name in ("before", "after"):
        document = bytes(event.get(name, _NULL))
        if document != _NULL and not document.startswith(b'"'):
            return value
        fields[name] = _NULL if document == _NULL else b'{"_id":%s,"document":%s}' % (id_, document)
    return b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), text) for name, text in fields.items())


def _id_of(key: bytes | None) -> bytes | None:
    fields = _payload(key)
    if fields is None or fields.keys() != {"id"}:
        return None
    id_text = bytes(fields["id"])
    return id_text if id_text.startswith(b'"') else None


def _payload(data: bytes | None) -> _FIELDS | None:
    """The fields of a JSON object, with or without a Connect schema beside it; None for anything else."""
    if data is None:
        return None
    try:
        fields = _OBJECT.decode(data)
        return _OBJECT.decode(fields["payload"]) if fields.keys() == {"schema", "payload"} else fields
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
