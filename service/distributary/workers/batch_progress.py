"""The progress record of a table before a batch, and the fields that the batch's schema and topic add to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.offsets import Offsets
from distributary.decode.order_fields import OrderField
from distributary.decode.source_order import order_of
from distributary.evolve.diff import check_key
from distributary.evolve.order import check_order
from distributary.ingest.batch_reader import BatchReader
from distributary.ingest.topic_format import TopicFormat
from distributary.progress.record import AddedColumn, Progress, first_progress


def known_progress(progress: Progress | None) -> Progress | None:
    """The table's record, None if the table is to be filled from the beginning."""
    return None if progress is None or progress.is_new else progress


def progress_before(
    before: Progress | None,
    topic: Topic,
    topic_format: TopicFormat,
    reader: BatchReader,
    settings: TableSettings,
    order_fields: tuple[OrderField, ...],
) -> Progress:
    """The table's record with the current format of its rows; a new record for a table that has applied nothing.
    `before`: the record of the last commit; `order_fields`: the config's. Raises TableHalt if the topic has another key
    or order."""
    key = reader.sent.renames.all_of(topic_format.key or settings.key)
    known = known_progress(before)
    progress = known or first_progress(topic.name, topic.topic_id, topic_format.order, settings.mode, key)
    order = order_of(progress.connector, order_fields)
    if known is not None:
        check_order(progress.order, order)
    changed: dict[str, object] = {"order": order or None}
    if before is not None:
        changed["sequence"] = before.sequence
    if not progress.key:
        changed["key"] = key
    changed["unwrapped"] = topic_format.unwrapped is not None
    changed["marks_deleted"] = settings.marks_deleted
    changed["timestamps"] = None if settings.timestamps == "ntz" else settings.timestamps
    changed["transactions"] = settings.has_transactions or None
    if not topic_format.key:  # else the columns of the records' keys are compared
        check_key(progress.key or key, key)
    return progress.model_copy(update=changed)


def with_names(progress: Progress, reader: BatchReader) -> Progress:
    """The record with the source table, renamed columns and masks that the reader has seen so far."""
    renamed = {**(progress.renames or {}), **reader.sent.renamed} or None
    masked = reader.sent.marks or None
    table = reader.source_table
    if (renamed, masked, table) == (progress.renames, progress.masks, progress.source_table):
        return progress
    return progress.model_copy(update={"renames": renamed, "masks": masked, "source_table": table})


def with_added(progress: Progress, latest: Progress | None, added: Mapping[str, AddedColumn]) -> Progress:
    """The record with the columns that were added for this batch. `latest`: the record of the last commit, which may
    be the one that added them."""
    now = known_progress(latest)
    if now is None:
        return progress.model_copy(update={"added": added or None})
    return progress.model_copy(update={"commit": now.commit, "sequence": now.sequence, "added": added})


def with_partition_change(after: Progress, before: Progress, latest_offsets: Callable[[], Offsets]) -> Progress:
    """The record with the ends of all partitions at the time when the topic got more partitions, until the table has
    reached these ends: until then a key may be in two partitions. `before` and `after`: the record before and after the
    batch."""
    growth = after.growth
    if before.next and len(after.next) > len(before.next):
        growth = latest_offsets()
    if growth is not None and all(after.next.get(p, 0) >= end for p, end in growth.items()):
        growth = None
    return after.model_copy(update={"growth": growth})
