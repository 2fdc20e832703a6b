"""Turns Debezium's CloudEvents in JSON back into envelopes.

CloudEventsConverter puts the operation, the fields of the source block and the transaction into attributes
(`iodebezium` and the field's name without its underscores), and the rows before and after the change into `data`, with
a Connect schema beside them if that is configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from distributary.decode.source_block import SOURCE_FIELDS

_ATTRIBUTE = "iodebezium"
_NULL = b"null"
_FIELDS = dict[str, msgspec.Raw]
_EVENT = msgspec.json.Decoder(_FIELDS)
_TRANSACTION = {"id": f"{_ATTRIBUTE}txid", "data_collection_order": f"{_ATTRIBUTE}txdatacollectionorder"}


def envelope_of(data: bytes | None, order: tuple[str, ...] = ()) -> bytes | None:
    """The envelope in a CloudEvent; the bytes unchanged if they are no CloudEvent. `order` are further fields of the
    source block that the caller needs."""
    event = _object(data)
    if event is None or "specversion" not in event or f"{_ATTRIBUTE}op" not in event:
        return data
    rows, schema = _object(bytes(event.get("data", _NULL))), None
    if rows is not None and rows.keys() == {"schema", "payload"}:
        schema, rows = bytes(rows["schema"]), _object(bytes(rows["payload"]))
    if rows is None or rows.keys().isdisjoint(("before", "after")):
        return data
    envelope = {
        "op": bytes(event[f"{_ATTRIBUTE}op"]),
        "source": _written(event, _source_attributes(order)),
        "after": bytes(rows.get("after", _NULL)),
        "before": bytes(rows.get("before", _NULL)),
        "transaction": _written(event, _TRANSACTION) if _is_written(event, _TRANSACTION["id"]) else _NULL,
    }
    payload = b",".join(b'"%s":%s' % (name.encode(), value) for name, value in envelope.items())
    return b"{%s}" % payload if schema is None else b'{"schema":%s,"payload":{%s}}' % (schema, payload)


@lru_cache(maxsize=64)
def _source_attributes(order: tuple[str, ...]) -> Mapping[str, str]:
    return {name: f"{_ATTRIBUTE}{name.replace('_', '')}" for name in (*SOURCE_FIELDS, *order)}


def _object(data: bytes | None) -> _FIELDS | None:
    """The fields of a JSON object; None for anything else."""
    if data is None:
        return None
    try:
        return _EVENT.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_written(event: Mapping[str, msgspec.Raw], attribute: str) -> bool:
    return bytes(event.get(attribute, _NULL)) != _NULL


def _written(event: Mapping[str, msgspec.Raw], attributes: Mapping[str, str]) -> bytes:
    written: Iterable[tuple[str, str]] = ((name, at) for name, at in attributes.items() if _is_written(event, at))
    return b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), bytes(event[at])) for name, at in written)
