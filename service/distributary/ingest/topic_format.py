"""Detects a topic's format from its first records: the connector, the key and the form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from distributary.consume.sample import SampledRecord
from distributary.decode.document import MONGODB
from distributary.decode.envelope import is_envelope
from distributary.decode.options import BareKey
from distributary.decode.position import CONNECTORS
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.source_order import BUILT_IN, BY_FIELDS
from distributary.decode.unwrapped import Unwrapped
from distributary.errors import TableHalt
from distributary.ingest.record_form import (
    connector_not_built,
    documents_not_asked_for,
    envelopes_of_cloud_events,
    parse_payload,
    refuse_broken_envelopes,
    refuse_other_forms,
    row_of_document,
    source_connector,
    without_payload_objects,
)

_CONNECTOR_HEADER = "__debezium.context.connectorName"
# Added columns that identify the connector of a row without envelope.
_COLUMNS_OF_CONNECTORS = (
    ("event_serial_no", "sqlserver"),
    ("commit_scn", "oracle"),
    ("scn", "oracle"),
    ("sequence", "postgresql"),
    ("file", "mysql"),
    ("lsn", "postgresql"),
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DB2_LSN = len("00000027:00000ac0:0000000000000002")


@dataclass(frozen=True)
class TopicFormat:
    """The format of a topic, from its first records. `key` are the names of the record key's fields, empty without key.

    `order` is the connector by whose positions the changes are ordered, or BY_OFFSET. `unwrapped`: the records are rows
    without an envelope. `only_truncates`: all records are truncates, which have no key, so the table's key is not known
    yet; `only_tombstones`: no record has a value, or there are no records, so the form is not known.
    `in_payload_object`: keys and values are inside of objects with the one field `payload`. `cloud_events`: values are
    Debezium's CloudEvents. `documents`: values are MongoDB's. `bare_key`: keys are bare values of a column (see
    bare_keys.py)."""

    order: str
    key: tuple[str, ...]
    has_schema: bool
    only_truncates: bool = False
    unwrapped: Unwrapped | None = None
    only_tombstones: bool = False
    in_payload_object: bool = False
    cloud_events: bool = False
    documents: bool = False
    bare_key: BareKey | None = None

    @property
    def is_conclusive(self) -> bool:
        """Whether the first records show the format completely: later records can't change it."""
        return not (self.only_truncates or self.only_tombstones)


@dataclass(frozen=True)
class KnownFormat:
    """The format of the records that the table has applied: the order of their changes, and whether they had an
    envelope."""

    order: str
    unwrapped: bool


def detect_format(
    records: Sequence[SampledRecord],
    topic: str,
    configured: str | None,
    added: Unwrapped,
    known: KnownFormat | None = None,
    has_order: bool = False,
) -> TopicFormat:
    """Detects the format from the first records of a batch.

    `configured` is the connector by the config, `added` the fields that ExtractNewRecordState may have added.
    `has_order`: the config names the fields that order changes (see source_order.py), so that any connector's can be
    ordered. Raises TableHalt if they are no change events that can be applied.
    """
    if configured == MONGODB:
        rows = [row_of_document(record) for record in records]
        topic_format = _detect(rows, topic, configured, added, known, has_order)
        if topic_format.unwrapped is None:  # ExtractNewDocumentState makes rows with columns
            return replace(topic_format, documents=True)
    inner, events = without_payload_objects(records, added), envelopes_of_cloud_events(records)
    topic_format = _detect(inner or events or records, topic, configured, added, known, has_order)
    return replace(topic_format, in_payload_object=inner is not None, cloud_events=events is not None)


def _detect(
    records: Sequence[SampledRecord],
    topic: str,
    configured: str | None,
    added: Unwrapped,
    known: KnownFormat | None,
    has_order: bool,
) -> TopicFormat:
    keys = Counter[tuple[str, ...]]()
    envelopes: list[Mapping[str, Any]] = []
    rows: list[Mapping[str, Any]] = []
    has_schema = False
    for record in records:
        value, with_schema = _payload(record.value)
        keys.update(filter(None, [_key_fields(record.key)]))
        if not isinstance(value, dict):
            continue
        if is_envelope(value):
            envelopes.append(value)
        else:
            rows.append(value)
        has_schema = has_schema or with_schema
    # Of different keys and forms the fewer ones are faults, for the quarantine table.
    key = max(keys, key=keys.__getitem__, default=())
    if len(rows) > len(envelopes) or (not envelopes and known is not None and known.unwrapped):
        return _unwrapped(records, rows, topic, configured, added, known, TopicFormat("", key, has_schema))
    if envelopes and known is not None and known.order == BY_OFFSET:
        raise _form_changed(topic, "rows without an envelope, ordered by their offsets", "envelopes")
    named = source_connector(envelopes)
    is_known = (
        (has_order and _PLAIN_NAME.fullmatch(named or "")) or named is None or named in CONNECTORS or named in BUILT_IN
    )
    if named == MONGODB and configured != MONGODB and not has_order:
        raise documents_not_asked_for(topic)
    if not is_known and (known is None or configured is None):
        raise connector_not_built(topic, str(named))
    connector = configured or named or (known.order if known else BY_FIELDS if has_order and envelopes else None)
    if connector is None:
        raise TableHalt(
            "connector-unknown",
            f"the first records of {topic} do not name the connector that wrote them",
            f"set source.connector to one of {', '.join((*CONNECTORS, *BUILT_IN))}",
        )
    only_truncates = not key and bool(envelopes) and all(value["op"] == "t" for value in envelopes)
    nothing = not envelopes and all(_payload(record.value)[0] is None for record in records)
    return TopicFormat(connector, key, has_schema, only_truncates, only_tombstones=nothing)


def _unwrapped(
    records: Sequence[SampledRecord],
    rows: Sequence[Mapping[str, Any]],
    topic: str,
    configured: str | None,
    added: Unwrapped,
    known: KnownFormat | None,
    topic_format: TopicFormat,
) -> TopicFormat:
    """Rows without an envelope. Those of an envelope's parts without a source block are no rows, but broken."""
    if known is None:
        refuse_other_forms(rows, topic, topic_format.key, added)
    refuse_broken_envelopes(rows, topic, topic_format.key)
    names = {name for record in records for name, _ in record.headers}
    headers = {name: meaning for name, meaning in added.headers.items() if name in names and meaning}
    present = {meaning for row in rows for meaning in added.present(row).values()} | set(headers.values())
    connector = configured or _connector_of_rows(records, rows, added)
    if known is not None and known.unwrapped:
        order = known.order
    else:
        form = CONNECTORS.get(connector or "")
        ordered = form is not None and all(name in present for name in form.needed)
        order = connector if connector is not None and ordered else BY_OFFSET
        if known is not None and order != known.order:
            raise _form_changed(
                topic, "envelopes", "rows without one that don't say where in the source's log they stand"
            )
    if order != BY_OFFSET:
        connector = connector or order
    return replace(
        topic_format,
        order=order,
        unwrapped=Unwrapped(added.fields, headers, connector, bool({"op", "deleted"} & present)),
        only_tombstones=not rows,
    )


def _form_changed(topic: str, before: str, now: str) -> TableHalt:
    return TableHalt(
        "form-changed",
        f"the records of {topic} were {before}, and are now {now}: the newer of two changes can't be determined",
        "set the connector's transforms back, or delete the table's directory to have it filled again",
    )


def connector_of(records: Sequence[SampledRecord], added: Unwrapped) -> str | None:
    """The connector that the first records name. Unwrapped rows show it by the fields that were added to them."""
    records = without_payload_objects(records, added) or envelopes_of_cloud_events(records) or records
    values = [value for record in records if isinstance(value := _payload(record.value)[0], dict)]
    named = source_connector(value for value in values if is_envelope(value))
    return named or _connector_of_rows(records, [value for value in values if not is_envelope(value)], added)


def _connector_of_rows(
    records: Sequence[SampledRecord], rows: Sequence[Mapping[str, Any]], added: Unwrapped
) -> str | None:
    shown: dict[str, Any] = {}
    for row in rows:
        for name, meaning in added.present(row).items():
            if shown.get(meaning) is None:
                shown[meaning] = row[name]
    for record in records:
        for name, value in record.headers:
            if name == _CONNECTOR_HEADER and value:
                shown.setdefault("by_header", value.decode("utf-8", "replace").strip('"'))
            elif added.headers.get(name):
                shown.setdefault(added.headers[name], (value or b"").decode("utf-8", "replace").strip('"'))
    for named in (shown.get("connector"), shown.get("by_header")):
        if named in CONNECTORS:
            return str(named)
    if of_column := next((connector for meaning, connector in _COLUMNS_OF_CONNECTORS if meaning in shown), None):
        return of_column
    if "commit_lsn" in shown:
        widths = {len(str(shown[name])) for name in ("commit_lsn", "change_lsn") if shown.get(name)}
        return "db2" if _DB2_LSN in widths else "sqlserver"
    return None


def _payload(data: bytes | None) -> tuple[Any, bool]:
    value, schema = parse_payload(data)
    return value, schema is not None


def _key_fields(data: bytes | None) -> tuple[str, ...]:
    payload, _ = _payload(data)
    return tuple(payload) if isinstance(payload, dict) else ()
