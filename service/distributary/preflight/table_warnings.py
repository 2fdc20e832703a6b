"""Warnings about one table: source settings that lose data, seen in its records or in the config."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from distributary.config.source import Source
from distributary.decode.row_shape import row_of_schema
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import setting
from distributary.evolve.unknown_columns import FIX, unknown_columns
from distributary.preflight.inferred_columns import ParsedRecord
from distributary.preflight.lossy_settings import lossy_settings
from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.table_context import TableContext
from distributary.types.connect_schema import ConnectType, NotAConnectSchema

_SOURCE_TYPE = "__debezium.source.column.type"
_EXACT_TYPES = ("NUMERIC", "DECIMAL", "NUMBER", "MONEY", "SMALLMONEY", "DECFLOAT")
# Types whose values PostgreSQL may store outside of the row (TOAST) and then leave out of a change.
_STORED_APART = ("string", "binary", "variant", "array", "map")
# The values that Debezium sends for columns that can't be NULL and are not in the log: 0, also as False, and an empty
# text.
_MADE_UP = (0, "")
# Arrays for which Debezium then sends NULL instead of a placeholder.
_SENT_AS_NULL = tuple(f"array<{kind}" for kind in ("smallint", "float", "double", "decimal", "boolean", "timestamp"))


def table_warnings(context: TableContext) -> list[PlanWarning]:
    """All warnings about one table, sorted by code."""
    warnings = [warning for check in _CHECKS if (warning := check(context)) is not None]
    return sorted([*warnings, *lossy_settings(context)], key=lambda warning: warning.code.value)


def _order_by_offset(context: TableContext) -> PlanWarning | None:
    if context.topic_format is None or context.topic_format.order != BY_OFFSET:
        return None
    return PlanWarning(
        Code.ORDER_BY_OFFSET,
        "the rows have no envelope and no position in the source's log: they are ordered by offset, and records that"
        " are sent again look like new changes",
        "name the source's position under add.fields of ExtractNewRecordState, or leave the envelope on",
    )


def _deletes_dropped(context: TableContext) -> PlanWarning | None:
    handling = context.connector_setting("delete.tombstone.handling.mode")
    older = (
        context.connector_setting("delete.handling.mode") in ("drop", "none")
        and context.connector_setting("drop.tombstones") == "true"
    )
    if not context.is_unwrapped or not (handling == "drop" or older):
        return None
    return PlanWarning(
        Code.DELETES_DROPPED,
        "ExtractNewRecordState drops deletes and tombstones: rows that were deleted at the source stay",
        "set delete.tombstone.handling.mode: rewrite (delete.handling.mode: rewrite in older versions)",
    )


def _typed_by_value(context: TableContext) -> PlanWarning | None:
    if not context.inferred.by_value:
        return None
    columns = ", ".join(f"{name}: {kind}" for name, kind in context.inferred.by_value.items())
    return PlanWarning(
        Code.TYPED_BY_VALUE,
        "the records carry no schema: types are inferred from values, which do not show dates, times and decimals",
        "name the source's types under `columns` before the table is made, or have the connector send schemas"
        " (value.converter.schemas.enable)",
        f"in the sampled records: {columns}",
    )


def _no_type_yet(context: TableContext) -> PlanWarning | None:
    if not context.inferred.untyped:
        return None
    return PlanWarning(
        Code.NO_TYPE_YET,
        "no value shows the type of some columns so far; each is added to the table with its first value",
        "name their types under `columns`",
        ", ".join(context.inferred.untyped),
    )


def _decimal_double(context: TableContext) -> PlanWarning | None:
    if context.connector_setting("decimal.handling.mode") == "double":
        lossy = [name for name, kind in context.columns.items() if kind == "double"]
    else:
        lossy = sorted({name for parsed in context.records for name in _decimals_as_double(parsed, context)})
    if not lossy:
        return None
    return PlanWarning(
        Code.DECIMAL_DOUBLE,
        "the connector sends decimals as double, which rounds them before they reach Kafka",
        "set decimal.handling.mode: precise in the connector, and take a new snapshot of the table",
        ", ".join(lossy),
    )


def _decimals_as_double(parsed: ParsedRecord, context: TableContext) -> Iterable[str]:
    """Columns that are decimals at the source (column.propagate.source.type) and are sent as double."""
    if parsed.schema is None:
        return ()
    try:
        text = json.dumps(parsed.schema).encode()
        row = row_of_schema(text, context.source.limits.bounds(), unwrapped=context.is_unwrapped)
    except NotAConnectSchema:
        return ()
    return (part.name for part in row.fields if part.type.kind == "double" and _is_exact(part.type))


def _is_exact(column: ConnectType) -> bool:
    return column.parameters.get(_SOURCE_TYPE, "").upper().startswith(_EXACT_TYPES)


def _replica_identity(context: TableContext) -> PlanWarning | None:
    if context.connector != "postgresql":
        return None
    has_other_key = _deletes_have_made_up_key(context)
    if not has_other_key and not _sends_keys_only(context):
        return None
    large_columns = [
        n for n, kind in context.columns.items() if kind.startswith(_STORED_APART) and n not in context.key
    ]
    if has_other_key:
        lost = (
            "deletes: the index of the replica identity lacks the key, so they come with another key and remove no row"
        )
    elif context.key_is_from_row:
        lost = "an update that changes the columns under `key` leaves the old row; deletes may lack these columns"
    elif context.settings.mode == "append":
        lost = "deletes have the key only; large values that a change did not touch are NULL"
    elif large_columns:
        nulled = [name for name in large_columns if context.columns[name].startswith(_SENT_AS_NULL)]
        lost = f"large values of {', '.join(large_columns)}"
        if nulled:
            lost += f"; those of {', '.join(nulled)} become NULL: Debezium sends no placeholder for them"
    else:
        return None
    return PlanWarning(
        Code.REPLICA_IDENTITY,
        "the source table has no REPLICA IDENTITY FULL: changes come without the row before them, and without large"
        " values that they did not touch. The table keeps its own value then, which is NULL if the row's earlier"
        " changes are not in the topic",
        "ALTER TABLE … REPLICA IDENTITY FULL at the source, if that matters",
        lost,
    )


def _sends_keys_only(context: TableContext) -> bool:
    if any(parsed.value is not None and parsed.value.get("before") is None for parsed in context.with_op("u")):
        return True
    for parsed in context.with_op("d"):
        before = (parsed.value or {}).get("before")
        row = {name: value for name, value in before.items() if value is not None} if isinstance(before, dict) else {}
        if isinstance(before, dict) and set(row) <= set(context.sent_key) < set(before):
            return True
    return False


def _deletes_have_made_up_key(context: TableContext) -> bool:
    """Whether deletes have the columns of an index and not the key (REPLICA IDENTITY USING INDEX): Debezium makes up
    values of key columns then."""
    if any(parsed.value is not None and parsed.value.get("before") is not None for parsed in context.with_op("u")):
        return False
    for parsed in context.with_op("d"):
        before = (parsed.value or {}).get("before")
        if not isinstance(before, dict) or not context.sent_key:
            continue
        is_made_up = all(before.get(name) in _MADE_UP for name in context.sent_key)
        others = [value for name, value in before.items() if name not in context.sent_key]
        if is_made_up and None in others and any(value not in (None, *_MADE_UP) for value in others):
            return True
    return False


def _key_from_row(context: TableContext) -> PlanWarning | None:
    if not (context.key_is_from_row and context.is_unwrapped):
        return None
    return PlanWarning(
        Code.KEY_FROM_ROW,
        "the records have no key and no row before the change: an update that changes the columns under `key` leaves"
        " the old row",
        "leave the envelope on, or name key columns in the connector (message.key.columns)",
    )


def _truncates_in_partitions(context: TableContext) -> PlanWarning | None:
    partitions = len(context.sample.topic.partitions)
    if partitions < 2 or context.is_unwrapped or context.settings.truncate == "ignore":
        return None
    skipped = skipped_operations(context.source)
    may_come = skipped is not None and "t" not in skipped and context.connector in SENDS_TRUNCATES
    if not (may_come or any(context.with_op("t"))):
        return None
    return PlanWarning(
        Code.TRUNCATES_IN_PARTITIONS,
        "a truncate comes in one of the topic's partitions: until that partition is read as far as the others, the"
        " table still has truncated rows beside newer ones",
        "give the topic one partition if readers must never see that",
        f"{partitions} partitions",
    )


def _orphaned_rows(context: TableContext) -> PlanWarning | None:
    snapshot = context.progress.snapshot if context.progress else None
    if snapshot is None or not snapshot.orphaned_rows:
        return None
    return PlanWarning(
        Code.ORPHANED_ROWS,
        "the table has rows that the last complete snapshot does not have",
        "read docs/orphaned-rows.md, then: distributary resume -c FILE TABLE --reconcile",
        f"{snapshot.orphaned_rows} row{'' if snapshot.orphaned_rows == 1 else 's'}",
    )


def _unknown_column(context: TableContext) -> PlanWarning | None:
    known = context.known_columns
    unknown = unknown_columns(context.settings, known) if known else []
    if not unknown:
        return None
    return PlanWarning(
        Code.UNKNOWN_COLUMN,
        "the config names columns that neither the table nor the records have: a misspelt `mask` or `exclude` publishes"
        " the column",
        FIX,
        "; ".join(map(str, unknown)),
    )


def skipped_operations(source: Source) -> frozenset[str] | None:
    """The operations that the connector leaves out by `source.connector_properties`; None if they are not set."""
    value = setting(source.connector_properties, "skipped.operations")
    return None if value is None else frozenset(part.strip().lower() for part in value.split(","))


SENDS_TRUNCATES = ("postgresql", "mysql", "mariadb", "oracle")
"""Connectors that can send truncates. The logs of SQL Server and Db2 have none that a connector could read."""

_CHECKS: tuple[Callable[[TableContext], PlanWarning | None], ...] = (
    _order_by_offset, _deletes_dropped, _typed_by_value, _no_type_yet, _decimal_double, _replica_identity,
    _key_from_row, _truncates_in_partitions, _orphaned_rows, _unknown_column,
)  # fmt: skip
