"""Whether a table can continue: compares its progress record with the topic and the config of now."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.offsets import Offsets
from distributary.decode.source_block import BY_OFFSET
from distributary.errors import TableHalt
from distributary.halt_actions import ResumeAction
from distributary.progress.record import Last, Progress
from distributary.progress.snapshots import after_loss

TWO_TOPICS = "two-topics-one-table"
"""The code of a halt that only another config ends."""


def check_continuity(progress: Progress, topic: Topic, first: Offsets, settings: TableSettings, path: str) -> None:
    """Raises TableHalt if the topic's next records are not those that follow the table's last ones (rule 6.4).

    `first`: the first offset that Kafka still has of each partition; `path`: where the table lies.
    """
    if progress.topic != topic.name:
        raise TableHalt(
            "other-topic",
            f"the table at {path} was filled from the topic {progress.topic}, not from {topic.name}",
            "set source.topic_prefix back; or, if this topic replaces the other, `distributary resume -c"
            " FILE TABLE --rebuild` fills the table again from it; if both are in use, give each table a path of"
            " its own with {database} in target.table",
        )
    if progress.mode != settings.mode:
        raise TableHalt(
            "mode-changed",
            f"the table was filled in mode: {progress.mode}, the config ({settings.where}) has mode: {settings.mode}",
            "set the mode back; or `distributary resume -c FILE TABLE --rebuild` fills it again in the new mode",
        )
    if progress.marks_deleted not in (None, settings.marks_deleted):
        has = "has" if progress.marks_deleted else "does not have"
        raise TableHalt(
            "deletes-changed",
            f"the table {has} the column __deleted, which goes with `soft`, and the config ({settings.where}) has"
            f" deletes: {settings.deletes} and truncate: {settings.truncate}",
            "undo the change in the config, or `distributary resume -c FILE TABLE --rebuild` fills the table again",
        )
    if bool(progress.transactions) != settings.has_transactions:
        raise TableHalt(
            "transactions-changed",
            f"the table {'has' if progress.transactions else 'does not have'} the columns __transaction_id and"
            f" __transaction_order, and the config ({settings.where}) has"
            f" transaction_columns: {str(settings.has_transactions).lower()}",
            "undo the change in the config, or `distributary resume -c FILE TABLE --rebuild` fills the table again",
        )
    if _is_ordered_by_offset(progress) and (topic.topic_id != progress.topic_id or progress.short):
        raise TableHalt(
            "offsets-began-anew",
            f"the topic {topic.name} was deleted and created again, or has lost its end: this table orders changes by"
            " their offsets, so that new changes, which now have lower offsets, would count as older",
            "`distributary resume -c FILE TABLE --rebuild` fills the table again from the topic",
        )
    if topic.topic_id != progress.topic_id:
        raise TableHalt(
            "topic-recreated",
            f"the topic {topic.name} was deleted and created again: {_ranges(progress.next)} of the old one"
            " were applied; whether it had later records is unknown",
            "`distributary resume -c FILE TABLE --accept-reset` reads the new topic on top of the existing rows,"
            " --rebuild empties the table first",
        )
    if progress.short:
        lost = ", ".join(
            f"{end} to {progress.next[p] - 1} of partition {p}" for p, end in sorted(progress.short.items())
        )
        raise TableHalt(
            "topic-shorter",
            f"Kafka has lost the end of {topic.name}, which was applied already: offsets {lost}; later records got"
            " the same offsets",
            "`distributary resume -c FILE TABLE --accept-reset` reads the topic from its start, on top of the existing"
            " rows, --rebuild empties the table first",
        )
    for partition, offset in first.items():
        next_offset = progress.next.get(partition)
        if next_offset is not None and offset > next_offset:
            raise TableHalt(
                "records-lost",
                f"Kafka's retention removed offsets {next_offset} to {offset - 1} of {topic.name} partition {partition}"
                " before they were applied",
                "`distributary resume -c FILE TABLE --accept-loss` continues with the records that are left,"
                " --rebuild empties the table first; then take a snapshot, which corrects the rows",
            )


def lost_ends(progress: Progress, end: Offsets) -> dict[int, int]:
    """The ends of the partitions that end below the offsets that the table has applied: the next records get offsets
    that the table has passed, and would be skipped silently.

    A partition loses its end if a broker without the newest records becomes its leader (unclean leader election), or
    comes back with an older disk. `end`: the offset after the last record of each partition. A broker that does not
    know a partition's end yet returns none (KIP-207).
    """
    return {p: end[p] for p, next_offset in progress.next.items() if end.get(p, next_offset) < next_offset}


def record_after(
    action: ResumeAction, progress: Progress, topic: Topic, first: Offsets, end: Offsets, mode: str
) -> Progress | None:
    """The progress record after an operator's action (see control/resume_requests.py); None if it does not change.
    `topic` and `first` as in check_continuity, `end` as in lost_ends; `mode`: the config's."""
    another = topic.topic_id != progress.topic_id or bool(progress.short)
    if action is ResumeAction.REBUILD:
        return progress.cleared().next_commit(topic=topic.name, topic_id=topic.topic_id, mode=mode)
    # The bad records so far do not halt the table again.
    changed: dict[str, object] = {"recent": ()} if any(bad for _, bad in progress.recent) else {}
    if action is ResumeAction.LOSS:
        after = {p: max(offset, first.get(p, 0)) for p, offset in progress.next.items()}
        changed |= {"next": after, **after_loss(progress, end)} if after != progress.next else {}
    elif action is ResumeAction.RESET and another and not _is_ordered_by_offset(progress):
        # Positions in the source's log go on; offsets in the topic start again.
        last = {
            p: Last(position=last_change.position, ts_ms=last_change.ts_ms) for p, last_change in progress.last.items()
        }
        changed |= {"topic_id": topic.topic_id, "next": {}, "last": last, "short": None}
        changed |= after_loss(progress, end) if any(first.values()) else {"lost": None}
        changed["snapshot"] = None
    return progress.next_commit(**changed) if changed else None


def _is_ordered_by_offset(progress: Progress) -> bool:
    """Whether changes of a row are ordered by offset alone. Tables in mode: append order none."""
    return progress.connector == BY_OFFSET and progress.mode != "append"


def nearer_target(target: Offsets, next_offsets: Offsets, lost: Mapping[int, int]) -> Offsets:
    """The first target after an accepted loss: the ends `lost` that the topic had then. A snapshot that ends before
    them may lack rows (see snapshots.after_loss), and must share no batch with a later one. `next_offsets`: by
    partition, the first offset that the table has not applied."""
    return {p: min(end, max(lost.get(p, 0), next_offsets.get(p, 0))) for p, end in target.items()}


def not_ours(path: str) -> TableHalt:
    """The halt of a table whose path has another writer's table."""
    return TableHalt(
        "not-our-table",
        f"there is a Delta table with rows at {path} that this service did not write",
        "`distributary resume -c FILE TABLE --adopt` continues with its rows, after checking them against the"
        " topic; or set another target.path, or move that table away",
    )


def two_topics(topic: str, other: str, path: str) -> TableHalt:
    """The halt of a table whose path is that of another topic's table."""
    return TableHalt(
        TWO_TOPICS,
        f"{topic} and {other} would both be written to {path}",
        'give each a path of its own by target.table, for example "{database}/{schema}/{table}"',
    )


def _ranges(next_offsets: Mapping[int, int]) -> str:
    ranges = [f"up to {offset - 1} (partition {p})" for p, offset in sorted(next_offsets.items()) if offset]
    return f"offsets {', '.join(ranges)}" if ranges else "no offsets"
