"""Whether a table can go on from where it is: what it was filled from, against what Kafka and the config say now."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.consume.offsets import Offsets
from distributary.errors import TableHalt
from distributary.merge.progress import Progress


def check_continuity(progress: Progress, topic: Topic, first: Offsets, settings: TableSettings, path: str) -> None:
    """Raises TableHalt where the records that come next are not those that follow the table's (rule 6.4).

    `first`: the first offset that Kafka still has of each partition; `path`: where the table lies.
    """
    if progress.topic != topic.name:
        raise TableHalt(
            "other-topic",
            f"the table at {path} is kept equal to the topic {progress.topic}, not to {topic.name}",
            "give each of the two a place of its own with {database} in target.table",
        )
    if progress.mode != settings.mode:
        raise TableHalt(
            "mode-changed",
            f"the table is kept as mode: {progress.mode}, the config ({settings.where}) says mode: {settings.mode}",
            "set the mode back, or delete the table's directory to have it filled again in the new mode",
        )
    if topic.topic_id != progress.topic_id:
        raise TableHalt(
            "topic-recreated",
            f"the topic {topic.name} was deleted and created again: offsets {_ranges(progress.next)} of the old one are"
            " taken in, and nothing tells what was in between",
            "delete the table's directory to have it filled again from the new topic",
        )
    for partition, offset in first.items():
        taken = progress.next.get(partition)
        if taken is not None and offset > taken:
            raise TableHalt(
                "records-lost",
                f"Kafka's retention removed offsets {taken} to {offset - 1} of {topic.name} partition {partition}"
                " before they were taken in",
                "have the connector send a snapshot into a new topic, or delete the table's directory to have it"
                " filled again from what the topic still has",
            )


def not_ours(path: str) -> TableHalt:
    """The halt of a table whose place is taken."""
    return TableHalt(
        "not-our-table",
        f"there is a Delta table with rows at {path} that this service did not write",
        "choose another target.path or move that table away",
    )


def two_topics(topic: str, other: str, path: str) -> TableHalt:
    """The halt of a table whose place another topic's table has."""
    return TableHalt(
        "two-topics-one-table",
        f"{topic} and {other} would both be written to {path}",
        'tell them apart in target.table, for example "{database}/{schema}/{table}"',
    )


def _ranges(next_offsets: Mapping[int, int]) -> str:
    return ", ".join(f"up to {offset - 1} (partition {p})" for p, offset in sorted(next_offsets.items()))
