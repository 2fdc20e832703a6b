"""Several source tables in one topic: the table halts, or their names become part of the key."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from distributary.config.table import TableSettings
from distributary.decode.options import FilledTable
from distributary.decode.source_block import SOURCE_TABLE_COLUMN, source_column
from distributary.errors import TableHalt
from distributary.ingest.service_columns import service_columns_of
from distributary.ingest.topic_format import TopicFormat


def with_source_in_key(topic_format: TopicFormat, settings: TableSettings) -> TopicFormat:
    """The format with the source table's name in the key, if `merge_sources` is true and the records' own key does not
    have it. Raises TableHalt if the config's `key` replaces the records' key."""
    if not settings.merge_sources or source_column(topic_format.key):
        return topic_format
    if settings.key and not topic_format.key and topic_format.is_conclusive:
        raise TableHalt(
            "merge-without-keys",
            f"`merge_sources` has the source table's name in the records' key, and these have none ({settings.where})",
            "name the key's columns in the connector (message.key.columns) and take `key` out of the config",
        )
    if not topic_format.key:
        return topic_format
    return replace(topic_format, key=(*topic_format.key, SOURCE_TABLE_COLUMN))


def filled_table(settings: TableSettings, key: tuple[str, ...]) -> FilledTable:
    """A table as its records are compared with it."""
    return FilledTable(key, frozenset(name.lower() for name in service_columns_of(settings)))


def check_source_tables(
    batch_tables: Iterable[str], known: str | None, topic: str, settings: TableSettings, key: Collection[str]
) -> str | None:
    """The one source table of a topic. `batch_tables`: those of a batch's records; `known`: that of the table's rows.
    None if several are allowed. Raises TableHalt if there are several: their rows with equal keys would replace each
    other.
    """
    if settings.merge_sources or source_column(key):
        return None
    every = sorted({*batch_tables, *filter(None, (known,))})
    if len(every) > 1:
        raise TableHalt(
            "two-tables-one-topic",
            f"the topic {topic} has changes of {len(every)} source tables: {', '.join(every)}; rows with equal keys"
            " would overwrite each other",
            "give each table a topic of its own in the connector: correct the transform that routes both here, or"
            " add one that routes by source.table (ContentBasedRouter); or leave one table out (table.exclude.list). Or"
            f" set merge_sources: true for this table: then {SOURCE_TABLE_COLUMN} belongs to the key; if the table has"
            " rows already, also run"
            " `distributary resume -c FILE TABLE --rebuild`",
        )
    return every[0] if every else None
