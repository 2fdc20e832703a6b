"""Whether a topic's keys are bare values of the column under `key` in the config, by its first records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from distributary.config.table import TableSettings
from distributary.consume.sample import SampledRecord
from distributary.decode.bare_key import bare_key
from distributary.decode.envelope import is_envelope
from distributary.decode.options import BareKey
from distributary.ingest.record_form import parse_payload, payload_of
from distributary.ingest.topic_format import TopicFormat
from distributary.types.base import text_of
from distributary.types.bounds import Bounds
from distributary.types.strict_json import Number


def with_bare_keys(topic_format: TopicFormat, records: Sequence[SampledRecord], settings: TableSettings) -> TopicFormat:
    """The format, with the column whose values the keys are. A key may as well be that of another column, so the rows
    beside the keys have to have the same values."""
    if topic_format.key or len(settings.key) != 1:
        return topic_format
    (column,) = settings.key
    records = [*map(payload_of, records)] if topic_format.in_payload_object else records
    pairs = [pair for record in records if (pair := _pair(record, column)) is not None]
    is_bare = bool(pairs) and all(key is not None and key == value for key, value in pairs)
    return replace(topic_format, bare_key=BareKey(column, _schema(records, column))) if is_bare else topic_format


def _pair(record: SampledRecord, column: str) -> tuple[str | None, str | None] | None:
    """The column's value in a record's key and in its row; None where there is no key or no row."""
    row = _row(parse_payload(record.value)[0])
    if record.key is None or row is None:
        return None
    value = row.get(column)
    key = bare_key(record.key, column, Bounds())
    return None if key is None else _text(msgspec.json.decode(key)), None if value is None else _text(value)


def _schema(records: Iterable[SampledRecord], column: str) -> str | None:
    """The Connect schema of the column in the first row that has one, as JSON."""
    for record in records:
        value, schema = parse_payload(record.value)
        if schema is None or (row := _row(value)) is None or column not in row:
            continue
        struct = schema if row is value else _field(schema, "after") or _field(schema, "before")
        if (field := _field(struct or {}, column)) is not None:
            return json.dumps(field)
    return None


def _field(struct: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    fields = struct.get("fields")
    entries = fields if isinstance(fields, list) else []
    return next((entry for entry in entries if isinstance(entry, dict) and entry.get("field") == name), None)


def _row(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if not is_envelope(value):
        return value
    row = value.get("after") or value.get("before")
    return row if isinstance(row, dict) else None


def _text(value: Any) -> str:
    """A JSON value as text: the converter of texts writes numbers like the one of JSON."""
    if isinstance(value, str | bool):
        return value if isinstance(value, str) else text_of(value)
    return text_of(Number(msgspec.json.encode(value).decode()))
