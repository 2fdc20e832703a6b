"""What a topic's own settings lose: compaction, retention, tombstones."""

from __future__ import annotations

from datetime import timedelta

from distributary.preflight.plan_warning import Code, Concern
from distributary.preflight.table_context import Scene

_DELETES_KEPT = 24 * 3600 * 1000  # Kafka's default of delete.retention.ms
_NEAR = 0.5  # of the time that records are kept


def concerns_of_keeping(scene: Scene) -> list[Concern]:
    """What is to be said of the topic of one table, by code."""
    found = (look(scene) for look in (_unknown, _compacted, _tombstones_off, _begins_late, _retention_near))
    return sorted((concern for concern in found if concern is not None), key=lambda concern: concern.code.value)


def _unknown(scene: Scene) -> Concern | None:
    if scene.sample.settings is not None:
        return None
    return Concern(
        Code.TOPIC_SETTINGS_UNKNOWN,
        "Kafka does not show the topic's settings: whether compaction or retention loses records can't be told",
        "allow DescribeConfigs on the topic to the user of this config",
    )


def _compacted(scene: Scene) -> Concern | None:
    if "compact" not in scene.sample.cleanup:
        return None
    if scene.settings.mode in ("history", "append"):
        return Concern(
            Code.COMPACTED_CHANGES,
            "the topic is compacted: Kafka removes older changes of a key, and a table that is to keep every change"
            " has only those that were applied before",
            "set cleanup.policy: delete on the topic, with a retention that is longer than the service is ever down",
            f"mode: {scene.settings.mode}",
        )
    kept = _duration(_number(scene, "delete.retention.ms", _DELETES_KEPT))
    return Concern(
        Code.COMPACTED,
        "the topic is compacted: Kafka forgets a delete some time after its tombstone, and a table that was behind"
        " for longer keeps the row. Records without a key, truncates among them, are refused by such a topic, which"
        " stops the connector",
        "set cleanup.policy: delete, or raise delete.retention.ms above the longest time that the service may be down",
        f"tombstones stay for {kept}",
    )


def _tombstones_off(scene: Scene) -> Concern | None:
    if "compact" not in scene.sample.cleanup or scene.is_unwrapped:
        return None
    if scene.said("tombstones.on.delete") != "false" and not _delete_without_tombstone(scene):
        return None
    return Concern(
        Code.TOMBSTONES_OFF,
        "the topic is compacted and the connector sends no tombstones: the last change of every deleted row, with its"
        " values, stays in the topic for ever",
        "set tombstones.on.delete: true in the connector",
    )


def _delete_without_tombstone(scene: Scene) -> bool:
    """A delete right before a record that is no tombstone of its key."""
    at = {(cut.record.partition, cut.record.offset): cut.record for cut in scene.cuts}
    for cut in scene.with_op("d"):
        after = at.get((cut.record.partition, cut.record.offset + 1))
        if after is not None and not (after.value is None and after.key == cut.record.key):
            return True
    return False


def _begins_late(scene: Scene) -> Concern | None:
    removed = scene.sample.removed
    if scene.progress is not None or not removed or "compact" in scene.sample.cleanup or _begins_with_snapshot(scene):
        return None
    return Concern(
        Code.BEGINS_LATE,
        "Kafka no longer has the beginning of the topic: the table begins with what is left, and rows that did not"
        " change since are not in it",
        "have the connector take a new snapshot of the table (a blocking or incremental one, by a signal)",
        f"{removed} offsets are gone",
    )


def _begins_with_snapshot(scene: Scene) -> bool:
    """Whether the first record of some partition that is left is the first one of a snapshot."""
    heads = {(p, offset) for p, offset in scene.sample.first.items()}
    marks = (
        str(source.get("snapshot"))
        for cut in scene.with_op("r")
        if (cut.record.partition, cut.record.offset) in heads
        and isinstance(source := (cut.value or {}).get("source"), dict)
    )
    return any(mark.startswith("first") for mark in marks)


def _retention_near(scene: Scene) -> Concern | None:
    keeps = _number(scene, "retention.ms", -1)
    times = [record.timestamp for record in scene.sample.head if record.timestamp]
    if not scene.sample.left or not times or keeps <= 0 or "delete" not in scene.sample.cleanup:
        return None
    age = scene.now - min(times)
    if age < _NEAR * keeps:
        return None
    return Concern(
        Code.RETENTION_NEAR,
        "records that are not applied have used up half of the time that Kafka keeps them: what it removes before"
        " they are is lost, and halts the table",
        "start the service soon, or raise retention.ms of the topic until it has caught up",
        f"the oldest is {_duration(age)} old, and records are kept for {_duration(keeps)}",
    )


def _number(scene: Scene, name: str, default: int) -> int:
    text = (scene.sample.settings or {}).get(name, "")
    return int(text) if text.lstrip("-").isdigit() else default


def _duration(milliseconds: int) -> str:
    return str(timedelta(seconds=max(0, milliseconds) // 1000))
