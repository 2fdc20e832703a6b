"""How a table's records are decoded, by the config and by the topic's format."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.connector import PLACEHOLDER
from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.decode.document import DOCUMENT_COLUMNS
from distributary.decode.masks import Masks
from distributary.decode.options import DEFAULT_PLACEHOLDER, DecodeOptions, TypeSources
from distributary.decode.source_block import SOURCE_TABLE_COLUMN
from distributary.decode.source_order import order_of
from distributary.ingest.topic_format import TopicFormat
from distributary.progress.record import AddedColumn
from distributary.types.column_default import ColumnDefault


def decode_options(
    source: Source,
    settings: TableSettings,
    topic_format: TopicFormat,
    key: tuple[str, ...],
    *,
    masks: Masks,
    reads_before: bool,
    added: Mapping[str, AddedColumn] | None = None,
) -> DecodeOptions:
    """The options of a table; `key` has the known columns of the key, by the lake's names; `added` are columns that the
    table got later (see Progress)."""
    properties = source.connector_properties
    defaults = {name: ColumnDefault(column.value, column.before) for name, column in (added or {}).items()}
    return DecodeOptions(
        connector=topic_format.order,
        epoch=settings.epoch,
        types=TypeSources(
            {**DOCUMENT_COLUMNS, **settings.columns} if topic_format.documents else settings.columns,
            {},
            properties,
            settings.timestamps,
        ),
        exclude=frozenset(settings.exclude),
        renames=settings.rename,
        masks=masks,
        placeholder=properties.get(PLACEHOLDER, DEFAULT_PLACEHOLDER),
        keyless=settings.mode == "append" and not key,
        key_from_row=key if settings.key and not topic_format.key else (),
        key_from_rows_without_key=key if settings.key and topic_format.key else (),
        bare_key=topic_format.bare_key,
        before=reads_before,
        unwrapped=topic_format.unwrapped,
        order=order_of(topic_format.order, source.order_fields),
        long_ids=source.has_long_ids,
        adds_columns=settings.schema_changes != "ignore",
        in_payload_object=topic_format.in_payload_object,
        cloud_events=topic_format.cloud_events,
        documents=topic_format.documents,
        defaults=defaults if settings.fills_defaults or defaults else None,
        bounds=source.limits.bounds(),
        source_in_key=SOURCE_TABLE_COLUMN in topic_format.key,
    )
