"""Warnings about a topic's settings that lose records: compaction, retention, tombstones."""

from __future__ import annotations

from datetime import timedelta

from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.table_context import TableContext

_DELETES_KEPT = 24 * 3600 * 1000  # Kafka's default of delete.retention.ms
_NEAR = 0.5  # share of retention.ms from which an unapplied record is warned about


def retention_warnings(context: TableContext) -> list[PlanWarning]:
    """The warnings about the topic of one table, sorted by code."""
    warnings = (check(context) for check in (_unknown, _compacted, _tombstones_off, _begins_late, _retention_near))
    return sorted((warning for warning in warnings if warning is not None), key=lambda warning: warning.code.value)


def _unknown(context: TableContext) -> PlanWarning | None:
    if context.sample.settings is not None:
        return None
    return PlanWarning(
        Code.TOPIC_SETTINGS_UNKNOWN,
        "Kafka does not show the topic's settings: compaction or retention may lose records",
        "allow DescribeConfigs on the topic to the user of this config",
    )


def _compacted(context: TableContext) -> PlanWarning | None:
    if "compact" not in context.sample.cleanup:
        return None
    if context.settings.mode in ("history", "append"):
        return PlanWarning(
            Code.COMPACTED_CHANGES,
            "the topic is compacted: Kafka removes older changes of a key, and a table that is to keep every change"
            " has only those that it applied before",
            "set cleanup.policy: delete on the topic, with a retention that is longer than the service is ever down",
            f"mode: {context.settings.mode}",
        )
    retention = _duration(_number(context, "delete.retention.ms", _DELETES_KEPT))
    return PlanWarning(
        Code.COMPACTED,
        "the topic is compacted: Kafka removes a delete some time after its tombstone, and a table that lags by more"
        " than that keeps the row. Such a topic refuses records without a key, truncates among them, which stops the"
        " connector",
        "set cleanup.policy: delete, or raise delete.retention.ms above the longest time that the service may be down",
        f"tombstones are kept for {retention}",
    )


def _tombstones_off(context: TableContext) -> PlanWarning | None:
    if "compact" not in context.sample.cleanup or context.is_unwrapped:
        return None
    if context.connector_setting("tombstones.on.delete") != "false" and not _delete_without_tombstone(context):
        return None
    return PlanWarning(
        Code.TOMBSTONES_OFF,
        "the topic is compacted and the connector sends no tombstones: the last change of every deleted row, with its"
        " values, stays in the topic for ever",
        "set tombstones.on.delete: true in the connector",
    )


def _delete_without_tombstone(context: TableContext) -> bool:
    """Whether some delete is followed by a record other than the tombstone of its key."""
    at = {(parsed.record.partition, parsed.record.offset): parsed.record for parsed in context.records}
    for parsed in context.with_op("d"):
        after = at.get((parsed.record.partition, parsed.record.offset + 1))
        if after is not None and not (after.value is None and after.key == parsed.record.key):
            return True
    return False


def _begins_late(context: TableContext) -> PlanWarning | None:
    removed = context.sample.removed
    if (
        context.progress is not None
        or not removed
        or "compact" in context.sample.cleanup
        or _begins_with_snapshot(context)
    ):
        return None
    return PlanWarning(
        Code.BEGINS_LATE,
        "Kafka no longer has the beginning of the topic: the table begins with the records that are left, and lacks"
        " rows that did not change since",
        "have the connector take a new snapshot of the table (a blocking or incremental one, by a signal)",
        f"{removed} offsets were removed",
    )


def _begins_with_snapshot(context: TableContext) -> bool:
    """Whether the first remaining record of some partition is the first one of a snapshot."""
    heads = {(p, offset) for p, offset in context.sample.first.items()}
    marks = (
        str(source.get("snapshot"))
        for parsed in context.with_op("r")
        if (parsed.record.partition, parsed.record.offset) in heads
        and isinstance(source := (parsed.value or {}).get("source"), dict)
    )
    return any(mark.startswith("first") for mark in marks)


def _retention_near(context: TableContext) -> PlanWarning | None:
    keeps = _number(context, "retention.ms", -1)
    times = [record.timestamp for record in context.sample.head if record.timestamp]
    if not context.sample.left or not times or keeps <= 0 or "delete" not in context.sample.cleanup:
        return None
    age = context.now - min(times)
    if age < _NEAR * keeps:
        return None
    return PlanWarning(
        Code.RETENTION_NEAR,
        "some records are not applied yet and are older than half of the topic's retention: records that Kafka removes"
        " before they are applied are lost, and halt the table",
        "start the service soon, or raise retention.ms of the topic until it has caught up",
        f"the oldest is {_duration(age)} old, and records are kept for {_duration(keeps)}",
    )


def _number(context: TableContext, name: str, default: int) -> int:
    text = (context.sample.settings or {}).get(name, "")
    return int(text) if text.lstrip("-").isdigit() else default


def _duration(milliseconds: int) -> str:
    return str(timedelta(seconds=max(0, milliseconds) // 1000))
