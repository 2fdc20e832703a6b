"""Which tables can be written by location; all others are refused by name before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from distributary.delta.table_schema import TableSchema, UnknownType
from distributary.errors import TableHalt

_NEWEST_READER, _NEWEST_WRITER = 3, 7
# The features that a table may have. Row tracking, Iceberg's compatibility and future features are not here: a writer
# without support for them would break their guarantees silently.
_HONOURED = frozenset({
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
    "vacuumProtocolCheck", "appendOnly", "domainMetadata", "clustering", "allowColumnDefaults", "checkpointProtection",
    "variantType", "variantType-preview",
    # Delta's own transaction stamps the commit.
    "inCommitTimestamp", "inCommitTimestamp-preview",
    # The columns and properties show whether they are used: an old protocol version includes all of them.
    "invariants", "checkConstraints", "generatedColumns", "identityColumns", "changeDataFeed",
})  # fmt: skip
_OF_COLUMNS = {
    "delta.generationExpression": "is generated",
    "delta.identity.start": "is an identity column",
    "delta.invariants": "has an invariant",
    "__CHAR_VARCHAR_TYPE_STRING": "has a limited length (CHAR or VARCHAR)",
}
_KNOWN_OF_COLUMNS = ("delta.columnMapping.", "delta.typeChanges", "delta.identity.")
# Of other types Delta's writers do not agree on how the log has their values as text.
_PARTITION_TYPE = re.compile(r"string|byte|short|integer|long|boolean|date|timestamp|timestamp_ntz|decimal\(\d+,\d+\)")
_CONSTRAINT = "delta.constraints."
APPEND_ONLY = "delta.appendOnly"
VECTORS = "delta.enableDeletionVectors"


def require_writable(protocol: Mapping[str, Any], metadata: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raises TableHalt if a table has a feature that this writer does not support. All three are as in the log;
    `schema` is that of the metadata."""
    reasons = "; ".join(dict.fromkeys(_reasons(protocol, metadata, schema)))
    if reasons:
        raise TableHalt(
            "table-not-writable",
            f"the table can't be written without breaking its constraints or features: {reasons}",
            "remove that from the table (ALTER TABLE … DROP CONSTRAINT, DROP FEATURE, UNSET TBLPROPERTIES), or write"
            " into another table",
        )


def allows_vectors(metadata: Mapping[str, Any]) -> bool:
    """Whether deletion vectors may be written into the table."""
    return _is_on(metadata.get("configuration") or {}, VECTORS)


def refuses_vectors(metadata: Mapping[str, Any]) -> bool:
    """Whether a property of the table forbids deletion vectors, for the sake of its readers."""
    return str((metadata.get("configuration") or {}).get(VECTORS, "")).lower() == "false"


def has_change_feed(metadata: Mapping[str, Any]) -> bool:
    """Whether commits must also write old and new rows (change data feed)."""
    return _is_on(metadata.get("configuration") or {}, "delta.enableChangeDataFeed")


def check_constraints(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The table's CHECK constraints: name to Spark's SQL, which must be true for each row."""
    properties = metadata.get("configuration") or {}
    constraints = {name: text for name, text in properties.items() if name.startswith(_CONSTRAINT)}
    return {name.removeprefix(_CONSTRAINT): text for name, text in sorted(constraints.items())}


def is_append_only(metadata: Mapping[str, Any]) -> bool:
    """Whether rows of the table must not be removed."""
    return _is_on(metadata.get("configuration") or {}, APPEND_ONLY)


def _is_on(properties: Mapping[str, str], name: str) -> bool:
    return str(properties.get(name, "")).lower() == "true"


def _reasons(protocol: Mapping[str, Any], metadata: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    reader, writer = int(protocol["minReaderVersion"]), int(protocol["minWriterVersion"])
    if reader > _NEWEST_READER or writer > _NEWEST_WRITER:
        yield f"its protocol has the versions {reader} and {writer}"
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    yield from (f"the table feature {name}" for name in sorted(features - _HONOURED))
    properties = metadata.get("configuration") or {}
    if properties.get("delta.columnMapping.mode", "none") not in ("none", "name"):
        yield "column mapping by id"
    partition = metadata.get("partitionColumns") or ()
    for field in schema["fields"]:
        if field["name"] in partition and not _PARTITION_TYPE.fullmatch(str(field["type"])):
            yield f"partitions by the column {field['name']} of the type {field['type']}"
        yield from _of_field(field, field["name"])
        if _not_null_within(field["type"]):
            yield f"the column {field['name']} has fields that must not be NULL"
    try:
        TableSchema.of(schema)
    except UnknownType as error:
        yield str(error)


def _of_field(field: Mapping[str, Any], name: str) -> Iterator[str]:
    for key in field.get("metadata") or {}:
        if key in _OF_COLUMNS:
            yield f"the column {name} {_OF_COLUMNS[key]}"
        elif key.startswith("delta.") and not key.startswith(_KNOWN_OF_COLUMNS):
            yield f"the column {name} has {key}"
    for inner in _fields_within(field["type"]):
        yield from _of_field(inner, f"{name}.{inner['name']}")


def _fields_within(kind: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(kind, str):
        return
    yield from kind.get("fields", ())
    for key in ("elementType", "keyType", "valueType"):
        if key in kind:
            yield from _fields_within(kind[key])


def _not_null_within(kind: Any) -> bool:
    if isinstance(kind, str):
        return False
    if kind["type"] == "struct":
        return any(not field.get("nullable", True) or _not_null_within(field["type"]) for field in kind["fields"])
    must = kind.get("containsNull") is False or kind.get("valueContainsNull") is False
    return must or any(_not_null_within(kind[key]) for key in ("elementType", "keyType", "valueType") if key in kind)
