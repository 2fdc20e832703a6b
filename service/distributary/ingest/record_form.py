"""The form of a record's value, recognized from its fields: Debezium's envelope, a row, or something else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distributary.consume.sample import SampledRecord
from distributary.decode.cloud_event import envelope_of
from distributary.decode.document import change_of_document, key_of_document
from distributary.decode.envelope import ENVELOPE_FIELDS, is_envelope
from distributary.decode.front import without_payload_object, without_schema_id
from distributary.decode.position import CONNECTORS
from distributary.decode.source_order import BUILT_IN
from distributary.decode.unwrapped import Unwrapped
from distributary.errors import TableHalt

# The fields that records of other forms have, none of which is a column. Canal's have those of Maxwell's, too.
_OTHER_FORMS = {
    "CloudEvents": frozenset(("specversion", "id", "source", "type")),
    "Canal": frozenset(("database", "table", "type", "isDdl", "data")),
    "Maxwell": frozenset(("database", "table", "type", "ts", "data")),
    "Oracle GoldenGate": frozenset(("table", "op_type", "op_ts", "current_ts", "pos")),
    "AWS DMS": frozenset(("data", "metadata", "metadata.record-type", "metadata.operation")),
}
_CLOUD_EVENT_ATTRIBUTES = "iodebezium"


def parse_payload(data: bytes | None) -> tuple[Any, dict[str, Any] | None]:
    """The JSON payload, and the Connect schema if there is one beside it; None if the value is no JSON."""
    if data is None:
        return None, None
    try:
        value = json.loads(without_schema_id(data))
    except (ValueError, RecursionError):
        return None, None
    if isinstance(value, dict) and set(value) == {"schema", "payload"}:
        schema = value["schema"]
        if schema is None or (isinstance(schema, dict) and "type" in schema):
            return value["payload"], schema
    return value, None


def without_payload_objects(records: Sequence[SampledRecord], added: Unwrapped) -> list[SampledRecord] | None:
    """The records with their keys and values taken out of `{"payload": …}`; None if most records have another form. A
    row's column may be called `payload`, too: so only envelopes, and rows that ExtractNewRecordState made, count."""
    values = [value for record in records if isinstance(value := parse_payload(record.value)[0], dict)]
    if values:
        alone = [value for value in values if _holds_change(value, added)]
    else:
        values = [key for record in records if (key := parse_payload(record.key)[0]) is not None]
        alone = [key for key in values if _is_payload_alone(key)]
    if 2 * len(alone) <= len(values):
        return None
    return [payload_of(record) for record in records]


def payload_of(record: SampledRecord) -> SampledRecord:
    """The record with its key and its value taken out of `{"payload": …}`."""
    key, value = (data and without_payload_object(without_schema_id(data)) for data in (record.key, record.value))
    return replace(record, key=key, value=value)


def envelopes_of_cloud_events(records: Sequence[SampledRecord]) -> list[SampledRecord] | None:
    """The records with the envelopes that Debezium's CloudEvents hold in place of their values; None if most records
    have another form."""
    known = [record for record in records if isinstance(parse_payload(record.value)[0], dict)]
    inner = [envelope_of_event(record) for record in records]
    changed_count = sum(one.value is not record.value for one, record in zip(inner, records, strict=True))
    return inner if 2 * changed_count > len(known) else None


def envelope_of_event(record: SampledRecord) -> SampledRecord:
    """The record with the envelope that a CloudEvent holds in place of its value."""
    value = envelope_of(record.value)
    return record if value is record.value else replace(record, value=value)


def row_of_document(record: SampledRecord) -> SampledRecord:
    """The record with rows in place of MongoDB's documents."""
    value = change_of_document(record.value, record.key)
    return replace(record, key=key_of_document(record.key), value=value)


def _holds_change(value: Mapping[str, Any], added: Unwrapped) -> bool:
    return _is_payload_alone(value) and (is_envelope(value["payload"]) or bool(added.present(value["payload"])))


def _is_payload_alone(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"payload"} and isinstance(value["payload"], dict)


def refuse_other_forms(rows: Sequence[Mapping[str, Any]], topic: str, key: Sequence[str], added: Unwrapped) -> None:
    """Raises TableHalt if the first records are of a form whose fields are no columns."""
    forms = {_other_form(value, key, added) for value in rows}
    if not rows or len(forms) != 1 or (form := forms.pop()) is None:
        return
    if form == "payload":
        raise TableHalt(
            "payload-without-schema",
            f"the records of {topic} are objects with the one field `payload`, and what it holds is no change event",
            'have the writer send the payload itself, or {"schema": …, "payload": …} (JsonConverter\'s schemas.enable)',
        )
    raise TableHalt(
        "other-form",
        f"the records of {topic} have the form of {form}: their fields are attributes of the event, and no columns",
        "have the connector write Debezium's own events (JsonConverter or AvroConverter; CloudEvents in JSON whose data"
        " has the rows before and after the change), or leave the topic out of `tables`",
    )


def _other_form(value: Mapping[str, Any], key: Sequence[str], added: Unwrapped) -> str | None:
    if _is_payload_alone(value):
        return "payload"
    if added.present(value):
        return None  # ExtractNewRecordState made it
    inner = {f"{name}.{field}" for name, part in value.items() if isinstance(part, dict) for field in part}
    is_cloud_event = any(name.startswith(_CLOUD_EVENT_ATTRIBUTES) for name in value)
    for form, fields in _OTHER_FORMS.items():
        # A table may have columns of such names: then the row has its key, too, or no attributes of Debezium's.
        if fields <= {*value, *inner} and (is_cloud_event if form == "CloudEvents" else not _holds_key(value, key)):
            return form
    return None


def refuse_broken_envelopes(rows: Sequence[Mapping[str, Any]], topic: str, key: Sequence[str]) -> None:
    """Raises TableHalt if all records have an envelope's parts, but no source block: they are no rows."""
    if rows and all(_is_broken_envelope(value, key) for value in rows):
        raise TableHalt(
            "not-an-envelope",
            f"the records of {topic} are neither Debezium envelopes nor rows as ExtractNewRecordState leaves them:"
            " they have parts of an envelope, but no `source` that names a connector",
            "check the transforms between the connector and the topic; an envelope needs `op` and `source`",
        )


def _is_broken_envelope(value: Mapping[str, Any], key: Sequence[str]) -> bool:
    """Columns may be called `op`, `before` and `after`: a row also has its key, an envelope does not."""
    if _holds_key(value, key) or not isinstance(value.get("source"), dict | None):
        return False
    has_row = any(isinstance(value.get(name), dict) for name in ("before", "after"))
    return has_row or ("op" in value and set(value) <= ENVELOPE_FIELDS)


def _holds_key(row: Mapping[str, Any], key: Sequence[str]) -> bool:
    """Whether a record's value is a row, because it has the columns of the record's key. Names that an envelope has,
    too, do not count."""
    return set(key) <= set(row) and not set(key) <= ENVELOPE_FIELDS


def connector_not_built(topic: str, connector: str) -> TableHalt:
    """The halt of a table whose changes can't be ordered."""
    return TableHalt(
        "connector-not-built",
        f"the records of {topic} come from the connector {connector!r}, whose order of changes this version does not"
        " know",
        "name the fields of its source block that order changes under source.order, or leave the topic out of `tables`;"
        f" this version knows {', '.join((*CONNECTORS, *BUILT_IN))}",
    )


def documents_not_asked_for(topic: str) -> TableHalt:
    """The halt of a topic of MongoDB's, whose documents are no rows, if the config does not allow documents."""
    return TableHalt(
        "documents-not-rows",
        f"the records of {topic} come from the connector 'mongodb': they have documents and no columns",
        "set source.connector: mongodb for tables of `_id` and `document`, have ExtractNewDocumentState make rows of"
        " the documents, or leave the topic out of `tables`",
    )


def source_connector(envelopes: Iterable[Mapping[str, Any]]) -> str | None:
    """The connector that most of the envelopes name."""
    named = Counter(name for value in envelopes if isinstance(name := value["source"].get("connector"), str))
    return max(named, key=named.__getitem__, default=None)
