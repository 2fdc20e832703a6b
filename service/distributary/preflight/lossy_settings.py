"""Warnings about connector settings that truncate, wrap or reorder values before Kafka, where no record shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

from distributary.decode.row_shape import row_of_schema
from distributary.decode.source_block import BY_OFFSET
from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.table_context import TableContext
from distributary.rules.log_traits import BINLOG_CONNECTORS
from distributary.types.connect_schema import ConnectField, ConnectType, NotAConnectSchema

_SOURCE_TYPE = "__debezium.source.column.type"
_IN_MILLISECONDS = ("org.apache.kafka.connect.data.Timestamp", "org.apache.kafka.connect.data.Time")
_JSON = "io.debezium.data.Json"
_IN_NANOSECONDS = "io.debezium.time.NanoTimestamp"
_FIRST_THAT_DOES_NOT_WRAP = (3, 7)
_IN_FLIGHT = "producer.override.max.in.flight.requests.per.connection"
_REPLACES_NULL = "value.converter.replace.null.with.default"
_PARTIAL_JSON = "binlog_row_value_options"
_IDEMPOTENT = "producer.override.enable.idempotence"


def lossy_settings(context: TableContext) -> Iterator[PlanWarning]:
    """The warnings about one table."""
    for check in _CHECKS:
        if (warning := check(context)) is not None:
            yield warning


def _times_cut(context: TableContext) -> PlanWarning | None:
    columns = _columns(context, lambda column: column.name in _IN_MILLISECONDS)
    if not columns and context.connector_setting("time.precision.mode") != "connect":
        return None
    return PlanWarning(
        Code.TIMES_CUT,
        "the connector sends times in milliseconds (time.precision.mode: connect) and cuts smaller fractions",
        "set time.precision.mode: adaptive in the connector, and take a new snapshot of the table",
        ", ".join(columns),
    )


def _nanoseconds_wrap(context: TableContext) -> PlanWarning | None:
    columns = _columns(context, lambda column: column.name == _IN_NANOSECONDS)
    versions = [_version((parsed.value or {}).get("source")) for parsed in context.records]
    known = [version for version in versions if version is not None]
    if not columns or (known and min(known) >= _FIRST_THAT_DOES_NOT_WRAP):
        return None
    return PlanWarning(
        Code.NANOSECONDS_WRAP,
        "the connector sends these times in nanoseconds; before Debezium 3.7 a time before 1677-09-22 or after"
        " 2262-04-11 silently becomes another one (9999-12-31 becomes a time of 1816)",
        "upgrade the connector to 3.7, or set time.precision.mode: isostring, and take a new snapshot of the table",
        ", ".join(columns),
    )


def _version(source: object) -> tuple[int, ...] | None:
    """The first two numbers of the connector's version."""
    text = source.get("version") if isinstance(source, dict) else None
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else None


def _values_cut(context: TableContext) -> PlanWarning | None:
    properties = context.source.connector_properties
    cutting = [name for name in properties if name.startswith("column.truncate.to.")]
    for name, value in properties.items():
        transform = name.removesuffix(".type")
        keeps = properties.get(f"{transform}.strategy", "").strip().lower() == "claim_check"
        if name.endswith(".type") and value.strip().endswith("EnforceRecordSize") and not keeps:
            cutting.append(transform)
    if not cutting:
        return None
    return PlanWarning(
        Code.VALUES_CUT,
        "the connector truncates long texts and bytes: the table gets the truncated values",
        "remove the setting from the connector, or the columns from the setting, and take a new snapshot of the table",
        ", ".join(cutting),
    )


def _unsigned_wraps(context: TableContext) -> PlanWarning | None:
    if (
        context.connector not in BINLOG_CONNECTORS
        or context.connector_setting("bigint.unsigned.handling.mode") == "precise"
    ):
        return None
    columns = _columns(context, lambda column: column.kind == "int64" and _is_unsigned_bigint(column))
    if not columns:
        return None
    return PlanWarning(
        Code.UNSIGNED_WRAPS,
        "the connector sends BIGINT UNSIGNED as a signed number: 9223372036854775808 and above become negative",
        "set bigint.unsigned.handling.mode: precise in the connector, and fill the table again (resume --rebuild)",
        ", ".join(columns),
    )


def _is_unsigned_bigint(column: ConnectType) -> bool:
    words = column.parameters.get(_SOURCE_TYPE, "").upper().split()
    return words[:1] == ["BIGINT"] and "UNSIGNED" in words


def _key_not_unique(context: TableContext) -> PlanWarning | None:
    table = context.sample.topic.name.removeprefix(f"{context.source.topic_prefix}.")
    for entry in context.source.connector_properties.get("message.key.columns", "").split(";"):
        pattern, _, columns = entry.strip().rpartition(":")
        if columns and _matches(pattern, table):
            return PlanWarning(
                Code.KEY_NOT_UNIQUE,
                "message.key.columns names the key of this table: if its columns are not unique at the source or may"
                " be NULL, rows with the same key overwrite each other",
                "name columns that are unique and NOT NULL, or leave the primary key as it is",
                columns.strip(),
            )
    return None


def _matches(pattern: str, table: str) -> bool:
    try:
        return re.fullmatch(pattern, table, re.IGNORECASE) is not None
    except re.error:
        return False


def _producer_reorders(context: TableContext) -> PlanWarning | None:
    in_flight = context.connector_setting(_IN_FLIGHT) or "1"
    is_ordered = in_flight == "1" or context.connector_setting(_IDEMPOTENT) == "true"
    if is_ordered or context.topic_format is None or context.topic_format.order != BY_OFFSET:
        return None
    return PlanWarning(
        Code.PRODUCER_REORDERS,
        "the rows are ordered by offset, and the connector's producer may send a record again after later ones: an"
        " older change may overwrite a newer one",
        f"set {_IDEMPOTENT}: true, or {_IN_FLIGHT}: 1, in the connector",
        f"{_IN_FLIGHT}: {in_flight}",
    )


def _legacy_source_struct(context: TableContext) -> PlanWarning | None:
    if context.connector_setting("source.struct.version") != "v1":
        return None
    return PlanWarning(
        Code.LEGACY_SOURCE_STRUCT,
        "the source block of version 1 lacks the fields that order changes and the names of connector and table",
        "remove source.struct.version: v1 from the connector; Debezium 2.0 and later have no such setting",
    )


def _nulls_replaced(context: TableContext) -> PlanWarning | None:
    if context.connector_setting(_REPLACES_NULL) == "false":
        return None
    columns = _fields(context, lambda field: field.optional and field.default is not None)
    if not columns:
        return None
    return PlanWarning(
        Code.NULLS_REPLACED,
        f"the converter writes a column's default instead of NULL, unless {_REPLACES_NULL} is false",
        f"set {_REPLACES_NULL}: false in the connector, name it under source.connector_properties, and take a new"
        " snapshot of the table",
        ", ".join(columns),
    )


def _partial_json(context: TableContext) -> PlanWarning | None:
    if context.connector != "mysql" or context.connector_setting(_PARTIAL_JSON) == "":
        return None
    if not (columns := _columns(context, lambda column: column.name == _JSON)):
        return None
    return PlanWarning(
        Code.PARTIAL_JSON,
        f"with {_PARTIAL_JSON}=PARTIAL_JSON the connector skips updates of JSON values, and no record shows it",
        f"leave {_PARTIAL_JSON} empty (SELECT @@GLOBAL.{_PARTIAL_JSON}), name it under source.connector_properties, and"
        " take a new snapshot of the table if it was set",
        ", ".join(columns),
    )


def _generated_columns(context: TableContext) -> PlanWarning | None:
    """PostgreSQL's log lacks generated columns, and its snapshots have them."""
    if context.connector != "postgresql":
        return None
    snapshot, changed = (_columns_of_rows(context, ops) for ops in (("r",), ("c", "u")))
    lacking = sorted(snapshot - changed - {*context.settings.exclude})
    if not changed or not lacking:
        return None
    return PlanWarning(
        Code.GENERATED_COLUMNS,
        "changes lack columns that the rows of the snapshot have: PostgreSQL does not send the values of generated"
        " columns, and they become NULL with the next change of a row",
        "with PostgreSQL 18 or later: ALTER PUBLICATION … SET (publish_generated_columns = stored); else `exclude` the"
        " columns. Nothing is to be done if they were dropped at the source",
        ", ".join(lacking),
    )


def _columns_of_rows(context: TableContext, ops: Sequence[str]) -> set[str]:
    """The columns of the sampled rows after changes of these kinds."""
    rows = ((parsed.value or {}).get("after") for op in ops for parsed in context.with_op(op))
    return {name for row in rows if isinstance(row, dict) for name in row}


def _defaults_not_filled(context: TableContext) -> PlanWarning | None:
    settings = context.settings
    is_asked = settings.column_defaults == "fill" or settings.mode == "append" or settings.schema_changes != "evolve"
    if is_asked or not context.table_columns:
        return None
    names = {name for columns in context.inferred.observed for name in columns.defaults}
    if not (new := sorted(names - context.table_columns.keys())):
        return None
    return PlanWarning(
        Code.DEFAULTS_NOT_FILLED,
        "the source added columns with a default: its older rows may have the default, those of the table get NULL",
        "set column_defaults: fill before the table gets the columns, or take a snapshot of it afterwards",
        ", ".join(new),
    )


def _columns(context: TableContext, wanted: Callable[[ConnectType], bool]) -> list[str]:
    """The columns whose type a schema of the records describes so, by the source's names."""
    return _fields(context, lambda field: wanted(field.type))


def _fields(context: TableContext, wanted: Callable[[ConnectField], bool]) -> list[str]:
    """The columns that a schema of the records describes so, by the source's names."""
    names: dict[str, None] = {}
    for schema in {json.dumps(parsed.schema) for parsed in context.records if parsed.schema is not None}:
        try:
            row = row_of_schema(schema.encode(), context.source.limits.bounds(), unwrapped=context.is_unwrapped)
        except NotAConnectSchema:
            continue
        names.update((part.name, None) for part in row.fields if wanted(part))
    return [name for name in sorted(names) if name not in context.settings.exclude]


_CHECKS: tuple[Callable[[TableContext], PlanWarning | None], ...] = (
    *(_times_cut, _nanoseconds_wrap, _values_cut, _unsigned_wraps, _key_not_unique, _producer_reorders),
    *(_legacy_source_struct, _nulls_replaced, _defaults_not_filled, _partial_json, _generated_columns),
)
