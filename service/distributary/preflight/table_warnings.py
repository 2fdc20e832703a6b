"""Source settings that lose data, told from a table's records, its topic's settings and what the config says of the
connector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from distributary.config.source import Source
from distributary.decode.bounds import Bounds
from distributary.decode.connect_schema import ConnectType, NotAConnectSchema
from distributary.decode.row_shape import row_of_schema
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import setting
from distributary.evolve.unknown_columns import FIX, unknown_columns
from distributary.preflight.inferred_columns import Cut
from distributary.preflight.lossy_settings import lossy_settings
from distributary.preflight.plan_warning import Code, Concern
from distributary.preflight.table_context import Scene

_SOURCE_TYPE = "__debezium.source.column.type"
_EXACT_TYPES = ("NUMERIC", "DECIMAL", "NUMBER", "MONEY", "SMALLMONEY", "DECFLOAT")
# Types whose values PostgreSQL may store apart from the row (TOAST), and then leaves out of a change.
_STORED_APART = ("string", "binary", "variant", "array", "map")
# Arrays that Debezium sends as NULL then, and not as something that stands for what was left out.
_SENT_AS_NULL = tuple(f"array<{kind}" for kind in ("smallint", "float", "double", "decimal", "boolean", "timestamp"))


def concerns(scene: Scene) -> list[Concern]:
    """All that is to be said of one table, by code."""
    found = [concern for look in _LOOKS if (concern := look(scene)) is not None]
    return sorted([*found, *lossy_settings(scene)], key=lambda concern: concern.code.value)


def _order_by_offset(scene: Scene) -> Concern | None:
    if scene.look is None or scene.look.order != BY_OFFSET:
        return None
    return Concern(
        Code.ORDER_BY_OFFSET,
        "the rows have no envelope and do not say where in the source's log they stand: their offsets order them, and"
        " records that are sent again can't be told from new changes until their end",
        "name the source's position under add.fields of ExtractNewRecordState, or leave the envelope on",
    )


def _deletes_dropped(scene: Scene) -> Concern | None:
    handling = scene.said("delete.tombstone.handling.mode")
    older = scene.said("delete.handling.mode") in ("drop", "none") and scene.said("drop.tombstones") == "true"
    if not scene.is_unwrapped or not (handling == "drop" or older):
        return None
    return Concern(
        Code.DELETES_DROPPED,
        "ExtractNewRecordState drops deletes and tombstones: rows that were deleted at the source stay",
        "set delete.tombstone.handling.mode: rewrite (delete.handling.mode: rewrite in older versions)",
    )


def _typed_by_value(scene: Scene) -> Concern | None:
    if not scene.shown.by_value:
        return None
    columns = ", ".join(f"{name}: {kind}" for name, kind in scene.shown.by_value.items())
    return Concern(
        Code.TYPED_BY_VALUE,
        "the records carry no schema: types are told by values alone, which show no dates, times and decimals",
        "name the source's types under `columns` before the table is made, or have the connector send schemas"
        " (value.converter.schemas.enable)",
        f"by the records looked at: {columns}",
    )


def _no_type_yet(scene: Scene) -> Concern | None:
    if not scene.shown.untyped:
        return None
    return Concern(
        Code.NO_TYPE_YET,
        "no value shows the type of some columns so far; each comes to the table with its first value",
        "name their types under `columns`",
        ", ".join(scene.shown.untyped),
    )


def _decimal_double(scene: Scene) -> Concern | None:
    if scene.said("decimal.handling.mode") == "double":
        lossy = [name for name, kind in scene.columns.items() if kind == "double"]
    else:
        lossy = sorted({name for cut in scene.cuts for name in _decimals_as_double(cut, unwrapped=scene.is_unwrapped)})
    if not lossy:
        return None
    return Concern(
        Code.DECIMAL_DOUBLE,
        "the connector sends decimals as double, which rounds them before they get to Kafka",
        "set decimal.handling.mode: precise in the connector, and take a new snapshot of the table",
        ", ".join(lossy),
    )


def _decimals_as_double(cut: Cut, *, unwrapped: bool) -> Iterable[str]:
    """Columns that the source calls a decimal (column.propagate.source.type) and that are sent as double."""
    if cut.schema is None:
        return ()
    try:
        row = row_of_schema(json.dumps(cut.schema).encode(), Bounds(), unwrapped=unwrapped)
    except NotAConnectSchema:
        return ()
    return (part.name for part in row.fields if part.type.kind == "double" and _is_exact(part.type))


def _is_exact(column: ConnectType) -> bool:
    return column.parameters.get(_SOURCE_TYPE, "").upper().startswith(_EXACT_TYPES)


def _replica_identity(scene: Scene) -> Concern | None:
    if scene.connector != "postgresql" or not _sends_keys_only(scene):
        return None
    apart = [n for n, kind in scene.columns.items() if kind.startswith(_STORED_APART) and n not in scene.key]
    if scene.key_is_from_row:
        lost = "an update that changes the columns under `key` leaves the old row; deletes may not hold these columns"
    elif scene.settings.mode == "append":
        lost = "deletes hold no more than the key; large values that a change did not touch are NULL"
    elif apart:
        nulled = [name for name in apart if scene.columns[name].startswith(_SENT_AS_NULL)]
        lost = f"large values of {', '.join(apart)}"
        if nulled:
            lost += f"; those of {', '.join(nulled)} become NULL: nothing stands in their place"
    else:
        return None
    return Concern(
        Code.REPLICA_IDENTITY,
        "the source table has no REPLICA IDENTITY FULL: changes come without the row before them, and without the"
        " large values that they did not touch. Such a value keeps what the table has, which is NULL where the row's"
        " earlier changes are not in the topic",
        "ALTER TABLE … REPLICA IDENTITY FULL at the source, where that matters",
        lost,
    )


def _sends_keys_only(scene: Scene) -> bool:
    if any(cut.value is not None and cut.value.get("before") is None for cut in scene.with_op("u")):
        return True
    for cut in scene.with_op("d"):
        before = (cut.value or {}).get("before")
        row = {name: value for name, value in before.items() if value is not None} if isinstance(before, dict) else {}
        if isinstance(before, dict) and set(row) <= set(scene.sent_key) < set(before):
            return True
    return False


def _key_from_row(scene: Scene) -> Concern | None:
    if not (scene.key_is_from_row and scene.is_unwrapped):
        return None
    return Concern(
        Code.KEY_FROM_ROW,
        "the records have no key and no row before the change: an update that changes the columns under `key` leaves"
        " the old row",
        "leave the envelope on, or name key columns in the connector (message.key.columns)",
    )


def _truncates_in_partitions(scene: Scene) -> Concern | None:
    partitions = len(scene.sample.topic.partitions)
    if partitions < 2 or scene.is_unwrapped or scene.settings.truncate == "ignore":
        return None
    skipped = skipped_operations(scene.source)
    may_come = skipped is not None and "t" not in skipped and scene.connector in SENDS_TRUNCATES
    if not (may_come or any(scene.with_op("t"))):
        return None
    return Concern(
        Code.TRUNCATES_IN_PARTITIONS,
        "a truncate comes in one of the topic's partitions: until that one is read as far as the others, the table"
        " still has the rows that it took, beside newer ones",
        "give the topic one partition where readers must never see that",
        f"{partitions} partitions",
    )


def _ghosts(scene: Scene) -> Concern | None:
    snapshot = scene.progress.snapshot if scene.progress else None
    if snapshot is None or not snapshot.ghosts:
        return None
    return Concern(
        Code.GHOSTS,
        "the table has rows that the last complete snapshot does not have",
        "look at docs/ghosts.md, then: distributary resume -c FILE TABLE --reconcile",
        f"{snapshot.ghosts} row{'' if snapshot.ghosts == 1 else 's'}",
    )


def _unknown_column(scene: Scene) -> Concern | None:
    known = scene.known_columns
    found = unknown_columns(scene.settings, known) if known else []
    if not found:
        return None
    return Concern(
        Code.UNKNOWN_COLUMN,
        "the config names columns that neither the table nor the records have: a misspelt `mask` or `exclude` publishes"
        " the column",
        FIX,
        "; ".join(map(str, found)),
    )


def skipped_operations(source: Source) -> frozenset[str] | None:
    """The operations that the connector leaves out, as `source.connector_properties` say; None where they don't."""
    said = setting(source.connector_properties, "skipped.operations")
    return None if said is None else frozenset(part.strip().lower() for part in said.split(","))


SENDS_TRUNCATES = ("postgresql", "mysql", "mariadb", "oracle")
"""SQL Server and Db2 log no truncate that a connector could read."""

_LOOKS: tuple[Callable[[Scene], Concern | None], ...] = (
    _order_by_offset, _deletes_dropped, _typed_by_value, _no_type_yet, _decimal_double, _replica_identity,
    _key_from_row, _truncates_in_partitions, _ghosts, _unknown_column,
)  # fmt: skip
